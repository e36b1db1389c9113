"""Column binding: which columns each family models, and the fitted encoders of these columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from calibayes.core.abilities import AllowsMissing
from calibayes.core.notices import listed, warn
from calibayes.core.protocols import Array, Family, Layout
from calibayes.core.verify import require, require_length, require_names, require_positions
from calibayes.encoders.bins import Grid
from calibayes.encoders.encoder import Encoder, ImputesTraining
from calibayes.encoders.levels import Levels
from calibayes.encoders.numbers import Clusters, Counts, Flags, Numbers
from calibayes.families.joint_model import PRIOR
from calibayes.kernels.event_counts import columns_where
from calibayes.kernels.moments import row_blocks
from calibayes.tables.conversion import ColumnConversion
from calibayes.tables.dates import ColumnWarning
from calibayes.tables.origin import FROM_ARRAY, Origin
from calibayes.tables.summary import TableSummary
from calibayes.tables.table import AllMissingError, Table, all_positions

Selection: TypeAlias = Sequence[str] | Sequence[int] | slice | Callable[[Any], Sequence[int]]
"""Names, positions, a slice of positions, or a function of the table (or its summary) that returns positions."""
Columns: TypeAlias = Table | TableSummary
"""A table, or its summary: both have names and types of columns."""
NewCodes: TypeAlias = dict[str, Sequence[Array]]
"""Family -> the new codes of the old levels of each column."""

ENCODERS: Mapping[str, Callable[[], Encoder]] = {
    "numbers": Numbers,
    "clusters": Clusters,
    "levels": Levels,
    "cells": Grid,
    "flags": lambda: Flags(threshold=None),
    "counts": Counts,
}
"""The default encoder for what a family reads."""


def every(table: Columns) -> Sequence[int]:
    """All columns but identifiers.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier
    >>> from calibayes.families import Poisson
    >>> X, y = [[1, 4], [0, 3], [5, 1], [6, 1]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("events", Poisson(), every)]).fit(X, y).predict([[0, 5]])
    array([0])
    """
    return table.used


def numeric(table: Columns) -> list[int]:
    """Columns of numbers; dates are numbers, too.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier
    >>> from calibayes.families import Gaussian
    >>> X, y = [[1.0], [2.0], [5.0], [6.0]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("numbers", Gaussian(), numeric)]).fit(X, y).predict([[1.5]])
    array([0])
    """
    return [j for j in table.used if table.is_numeric(j)]


def categorical(table: Columns) -> list[int]:
    """All other columns but identifiers: strings, categories, booleans, months and weekdays of dates.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier
    >>> from calibayes.families import Categorical
    >>> X, y = [["red"], ["red"], ["blue"], ["green"]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("colors", Categorical(alpha=1.0), categorical)]).fit(X, y).predict([["blue"]])
    array([1])
    """
    return [j for j in table.used if not table.is_numeric(j)]


def positions(selection: Selection, table: Columns) -> Sequence[int]:
    """The positions of the selected columns."""
    if callable(selection):
        chosen, d = selection(table), len(table.names)
        is_all = isinstance(chosen, range) and chosen == range(d)
        return all_positions(d) if is_all else [_chosen(name, table) for name in chosen]
    if isinstance(selection, slice):
        return list(range(len(table.source_names)))[selection]
    if isinstance(selection, str) or np.ndim(selection) != 1:
        raise ValueError(f"columns must be a list, a slice or a function of the table, got {selection!r}")
    mask = np.asarray(selection)
    if mask.dtype == bool:
        if len(mask) != len(table.source_names):
            raise ValueError(f"a mask of {len(mask)} columns for a table of {len(table.source_names)}")
        return np.flatnonzero(mask).tolist()
    return [position(name, table) for name in selection]


def _chosen(name: Any, table: Columns) -> int:
    """The position of a column that a function of the table returned: it may be a derived one."""
    is_derived = isinstance(name, int | np.integer) and len(table.source_names) <= name < len(table.names)
    return int(name) if is_derived else position(name, table)


def position(name: Any, table: Columns) -> int:
    """The position of a column given by name or position."""
    if isinstance(name, str):
        if name not in table.names:
            raise ValueError(f"there is no column {name!r}; the columns are {listed(table.names)}")
        return table.names.index(name)
    d = len(table.source_names)
    if not isinstance(name, int | np.integer) or not -d <= name < d:
        raise ValueError(f"there is no column {name}: the table has {d} columns")
    return int(name) % d


def _refuse_twice(name: str, indices: Sequence[int], taken: dict[int, str], table: Columns) -> None:
    """Raises ValueError, naming the column that two families select."""
    for j in indices:
        if j in taken:
            raise ValueError(f"column {table.names[j]!r} is bound to {taken[j]!r} and to {name!r}")
        taken[j] = name


@dataclass(frozen=True)
class ColumnBinding:
    """Families and the fitted encoders of their columns, by the family's name.

    Attributes
    ----------
    families : mapping
        Name -> family, not yet bound to columns.
    encoders : mapping
        Name -> fitted encoder.
    chosen : mapping
        Name -> positions of the family's columns in the table.
    names, types : tuples
        Names and NumPy types of all columns of the training table.
    origin : Origin
        The kind of training table, so that sampled rows can be returned as the same kind.
    conversion : ColumnConversion
        How the columns were made from those of the training table.
    """

    families: Mapping[str, Family]
    encoders: Mapping[str, Encoder]
    chosen: Mapping[str, tuple[int, ...]]
    names: tuple[str, ...]
    types: tuple[np.dtype[Any], ...]
    origin: Origin = FROM_ARRAY
    conversion: ColumnConversion = field(default_factory=lambda: ColumnConversion(()))

    def verify(self) -> None:
        """Raises ValueError if families, encoders and columns do not belong together."""
        require(bool(self.families) and PRIOR not in self.families, f"no family, or one named {PRIOR!r}")
        require_names("encoders", self.encoders, self.families)
        require_names("chosen columns", self.chosen, self.families)
        require_length("types", self.types, len(self.names))
        for name, chosen in self.chosen.items():
            require(len(chosen) > 0, f"family {name!r} has no columns")
            require_positions(f"columns of {name!r}", chosen, len(self.names))
            is_same = _read_columns(self.encoders[name]) == chosen
            require(is_same, f"the encoder of {name!r} reads other columns than the family")
        taken = [j for chosen in self.chosen.values() for j in chosen]
        require(len(set(taken)) == len(taken), "a column is bound twice")
        names = (*self.conversion.names, *self.conversion.sources)
        require(self.names == names, "the conversion makes other columns than those of the table")

    def encode(self, table: Table) -> dict[str, Array]:
        """The encoded columns of each family. Raises ValueError if it cannot model missing or other values in them."""
        encoded = {name: encoder.encode(table) for name, encoder in self.encoders.items()}
        for name, family in self.families.items():
            if hasattr(family, "in_support"):
                self.refuse_outside_support(name, encoded[name])
            if isinstance(family, AllowsMissing):
                continue
            incomplete = _with_missing(encoded[name])
            if len(incomplete):
                raise ValueError(
                    f"column {self.column(name, incomplete[0])!r} contains NaN, and {type(family).__name__} cannot model missing values: "
                    "fill them, or use another family for this column"
                )
        return encoded

    def refuse_outside_support(self, name: str, columns: Array) -> None:
        """Raises ValueError, naming column and value, if a known cell has no density in a family (`HasSupport`)."""
        family: Any = self.families[name].bind(self.layouts(())[name])
        for rows in row_blocks(*columns.shape):
            x = np.asarray(columns[rows], dtype=np.float64)
            for i, j in np.argwhere(~(family.in_support(x) | np.isnan(x)))[:1]:
                raise ValueError(
                    f"column {self.column(name, j)!r} contains {x[i, j]:g}, which has no density in a "
                    f"{type(family).__name__}: correct or remove it, or use another family for this column"
                )

    def for_new_rows(self) -> ColumnBinding:
        """This binding for the rows that a trained model predicts."""
        imputing = {name: part for name, part in self.encoders.items() if isinstance(part, ImputesTraining)}
        changed = {name: encoder.for_new_rows() for name, encoder in imputing.items()}
        return replace(self, encoders={**self.encoders, **changed})

    def column(self, family: str, position: int) -> str:
        """Name of a column by its position among those of a family."""
        return self.names[self.chosen[family][position]]

    def extend(self, table: Table) -> tuple[ColumnBinding, NewCodes]:
        """Encoders with the levels of a further table added, and the new codes of old levels if they changed."""
        extended = {name: encoder.extend(table) for name, encoder in self.encoders.items()}
        encoders = {name: encoder for name, (encoder, _) in extended.items()}
        moved = {name: codes for name, (_, codes) in extended.items() if codes is not None}
        return replace(self, encoders=encoders), moved

    def unite(self, other: ColumnBinding) -> tuple[ColumnBinding, NewCodes, NewCodes]:
        """Encoders for the rows of both, and the new codes of the old levels of each if they changed."""
        united = {name: encoder.unite(other.encoders[name]) for name, encoder in self.encoders.items()}
        encoders = {name: encoder for name, (encoder, _, _) in united.items()}
        ours = {name: codes for name, (_, codes, _) in united.items() if codes is not None}
        theirs = {name: codes for name, (_, _, codes) in united.items() if codes is not None}
        return replace(self, encoders=encoders), ours, theirs

    def layouts(self, classes: tuple[str, ...]) -> dict[str, Layout]:
        layouts = {}
        for name, encoder in self.encoders.items():
            columns = tuple(self.names[j] for j in self.chosen[name])
            layouts[name] = Layout(classes, **{"columns": columns, **encoder.layout()})
        return layouts

    def columns(self, family: str) -> tuple[str, ...]:
        """The names of a family's columns."""
        return tuple(self.names[j] for j in self.chosen[family])


def _read_columns(encoder: Any) -> tuple[int, ...]:
    """Positions of the columns that an encoder reads."""
    indices = encoder.numbers.indices if isinstance(encoder, Clusters) else encoder.indices
    return tuple(indices)


def bind(
    specifications: Sequence[tuple[Any, ...]], summary: TableSummary, *, more_to_come: bool = False
) -> ColumnBinding:
    """Fit the encoders of (name, family, columns) or (name, family, columns, encoder) to the summary of a table.

    A family whose selection is empty is left out, and so are columns without a known value, with a warning; if further
    rows are to come, these are an error.
    """
    names = [_checked_specification(entry)[0] for entry in specifications]
    if len(set(names)) < len(names):
        raise ValueError(f"family names must differ: {', '.join(names)}")
    table, families, encoders, chosen = summary.head, {}, {}, {}
    taken: dict[int, str] = {}
    for name, family, selection, *rest in specifications:
        indices = positions(selection, summary)
        is_all = indices is all_positions(len(table.names))
        twice = not is_all and len(set(indices)) < len(indices)
        if twice or (taken and not taken.keys().isdisjoint(indices)):
            _refuse_twice(name, indices, taken, summary)
        if len(specifications) > 1:
            taken |= dict.fromkeys(indices, name)
        if indices:
            encoder: Encoder = rest[0] if rest and rest[0] is not None else ENCODERS[family.reads]()
            try:
                fitted = encoder.fit(summary, indices)
            except AllMissingError:
                if more_to_come:
                    raise
                if not columns_with_values(summary.used, summary):
                    raise ValueError("no column of X has a known value: all cells are missing") from None
                _warn_of_missing(indices, summary)
                if not (indices := columns_with_values(indices, summary)):
                    continue
                fitted = encoder.fit(summary, indices)
            families[name], encoders[name], chosen[name] = family, fitted, tuple(indices)
    if not families:
        raise ValueError("no family has any columns")
    types = table.types()
    conversion = table.conversion or ColumnConversion(table.names, types)
    return ColumnBinding(families, encoders, chosen, table.names, types, table.origin, conversion)


def columns_with_values(indices: Sequence[int], summary: TableSummary) -> list[int]:
    """The columns that have a known value."""
    return [j for j in indices if summary.missing_rows(j) < summary.n]


def _warn_of_missing(indices: Sequence[int], summary: TableSummary) -> None:
    known = columns_with_values(indices, summary)
    empty = [summary.names[j] for j in indices if j not in known]
    few, them = ("column", "it is") if len(empty) == 1 else ("columns", "they are")
    warn(f"{few} {listed(empty)}: no known value, {them} left out", ColumnWarning)


def _encoder(family: Family, given: Encoder | None = None) -> Encoder:
    return ENCODERS[family.reads]() if given is None else given


def read_sparse(specifications: Any) -> bool:
    """Whether every family can read sparse columns; False for invalid specifications, which `bind` reports."""
    try:
        checked = [_checked_specification(entry) for entry in specifications]
        return all(getattr(_encoder(family, *rest), "sparse", False) for _, family, _, *rest in checked)
    except (TypeError, ValueError):
        return False


def named_columns(specifications: Any, table: Table) -> dict[int, bool]:
    """Positions of the columns that are bound by name or position -> whether each distinct value is to be a level."""
    checked = [_checked_specification(entry) for entry in specifications]
    return {
        j: isinstance(_encoder(family, *rest), Levels)
        for _, family, selection, *rest in checked
        if not callable(selection)
        for j in positions(selection, table)
    }


FAMILY_METHODS = ("bind", "prepare", "statistics", "parameters", "log_density", "keep_valid", "reads")


def is_family(given: Any) -> bool:
    """Whether something is a family (an object, not a class)."""
    return not isinstance(given, type) and all(hasattr(given, method) for method in FAMILY_METHODS)


def _checked_specification(entry: Any) -> tuple[Any, ...]:
    """An entry of ``families``. Raises ValueError if it is not one."""
    if not isinstance(entry, tuple | list) or len(entry) not in (3, 4):
        expected = "(name, family, columns) or (name, family, columns, encoder)"
        raise ValueError(f"families must be {expected}, got {entry!r}")
    name, family = entry[0], entry[1]
    if not isinstance(name, str) or name == PRIOR:
        raise ValueError(f"a family's name must be a string other than {PRIOR!r}, got {name!r}")
    lacks = ", ".join(method for method in FAMILY_METHODS if not hasattr(family, method))
    if lacks or isinstance(family, type):
        why = f"it has no {lacks} (a subclass of calibayes.families.Density has them)"
        if isinstance(family, type):
            why = "it is a class: make an object of it"
        raise ValueError(f"{name!r} must be bound to a family such as Gaussian(), got {family!r}: {why}")
    if len(entry) == 3 and family.reads not in ENCODERS:
        known, reads = ", ".join(map(repr, ENCODERS)), f"{type(family).__name__} reads {family.reads!r}"
        raise ValueError(f"{reads}, which is none of {known}: set `reads`, or give {name!r} an encoder")
    if len(entry) == 4 and (isinstance(entry[3], type) or not hasattr(entry[3], "encode")):
        raise ValueError(f"the encoder of {name!r} must be one such as KMeansBins(), got {entry[3]!r}")
    return tuple(entry)


def _with_missing(columns: Array) -> Array:
    """Positions of encoded columns with missing values."""
    return columns_where(columns, np.isnan if columns.dtype.kind == "f" else lambda codes: codes < 0)

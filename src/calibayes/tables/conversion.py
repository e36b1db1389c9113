"""Columns that are no numbers or levels yet: dates and durations are converted, identifiers left out.

What is done to a column is decided by the training rows and then the same for all rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibayes.core.notices import warn
from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_array, require_ascending, require_length, require_positions
from calibayes.tables.dates import ColumnWarning, Converter, Dates, Durations, learned_dates
from calibayes.tables.table import Table, distinct_values, holds_booleans, is_missing, missing_mask

CATEGORICAL, IDENTIFIER = "categorical", "identifier"
"""Kinds that a user may give a column: its values are levels; it is left out."""
ROWS_TO_TELL = 20
"""Least number of known values of a column that can be recognized as an identifier."""
COLUMN_KINDS = "fiubOUSmM"
"""Kinds of NumPy types of columns."""
DISTINCT_SHARE = 0.95
"""A column of text is an identifier if at least this share of its known values are distinct."""


@dataclass(frozen=True)
class ColumnConversion:
    """How the columns of a table are made from those that were read.

    A converted column stays where it was. Columns that are derived from it (month, weekday, hour) follow after all others.
    """

    names: tuple[str, ...]
    types: tuple[np.dtype[Any], ...] = ()
    """Names and types of the columns as they were read."""
    converters: Mapping[int, Converter] = field(default_factory=dict)
    """Position -> how a column becomes a number and levels."""
    identifiers: Mapping[int, str] = field(default_factory=dict)
    """Position of a column that is left out -> why."""

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        d = len(self.names)
        require(len(set(self.names)) == d, "a name of a column occurs twice")
        require_length("types", self.types, d if self.types else 0)
        are_possible = all(dtype.kind in COLUMN_KINDS for dtype in self.types)
        require(are_possible, "a column has a type that no column of a table can have")
        require_positions("converters", self.converters, d)
        require_positions("identifiers", self.identifiers, d)
        are_apart = self.converters.keys().isdisjoint(self.identifiers)
        require(are_apart, "a column is both converted and left out")
        are_known = all(isinstance(converter, Dates | Durations) for converter in self.converters.values())
        require(are_known, "converters must be Dates or Durations")

    @property
    def converted_names(self) -> tuple[str, ...]:
        """Names of the columns of the converted table: those that were read, then the derived ones."""
        return (*self.names, *(name for _, _, name in self.derived))

    @property
    def derived(self) -> tuple[tuple[int, str, str], ...]:
        """Source, part of the calendar and name of each derived column."""
        taken, columns = set(self.names), []
        for j, converter in self.converters.items():
            for part in converter.parts:
                name = f"{self.names[j]} ({part})"
                while name in taken:
                    name += "_"
                taken.add(name)
                columns.append((j, part, name))
        return tuple(columns)

    @property
    def sources(self) -> Mapping[str, str]:
        """Name of a derived column -> name of its source."""
        return {name: self.names[j] for j, _, name in self.derived}

    def apply(self, table: Table) -> Table:
        """The converted table. Raises ValueError if a column of dates holds none any more."""
        if not self.converters:
            return replace(table, conversion=self)
        originals = {j: table.column(j) for j in self.converters}
        typed = {j: converter.read(table, j) for j, converter in self.converters.items()}
        numbers = {j: converter.numbers(typed[j]) for j, converter in self.converters.items()}
        columns = [numbers[j] if j in numbers else table.stored_column(j) for j in range(len(self.names))]
        columns += [self.converters[j].levels(typed[j], part) for j, part, _ in self.derived]
        types = [column.dtype for column in columns]
        for j, kind in enumerate(table.types()):
            types[j] = types[j] if j in numbers else kind
        return replace(
            table,
            names=self.converted_names,
            content=tuple(columns),
            original_types=tuple(types),
            distinct_cache={j: entry for j, entry in table.distinct_cache.items() if j not in numbers},
            missing_cache={j: mask for j, mask in table.missing_cache.items() if j not in numbers},
            conversion=self,
            originals=originals,
        )

    def restored(self, columns: Sequence[Array], originals: Mapping[int, Array]) -> list[Array]:
        """Columns as they were read, from converted ones; cells that were known are taken from ``originals``."""
        restored = list(columns[: len(self.names)])
        for j, converter in self.converters.items():
            restored[j] = _with_known(converter, restored[j], originals.get(j))
        return restored

    def remark(self, j: int) -> str:
        """What was done to a column of the converted table; empty if nothing was."""
        if j >= len(self.names):
            source, part, _ = self.derived[j - len(self.names)]
            return f"{part} of {self.names[source]!r}"
        return self.converters[j].remark if j in self.converters else ""


def _with_known(converter: Converter, numbers: Array, original: Array | None) -> Array:
    """Numbers as dates or durations, with the original cell where it was known."""
    times = converter.restored(numbers)
    if original is None:
        return converter.as_read(times)
    missing = missing_mask(original)
    if original.dtype.kind in "mM":
        return converter.as_read(np.where(missing, times, original), as_text=False)
    cells = converter.as_read(times).astype(object)
    cells[~missing] = original[~missing]
    return cells


def learn_conversion(table: Table, given: Mapping[int, str], *, levels: bool) -> ColumnConversion:
    """The conversion for a training table.

    Parameters
    ----------
    given : mapping
        Position -> kind that the user chose. "categorical" columns are not converted, those of other kinds become
        numbers without levels of the calendar, and "identifier" is left out.
    levels : bool
        Whether the model reads levels; if not, dates become numbers alone and nothing is left out.
    """
    converters: dict[int, Converter] = {}
    identifiers: dict[int, str] = {}
    is_matrix = not isinstance(table.content, tuple) and table.content.dtype.kind in "fiub"
    for j in range(len(table.names)) if not is_matrix or IDENTIFIER in given.values() else ():
        if given.get(j) == IDENTIFIER:
            identifiers[j] = "given"
        elif given.get(j) != CATEGORICAL and not table.is_categorical(j):
            dates = learned_dates(table, j) if _may_be_dates(table, j) else None
            if table.dtype_kind(j) == "m":
                converters[j] = Durations()
            elif dates is not None:
                converters[j] = dates.fit(table, j, calendar=levels and j not in given)
            elif levels and j not in given and (reason := _identifier_reason(table, j)):
                identifiers[j] = reason
    _warn_of_identifiers(table, {j: reason for j, reason in identifiers.items() if j not in given})
    return ColumnConversion(table.names, table.types(), converters, identifiers)


def _may_be_dates(table: Table, j: int) -> bool:
    """Whether a column has a type of dates, or text whose first known value has a digit, as all dates have."""
    if table.dtype_kind(j) not in "OU":
        return table.dtype_kind(j) == "M"
    first = next((cell for cell in table.column(j) if not is_missing(cell)), None)
    return isinstance(first, str) and any(map(str.isdigit, first))


def _identifier_reason(table: Table, j: int) -> str:
    """Why a column is left out as an identifier; empty if it is not."""
    if table.dtype_kind(j) not in "OUS" or holds_booleans(table.column(j)):
        return ""
    values, codes = distinct_values(table, j)
    known = int((codes < len(values)).sum())
    if known < ROWS_TO_TELL or len(values) < DISTINCT_SHARE * known:
        return ""
    return f"{len(values)} distinct values in {known} rows"


def _warn_of_identifiers(table: Table, identifiers: Mapping[int, str]) -> None:
    """Name the columns that are left out. Raises ValueError if no other column remains."""
    if not identifiers:
        return
    listed = ", ".join(repr(table.names[j]) for j in identifiers)
    hint = _hint_of_numbers(table, identifiers)
    if len(identifiers) == len(table.names):
        raise ValueError(
            f"nearly all values are distinct in every column ({listed}): there is nothing to learn from{hint}"
        )
    advice = (
        "to use such a column, convert it to a categorical type of the data frame or, if the estimator has the parameter "
        "kinds, give it the kind 'categorical'"
    )
    reason = "nearly all values are distinct, as in identifiers or free text"
    noun = "column" if len(identifiers) == 1 else "columns"
    warn(f"{noun} {listed} left out: {reason}; {advice}{hint}", ColumnWarning)


def _hint_of_numbers(table: Table, identifiers: Iterable[int]) -> str:
    """What to do about columns of numbers that are written as text; empty if there are none."""
    columns = [repr(table.names[j]) for j in identifiers if _are_numbers(distinct_values(table, j)[0])]
    if not columns:
        return ""
    verb, pronoun = ("holds", "it") if len(columns) == 1 else ("hold", "them")
    return f"; {', '.join(columns)} {verb} numbers written as text: convert {pronoun} to numbers (pandas.to_numeric)"


def _are_numbers(values: Array) -> bool:
    """Whether all values are strings that can be read as numbers."""
    try:
        return all(isinstance(value, str) and np.isfinite(float(value)) for value in values)
    except ValueError:
        return False


# -- Checks of distinct values of a column that come from a model file ---------------------------------------


def verify_distinct(name: str, values: Any) -> None:
    """Raise ValueError unless values are known, distinct and ascending."""
    require_array(name, values, (None,), COLUMN_KINDS)
    are_scalars = values.dtype.kind != "O" or all(isinstance(value, Hashable) for value in values)
    require(are_scalars, f"{name} contains values that cannot be levels")
    require(not missing_mask(values).any(), f"{name} contains missing values")
    require(values.dtype.kind != "f" or bool(np.isfinite(values).all()), f"{name} contains infinity")
    require_ascending(name, values)

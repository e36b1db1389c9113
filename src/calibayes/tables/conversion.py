"""Columns that are no numbers or levels yet: dates and durations are converted, identifiers left out.

What is done to a column is decided by the training rows and then the same for all rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibayes.core.notices import discarded_warnings, warn
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


def learn_conversion(
    table: Table, given: Mapping[int, str], *, levels: bool, has_kinds: bool = False
) -> ColumnConversion:
    """The conversion for a training table.

    Parameters
    ----------
    given : mapping
        Position -> kind that the user chose. "categorical" columns are not converted, those of other kinds become
        numbers without levels of the calendar, and "identifier" is left out.
    levels : bool
        Whether the model reads levels; if not, dates become numbers alone and nothing is left out.
    has_kinds : bool
        Whether the estimator has the parameter ``kinds``, for a warning.
    """
    converters: dict[int, Converter] = {}
    identifiers: dict[int, str] = {}
    is_matrix = not isinstance(table.content, tuple) and table.content.dtype.kind in "fiub"
    for j in range(len(table.names)) if not is_matrix or IDENTIFIER in given.values() else ():
        if given.get(j) == IDENTIFIER:
            identifiers[j] = "given"
        elif given.get(j) != CATEGORICAL and not table.is_categorical(j):
            converter = learned_converter(table, j, calendar=levels and j not in given)
            if converter is not None:
                converters[j] = converter
            elif levels and j not in given and (reason := _identifier_reason(table, j)):
                identifiers[j] = reason
    _warn_of_identifiers(table, {j: why for j, why in identifiers.items() if j not in given}, has_kinds)
    return ColumnConversion(table.names, table.types(), converters, identifiers)


def known_converters(table: Table, conversion: ColumnConversion | None) -> dict[str, Converter]:
    """Name -> converter of columns as they were read: those of a model, or without one those that a model would learn."""
    if conversion is None:
        with discarded_warnings():
            places = [j for j in range(len(table.names)) if not table.is_categorical(j)]
            pairs = [(table.names[j], learned_converter(table, j, calendar=True)) for j in places]
    else:
        pairs = [(name, conversion.converters.get(j)) for j, name in enumerate(conversion.names)]
    return {name: converter for name, converter in pairs if converter is not None}


def learned_converter(table: Table, j: int, *, calendar: bool) -> Converter | None:
    """How a column becomes a number, and with ``calendar`` levels; None for one of numbers, or of text that is no date.

    Text is examined if its first known value has a digit, as all dates have.
    """
    kind = table.dtype_kind(j)
    if kind == "m":
        return Durations()
    if kind in "OU":
        first = next((cell for cell in table.column(j) if not is_missing(cell)), None)
        may_be_dates = isinstance(first, str) and any(map(str.isdigit, first))
    else:
        may_be_dates = kind == "M"
    dates = learned_dates(table, j) if may_be_dates else None
    return None if dates is None else dates.fit(table, j, calendar=calendar)


def _identifier_reason(table: Table, j: int) -> str:
    """Why a column is left out as an identifier; empty if it is not."""
    if table.dtype_kind(j) not in "OUS" or holds_booleans(table.column(j)):
        return ""
    values, codes = distinct_values(table, j)
    known = int((codes < len(values)).sum())
    if known < ROWS_TO_TELL or len(values) < DISTINCT_SHARE * known:
        return ""
    return f"{len(values)} distinct values in {known} rows"


def _warn_of_identifiers(table: Table, identifiers: Mapping[int, str], has_kinds: bool) -> None:
    """Name the columns that are left out. Raises ValueError if no other column remains."""
    if not identifiers:
        return
    listed = ", ".join(repr(table.names[j]) for j in identifiers)
    hint = _hint_of_numbers(table, identifiers)
    if len(identifiers) == len(table.names):
        raise ValueError(
            f"nearly all values are distinct in every column ({listed}): there is nothing to learn from{hint}"
        )
    kind = ", or give it the kind 'categorical' (parameter kinds)" if has_kinds else ""
    advice = f"to use such a column, pass it as a categorical type of a data frame{kind}"
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

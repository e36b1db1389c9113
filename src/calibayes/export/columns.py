"""Columns of the table that a model reads, as numbers or as codes of levels."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from calibayes.core.protocols import Array
from calibayes.export.calendar import CALENDAR
from calibayes.export.expressions import (
    MISSING,
    BooleanColumn,
    Condition,
    Constant,
    DurationColumn,
    Entry,
    Expression,
    IsBeyond,
    IsMissing,
    NumberCode,
    NumberColumn,
    Once,
    TextCode,
    TextColumn,
    TimeColumn,
    Where,
)
from calibayes.tables.conversion import ColumnConversion
from calibayes.tables.date_columns import Dates
from calibayes.tables.dates import CALENDAR as CALENDAR_LEVELS
from calibayes.tables.dates import DATE, DAY, DURATION, SECOND, time_zone


class TableColumn(Protocol):
    """A column of a table after its conversion (a date as a number of days, a month as a level)."""

    def number(self) -> Expression:
        """Its values as numbers. Raises TypeError if they are not numbers."""

    def refused(self) -> Sequence[Condition]:
        """Conditions under which `predict_proba` would raise an error because of a number."""

    def code(self, levels: Array, other: float | None) -> Expression:
        """The position of its value among levels; ``other`` for any other value (None: missing)."""

    def is_missing(self) -> Condition:
        """Whether its value is missing."""


@dataclass(frozen=True)
class Numbers:
    """A column of numbers, booleans (0 and 1), dates (days) or durations (seconds)."""

    name: str
    expression: Expression

    def number(self) -> Expression:
        return self.expression

    def refused(self) -> Sequence[Condition]:
        return [IsBeyond(self.expression)] if isinstance(self.expression, NumberColumn) else []

    def code(self, levels: Array, other: float | None) -> Expression:
        if not len(levels):
            return _code_without_levels(self.is_missing(), other)
        numbers = [_as_float(level, self.name) for level in levels.tolist()]
        if any(left >= right for left, right in pairwise(numbers)):
            raise TypeError(
                f"column {self.name!r} has levels that are equal as float64 numbers, such as {levels[0]!r}: use text "
                "for such codes"
            )
        return NumberCode(Once(self.expression), tuple(numbers), other)

    def is_missing(self) -> Condition:
        return IsMissing(self.expression)


@dataclass(frozen=True)
class Text:
    """A column of text, or of booleans with missing values."""

    name: str

    def number(self) -> Expression:
        return BooleanColumn(self.name)  # an object column that a model reads as numbers holds booleans

    def refused(self) -> Sequence[Condition]:
        return []

    def code(self, levels: Array, other: float | None) -> Expression:
        if not len(levels):
            return _code_without_levels(self.is_missing(), other)
        if all(isinstance(level, str) for level in levels.tolist()):
            return TextCode(TextColumn(self.name), tuple(map(str, levels.tolist())), other)
        kinds = {type(level) for level in levels.tolist()}
        column = BooleanColumn(self.name) if kinds <= {bool} else NumberColumn(self.name)
        return Numbers(self.name, column).code(levels, other)

    def is_missing(self) -> Condition:
        return IsMissing(TextColumn(self.name))


@dataclass(frozen=True)
class CalendarPart:
    """Months, weekdays or hours of a column of dates."""

    name: str
    position: Expression
    """The position of the month, weekday or hour in ``names``."""
    names: tuple[str, ...]

    def number(self) -> Expression:
        raise TypeError(f"column {self.name!r} holds text, not numbers")

    def refused(self) -> Sequence[Condition]:
        return []

    def code(self, levels: Array, other: float | None) -> Expression:
        codes = {level: float(code) for code, level in enumerate(levels.tolist())}
        unseen = np.nan if other is None else other
        return Entry(tuple(codes.get(name, unseen) for name in self.names), self.position)

    def is_missing(self) -> Condition:
        return IsMissing(self.position)


def table_columns(conversion: Any, types: Sequence[np.dtype[Any]]) -> list[TableColumn]:
    """The columns of the converted table: those that were read, then the derived ones.

    Raises TypeError if a column cannot be read outside of Python.
    """
    assert isinstance(conversion, ColumnConversion)
    read = [
        _converted(name, conversion.converters[j])
        if j in conversion.converters
        else _plain(name, types[j].kind)
        for j, name in enumerate(conversion.names)
    ]
    derived = [_calendar(conversion, j, part, name) for j, part, name in conversion.derived]
    return [*read, *derived]


def _plain(name: str, kind: str) -> TableColumn:
    """A column that is not converted, by the kind of its NumPy type."""
    plain: Mapping[str, TableColumn] = {
        "b": Numbers(name, BooleanColumn(name)),
        "M": Numbers(name, TimeColumn(name)),
        "m": Numbers(name, DurationColumn(name)),
        "O": Text(name),
        "U": Text(name),
        "S": Text(name),
    }
    return plain.get(kind) or Numbers(name, NumberColumn(name))


def _converted(name: str, converter: Any) -> TableColumn:
    """Dates as days, durations as seconds."""
    if not isinstance(converter, Dates):
        return Numbers(name, DurationColumn(name) / SECOND)
    return Numbers(name, _times(name, converter, None) / DAY)


def _times(name: str, dates: Dates, zone: str | None) -> Expression:
    if dates.form is not None:
        raise TypeError(
            f"column {name!r} holds dates written as text ({dates.form.name}), which only Python reads as the model does: "
            "train on a column of dates (pandas.to_datetime) to export the model"
        )
    return TimeColumn(name, zone)


def _calendar(conversion: ColumnConversion, j: int, part: str, name: str) -> TableColumn:
    microseconds = Once(_local_times(conversion.names[j], conversion.converters[j]))
    return CalendarPart(name, Once(CALENDAR[part](microseconds)), CALENDAR_LEVELS[part][1])


def _local_times(name: str, dates: Any) -> Expression:
    """Microseconds in the local time of the dates. A fixed offset is added: databases differ in the sign of "UTC+02:00"."""
    if dates.zone is None or dates.zone == "UTC":
        return _times(name, dates, None)
    zone = time_zone(dates.zone)
    if not isinstance(zone, datetime.timezone):
        return _times(name, dates, dates.zone)
    return _times(name, dates, None) + zone.utcoffset(None).total_seconds() * SECOND


def _code_without_levels(missing: Condition, other: float | None) -> Expression:
    return MISSING if other is None else Where(missing, MISSING, Constant(other))


def _as_float(level: Any, name: str) -> float:
    """A level of a column of numbers, booleans, dates or durations, in the units of its expression."""
    if isinstance(level, int | float):
        return float(level)
    raise TypeError(
        f"column {name!r} has a level {level!r} of type {type(level).__name__}, which SQL cannot compare"
    )


def in_microseconds(levels: Array) -> Array:
    """Levels of a column of dates or durations as whole microseconds; others unchanged."""
    if levels.dtype.kind not in "mM":
        return levels
    return levels.astype(DATE if levels.dtype.kind == "M" else DURATION).astype(np.int64)

"""Columns of the table that a model reads, as numbers or as codes of levels."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from calibayes.core.protocols import Array
from calibayes.export.expressions import (
    MISSING,
    BooleanColumn,
    Condition,
    Constant,
    DurationColumn,
    Entry,
    Expression,
    Function,
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
from calibayes.tables.dates import CALENDAR as CALENDAR_LEVELS
from calibayes.tables.dates import DATE, DAY, DURATION, FIRST_WEEKDAY, SECOND, Dates, time_zone

# -- Months, weekdays and hours computed from microseconds since 1970-01-01 by arithmetic --------------------
#
# The only date function that a database must have is thus one that returns microseconds. Months are computed by an algorithm of
# H. Hinnant ("chrono-Compatible Low-Level Date Algorithms"), which counts days from 1 March, so that a leap day is the last day of a
# year.

DAYS_BEFORE_1970 = 719468.0
"""Days from 0000-03-01 to 1970-01-01."""
ERA = 146097.0
"""Days of 400 years."""


def _floored(value: Expression, divisor: float) -> Expression:
    return Function("floor", value / divisor)


def _month(microseconds: Expression) -> Expression:
    """0 to 11."""
    days = Once(_floored(microseconds, DAY) + DAYS_BEFORE_1970)
    of_era = Once(days - _floored(days, ERA) * ERA)
    leap = _floored(of_era, 1460.0) + _floored(of_era, ERA - 1.0)
    year = Once(_floored(of_era - leap + _floored(of_era, 36524.0), 365.0))
    of_year = of_era - (year * 365.0 + _floored(year, 4.0) - _floored(year, 100.0))
    from_march = Once(_floored(of_year * 5.0 + 2.0, 153.0))
    return Where(from_march < 10.0, from_march + 2.0, from_march - 10.0)


def _weekday(microseconds: Expression) -> Expression:
    """0 (Monday) to 6."""
    days = Once(_floored(microseconds, DAY) + FIRST_WEEKDAY)
    return days - _floored(days, 7.0) * 7.0


def _hour(microseconds: Expression) -> Expression:
    """0 to 23."""
    hours = Once(_floored(microseconds, 3600.0 * SECOND))
    return hours - _floored(hours, 24.0) * Constant(24.0)


CALENDAR: Mapping[str, Callable[[Expression], Expression]] = {
    "month": _month,
    "weekday": _weekday,
    "hour": _hour,
}
"""Part of the calendar -> its position among the levels of `calibayes.tables.dates.CALENDAR`."""


# -- Columns of the table that a model reads, as numbers or as codes of levels -------------------------------


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

"""Months, weekdays and hours computed from microseconds since 1970-01-01 by arithmetic.

The only date function that a database must have is thus one that returns microseconds. Months are computed by an algorithm of
H. Hinnant ("chrono-Compatible Low-Level Date Algorithms"), which counts days from 1 March, so that a leap day is the last day of a
year.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from calibayes.export.expressions import Constant, Expression, Function, Once, Where
from calibayes.tables.dates import DAY, FIRST_WEEKDAY, SECOND

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

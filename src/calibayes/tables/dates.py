"""Dates and durations as numbers, and dates as levels of the calendar (month, weekday, hour)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from zoneinfo import ZoneInfo

import numpy as np

from calibayes.core.protocols import Array

DATE, DURATION = np.dtype("M8[us]"), np.dtype("m8[us]")
"""The types of columns of dates (with a time zone: in UTC) and of durations."""
SECOND = 1e6
DAY = 86400 * SECOND
"""In microseconds."""
QUARTER_HOUR = 900
"""In seconds: offsets of time zones change at multiples of this."""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HOURS = tuple(f"{hour:02d}" for hour in range(24))
FIRST_WEEKDAY = 3
"""The weekday of 1970-01-01, a Thursday."""
OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})")
ZONE_NAME = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")
"""The form of names in the database of time zones: no path leads out of it."""


def days_of(dates: Array) -> Array:
    """Days since 1970-01-01, NaN where missing.

    >>> days_of(np.array(["1970-01-02T12:00", "NaT"], dtype=DATE)).tolist()
    [1.5, nan]
    """
    return _in_units(dates, DAY)


def seconds_of(durations: Array) -> Array:
    """Seconds, NaN where missing."""
    return _in_units(durations, SECOND)


def dates_of(days: Array) -> Array:
    """Dates from days since 1970-01-01, to the microsecond; NaT where missing."""
    return _from_units(days, DAY, DATE)


def durations_of(seconds: Array) -> Array:
    """Durations from seconds."""
    return _from_units(seconds, SECOND, DURATION)


def _in_units(times: Array, unit: float) -> Array:
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) / unit)


def _from_units(numbers: Array, unit: float, dtype: np.dtype[np.generic]) -> Array:
    missing = np.isnan(numbers)
    times = np.rint(np.where(missing, 0.0, numbers) * unit).astype(np.int64).astype(dtype)
    times[missing] = np.array("NaT", dtype=dtype)
    return times


def _months(dates: Array) -> Array:
    return np.asarray(dates.astype("M8[M]").astype(np.int64) % 12)


def _weekdays(dates: Array) -> Array:
    return np.asarray((dates.astype("M8[D]").astype(np.int64) + FIRST_WEEKDAY) % 7)


def _hours(dates: Array) -> Array:
    return np.asarray(dates.astype("M8[h]").astype(np.int64) % 24)


CALENDAR: Mapping[str, tuple[Callable[[Array], Array], tuple[str, ...]]] = {
    "month": (_months, MONTHS),
    "weekday": (_weekdays, WEEKDAYS),
    "hour": (_hours, HOURS),
}
"""Part of the calendar -> position of the level of each date, and the levels."""


def calendar_levels(dates: Array, part: str) -> Array:
    """The month, weekday or hour of local dates as text, None where missing.

    >>> calendar_levels(np.array(["2024-02-29", "NaT"], dtype=DATE), "weekday").tolist()
    ['Thu', None]
    """
    missing = np.isnat(dates)
    position_of, levels = CALENDAR[part]
    names = np.array([*levels, None], dtype=object)
    return np.asarray(
        names[np.where(missing, -1, position_of(np.where(missing, np.datetime64(0, "us"), dates)))]
    )


def varying_parts(dates: Array) -> tuple[str, ...]:
    """Parts of the calendar that differ between local dates.

    Dates that are all the first of a month are months: their weekdays say nothing.
    """
    known = dates[~np.isnat(dates)]
    are_months = bool((known == known.astype("M8[M]")).all())
    parts = (part for part in CALENDAR if not (are_months and part == "weekday"))
    return tuple(part for part in parts if len(np.unique(CALENDAR[part][0](known))) > 1)


def local_dates(dates: Array, zone: str | None) -> Array:
    """Dates in UTC as those that a clock in the time zone shows."""
    if zone is None:
        return dates
    missing, tzinfo = np.isnat(dates), time_zone(zone)
    seconds = np.where(missing, 0, dates.astype("M8[s]").astype(np.int64))
    starts, positions = np.unique(seconds // QUARTER_HOUR, return_inverse=True)
    shifts = np.array([_offset(int(start) * QUARTER_HOUR, tzinfo) for start in starts])[positions]
    return np.asarray(dates + (shifts * 10**6).astype(DURATION))


def _offset(seconds: int, zone: datetime.tzinfo) -> int:
    """Offset of a time zone in seconds at a time in seconds since 1970; times that Python cannot represent have none."""
    try:
        moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)
        shift = moment.astimezone(zone).utcoffset()
    except OverflowError:
        return 0
    return 0 if shift is None else int(shift.total_seconds())


def is_zone(name: str) -> bool:
    """Whether a name is that of a time zone in the database of this machine, or an offset of less than a day."""
    if found := OFFSET.fullmatch(name):
        return int(found[2]) < 24 and int(found[3]) < 60
    return ZONE_NAME.fullmatch(name) is not None and isinstance(time_zone(name), ZoneInfo)


def time_zone(name: str) -> datetime.tzinfo:
    """The time zone of a name ("Europe/Berlin") or of an offset ("+02:00", "UTC+02:00"); UTC for an unknown one."""
    if found := OFFSET.fullmatch(name):
        sign, hours, minutes = found.groups()
        shift = datetime.timedelta(hours=int(hours), minutes=int(minutes))
        return datetime.timezone(shift if sign == "+" else -shift)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # no such zone, or no name of one
        return datetime.UTC

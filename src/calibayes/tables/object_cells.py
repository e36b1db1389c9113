"""Cells that are Python objects: decimals, dates, durations, times of day, periods and intervals as typed arrays."""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.dates import DATE, DURATION

NUMBERS = (int, float, Decimal, Fraction, np.integer, np.floating)
DATES = (datetime.date, np.datetime64)
DURATIONS = (datetime.timedelta, np.timedelta64)
HOUR = 3600e6
"""In microseconds."""


def typed_objects(column: Array, missing: Array, name: str) -> Array:
    """An object array as numbers, dates or durations if every known value is one, else unchanged.

    A period is the date of its start, a time of day is in hours since midnight, and an interval is its midpoint.
    Raises ValueError if only some of the dates have a time zone.
    """
    known = [_plain(value) for value in column[~missing]]
    types = {type(value) for value in known}
    if _are(types, NUMBERS) and bool not in types:
        return _filled(np.array([float(value) for value in known]), missing, np.nan)
    if _are(types, DATES):
        _refuse_mixed_zones(known, name)
        dates = np.array([_in_utc(value) for value in known], dtype=DATE)
        return _filled(dates, missing, np.datetime64("NaT", "us"))
    if _are(types, DURATIONS):
        return _filled(np.array(known, dtype=DURATION), missing, np.timedelta64("NaT", "us"))
    return column


def zone_of(column: Array) -> str | None:
    """The time zone of an object array of dates: None without one, "UTC" if there are several."""
    zones = {str(value.tzinfo) for value in column if getattr(value, "tzinfo", None) is not None}
    return None if not zones else zones.pop() if len(zones) == 1 else "UTC"


def _are(types: Collection[type], accepted: tuple[type, ...]) -> bool:
    return all(issubclass(kind, accepted) for kind in types)


def _filled(known: Array, missing: Array, gap: Any) -> Array:
    """An array of the known values, with a gap where values are missing."""
    filled = np.full(len(missing), gap, dtype=known.dtype)
    filled[~missing] = known
    return filled


def _plain(value: Any) -> Any:
    """A period as a date, a time as hours, an interval as its midpoint; anything else unchanged.

    Periods and intervals are those of pandas, which need not be installed: they are recognized by name.
    """
    kind = type(value).__name__
    if kind == "Period" and hasattr(value, "to_timestamp"):
        return value.to_timestamp()
    if kind == "Interval" and hasattr(value, "left"):
        return _midpoint(value.left, value.right)
    if isinstance(value, datetime.time):
        return _hours(value)
    return value


def _midpoint(left: Any, right: Any) -> Any:
    """The midpoint of an interval, or its finite end if the other one is infinite."""
    ends = [end for end in (left, right) if not (isinstance(end, float | np.floating) and math.isinf(end))]
    return ends[0] + (ends[-1] - ends[0]) / 2 if ends else math.nan


def _hours(time: datetime.time) -> float:
    seconds = 3600 * time.hour + 60 * time.minute + time.second
    return (seconds * 10**6 + time.microsecond) / HOUR


def _in_utc(value: Any) -> Any:
    if getattr(value, "tzinfo", None) is None:
        return value
    return value.astimezone(datetime.UTC).replace(tzinfo=None)


def _refuse_mixed_zones(values: list[Any], name: str) -> None:
    if len({getattr(value, "tzinfo", None) is None for value in values}) > 1:
        raise ValueError(
            f"column {name!r} mixes dates with and without a time zone: give all of them one, or none"
        )

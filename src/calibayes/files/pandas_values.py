"""Codecs of the values of pandas that can be levels of a column: intervals, dates, durations and periods.

pandas is imported when such a value is read. If it is not imported when a model is saved, the model has none of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from calibayes.storage.codec import Codec, Write, typed
from calibayes.storage.values import of_parts
from calibayes.tables.dates import is_zone

FREQUENCY: Final = re.compile(r"\d{0,4}[A-Za-z]{1,4}(-[A-Z]{3})?")
"""Such as D, 2h or Q-DEC."""


def _timestamp(date: Any, zone: Any) -> Any:
    import pandas

    typed(date, np.datetime64, "a date")
    if zone is None:
        return pandas.Timestamp(date)
    if not isinstance(zone, str) or not is_zone(zone):
        raise ValueError(f"{str(zone)[:80]!r} is no time zone of this machine")
    return pandas.Timestamp(date, tz="UTC").tz_convert(zone)


def _timestamp_parts(value: Any) -> Sequence[Any]:
    zone = None if value.tzinfo is None else str(value.tzinfo)
    return value.asm8 if zone is None else value.tz_convert("UTC").tz_localize(None).asm8, zone


def _timedelta(duration: Any) -> Any:
    import pandas

    return pandas.Timedelta(typed(duration, np.timedelta64, "a duration"))


def _period(ordinal: Any, frequency: Any) -> Any:
    import pandas

    if type(ordinal) is not int or not isinstance(frequency, str) or not FREQUENCY.fullmatch(frequency):
        raise ValueError(f"no period: {ordinal!r}, {frequency!r}")
    return pandas.Period(ordinal=ordinal, freq=frequency)


def _interval(left: Any, right: Any, closed: Any) -> Any:
    import pandas

    return pandas.Interval(left, right, closed=closed)


PANDAS_VALUES: Final[Mapping[str, Codec]] = {
    "Interval": of_parts("$interval", lambda value: (value.left, value.right, value.closed), _interval),
    "Timestamp": of_parts("$timestamp", _timestamp_parts, _timestamp),
    "Timedelta": of_parts("$pandas_timedelta", lambda value: (value.asm8,), _timedelta),
    "Period": of_parts("$period", lambda value: (value.ordinal, value.freqstr), _period),
}
"""Name of a type of pandas -> codec."""


def pandas_writes() -> Mapping[Any, Write]:
    """Type -> how its values are written, if pandas is imported."""
    pandas = sys.modules.get("pandas")
    return (
        {}
        if pandas is None
        else {getattr(pandas, name): codec.write for name, codec in PANDAS_VALUES.items()}
    )

"""Dates and durations as numbers, and dates as levels of the calendar (month, weekday, hour)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np

from calibayes.core.notices import warn
from calibayes.core.protocols import Array
from calibayes.core.verify import require
from calibayes.tables.table import Table, distinct_values

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


def dates_of(days: Array) -> Array:
    """Dates from days since 1970-01-01, to the microsecond; NaT where missing."""
    return _from_units(days, DAY, DATE)


def _in_units(times: Array, unit: float) -> Array:
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) / unit)


def _from_units(numbers: Array, unit: float, dtype: np.dtype[np.generic]) -> Array:
    missing = np.isnan(numbers)
    times = np.rint(np.where(missing, 0.0, numbers) * unit).astype(np.int64).astype(dtype)
    times[missing] = np.array("NaT", dtype=dtype)
    return times


CALENDAR: Mapping[str, tuple[Callable[[Array], Array], tuple[str, ...]]] = {
    "month": (lambda dates: dates.astype("M8[M]").astype(np.int64) % 12, MONTHS),
    "weekday": (lambda dates: (dates.astype("M8[D]").astype(np.int64) + FIRST_WEEKDAY) % 7, WEEKDAYS),
    "hour": (lambda dates: dates.astype("M8[h]").astype(np.int64) % 24, HOURS),
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
    positions = position_of(np.where(missing, np.datetime64(0, "us"), dates))
    return np.asarray(names[np.where(missing, -1, positions)])


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


# -- Dates written as text: recognize the format of a column, read it, and write dates in it -----------------

TIME = (
    r"(?:(?P<separator>[T ])(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?: ?(?P<half>[AaPp][Mm]))?(?: ?(?P<offset>Z|[+-]\d{2}(?::?\d{2})?))?)?"
)
"""A time of day after a date, with or without seconds, AM or PM and an offset from UTC."""
YEAR, MONTH, DATE_DAY = r"(?P<year>\d{4})", r"(?P<month>\d{1,2})", r"(?P<day>\d{1,2})"
MONTH_NAME = r"(?P<name>[A-Za-z]{3,9})"
FULL_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
HOURS_AND_MINUTES, SECONDS = "{hour:02d}:{minute:02d}", ":{second:02d}"
TIMES = ("", *(start + HOURS_AND_MINUTES + end for start in "T " for end in ("", SECONDS)))
"""The times that a format may have, as format strings."""
TRIED_FIRST = 8
"""Number of distinct values that a format must fit before all others are tried."""


@dataclass(frozen=True)
class DateFormat:
    """A way to write dates.

    Attributes
    ----------
    name : str
        For people, such as "YYYY-MM-DD".
    pattern : str
        A regular expression of the date, without the time.
    written : str
        The date as a format string.
    time : str
        The time as a format string; empty if the dates of a column have none.
    has_offset : bool
        Whether the dates of a column have an offset from UTC.
    """

    name: str
    pattern: str
    written: str
    time: str = ""
    has_offset: bool = False

    def verify(self) -> None:
        """Raises ValueError unless it is one of `FORMATS` with a time that `like` adds: no other pattern is ever used."""
        plain = replace(self, time="", has_offset=False)
        require(plain in FORMATS, f"{self.name!r} is no known format of dates")
        require(self.time in TIMES, f"{self.time!r} is no known format of times")
        require(bool(self.time) or not self.has_offset, "dates without a time have no offset from UTC")

    def read(self, text: str) -> Moment | None:
        """The date of a text, or None if it is not written in this format."""
        found = re.fullmatch(self.pattern + TIME, text.strip())
        return None if found is None else _moment(found)

    def write(self, date: datetime.datetime) -> str:
        """A date, in UTC if the column has offsets, as text."""
        fields = {name: getattr(date, name) for name in ("year", "month", "day", "hour", "minute", "second")}
        text = (self.written + self.time).format(**fields, month_name=MONTHS[date.month - 1])
        return f"{text}+00:00" if self.has_offset else text

    def like(self, text: str) -> DateFormat:
        """This format with the time as a text has it."""
        found = re.fullmatch(self.pattern + TIME, text.strip())
        if found is None or found["separator"] is None:
            return self
        time = found["separator"] + HOURS_AND_MINUTES + (SECONDS if found["second"] else "")
        return replace(self, time=time, has_offset=found["offset"] is not None)


class Moment(NamedTuple):
    """A date that was read; if it had an offset, in UTC."""

    date: datetime.datetime
    has_offset: bool


FORMATS = (
    DateFormat("YYYY-MM-DD", rf"{YEAR}-{MONTH}-{DATE_DAY}", "{year:04d}-{month:02d}-{day:02d}"),
    DateFormat("YYYY/MM/DD", rf"{YEAR}/{MONTH}/{DATE_DAY}", "{year:04d}/{month:02d}/{day:02d}"),
    DateFormat("YYYY-MM", rf"{YEAR}-(?P<month>\d{{2}})", "{year:04d}-{month:02d}"),
    DateFormat("DD.MM.YYYY", rf"{DATE_DAY}\.{MONTH}\.{YEAR}", "{day:02d}.{month:02d}.{year:04d}"),
    DateFormat("DD/MM/YYYY", rf"{DATE_DAY}/{MONTH}/{YEAR}", "{day:02d}/{month:02d}/{year:04d}"),
    DateFormat("MM/DD/YYYY", rf"{MONTH}/{DATE_DAY}/{YEAR}", "{month:02d}/{day:02d}/{year:04d}"),
    DateFormat("DD-MM-YYYY", rf"{DATE_DAY}-{MONTH}-{YEAR}", "{day:02d}-{month:02d}-{year:04d}"),
    DateFormat("MM-DD-YYYY", rf"{MONTH}-{DATE_DAY}-{YEAR}", "{month:02d}-{day:02d}-{year:04d}"),
    DateFormat("DD Mon YYYY", rf"{DATE_DAY}[ -]{MONTH_NAME}[ -]{YEAR}", "{day:02d} {month_name} {year:04d}"),
    DateFormat("Mon DD, YYYY", rf"{MONTH_NAME} {DATE_DAY},? {YEAR}", "{month_name} {day:02d}, {year:04d}"),
)
"""The formats that are recognized."""


def formats_of(texts: Sequence[str]) -> list[DateFormat]:
    """The formats in which all texts are dates: none, one, or two if the order of day and month is not evident.

    >>> [form.name for form in formats_of(["01/02/2024", "01/31/2024"])]
    ['MM/DD/YYYY']
    >>> [form.name for form in formats_of(["01/02/2024", "03/04/2024"])]
    ['DD/MM/YYYY', 'MM/DD/YYYY']
    """
    candidates = [form for form in FORMATS if _fits(form, texts[:TRIED_FIRST])]
    return [form.like(texts[0]) for form in candidates if _fits(form, texts)]


def _fits(form: DateFormat, texts: Iterable[str]) -> bool:
    """Whether all texts are dates of a format, all of them with an offset from UTC or none."""
    offsets = set()
    for text in texts:
        moment = form.read(text)
        if moment is None:
            return False
        offsets.add(moment.has_offset)
    return len(offsets) == 1


def _moment(found: re.Match[str]) -> Moment | None:
    """The date of a match, or None if there is no such day or time."""
    fields = found.groupdict()
    month = _month_number(fields["name"]) if fields.get("name") else int(fields["month"])
    hour = _hour(int(fields["hour"] or 0), fields["half"])
    microsecond = int((fields["fraction"] or "0").ljust(6, "0")[:6])
    minute, second = int(fields["minute"] or 0), int(fields["second"] or 0)
    year, day = int(fields["year"]), int(fields.get("day") or 1)
    try:
        date = datetime.datetime(year, month, day, hour, minute, second, microsecond)
        return Moment(date - _shift(fields["offset"]), fields["offset"] is not None)
    except (ValueError, OverflowError):
        return None


def _month_number(name: str) -> int:
    """1 to 12 for the English name of a month or its first three letters; 0 for any other word."""
    matches = [number for number, full in enumerate(FULL_NAMES, 1) if name.lower() in (full, full[:3])]
    return matches[0] if matches else 0


def _hour(hour: int, half: str | None) -> int:
    """The hour of the day, from AM or PM; 24, which is none, for a wrong one."""
    if half is None:
        return hour
    return hour % 12 + 12 * (half.lower() == "pm") if 1 <= hour <= 12 else 24


def _shift(offset: str | None) -> datetime.timedelta:
    if offset is None or offset == "Z":
        return datetime.timedelta(0)
    shift = datetime.timedelta(hours=int(offset[1:3]), minutes=int(offset[3:].lstrip(":") or 0))
    return -shift if offset[0] == "-" else shift


# -- Columns of dates and of durations: as numbers, as levels of the calendar, and back ----------------------


class ColumnWarning(UserWarning):
    """A column is left out, or it has values that could not be read.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ColumnWarning)  # an error instead of a warning
    """


@dataclass(frozen=True)
class Durations:
    """Durations as seconds; the methods are those of `Dates`."""

    parts: ClassVar[tuple[str, ...]] = ()
    remark: ClassVar[str] = "durations, in seconds"

    def read(self, table: Table, j: int) -> Array:
        column = table.column(j)
        if column.dtype.kind == "m":
            return column
        _refuse_unless_missing(table, j, "durations")
        return np.full(table.n, np.timedelta64("NaT", "us"), dtype=DURATION)

    def numbers(self, column: Array) -> Array:
        return _in_units(column, SECOND)

    def levels(self, column: Array, part: str) -> Array:
        raise ValueError("durations have no levels of the calendar")

    def restored(self, numbers: Array) -> Array:
        return _from_units(numbers, SECOND, DURATION)

    def as_read(self, column: Array, *, as_text: bool = True) -> Array:
        return column


@dataclass(frozen=True)
class Dates:
    """Dates as days since 1970-01-01, and as levels of the calendar in their time zone.

    Attributes
    ----------
    zone : str or None
        The time zone; with one, days are counted in UTC.
    form : DateFormat or None
        The format of dates that are written as text.
    parts : tuple of str
        Parts of the calendar that become columns of levels.
    are_days : bool
        Whether the dates have no time of day, so that restored ones are rounded to days.
    """

    zone: str | None = None
    form: DateFormat | None = None
    parts: tuple[str, ...] = ()
    are_days: bool = False

    @property
    def remark(self) -> str:
        """What was recognized, for a schema."""
        source = "dates" if self.form is None else f"text read as dates ({self.form.name})"
        return f"{source}, in days"

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require(self.zone is None or is_zone(self.zone), f"{self.zone!r} is no time zone of this machine")
        if self.form is not None:
            expected = "UTC" if self.form.has_offset else None
            require(self.zone == expected, f"dates written as text have the time zone {self.zone!r}")
        known = tuple(part for part in CALENDAR if part in self.parts)
        require(self.parts == known, f"parts must be among {', '.join(CALENDAR)}, in this order")
        require(not self.are_days or self.zone is None, "dates with a time zone are no days")

    def fit(self, table: Table, j: int, *, calendar: bool) -> Dates:
        """The same with what depends on the dates of a column: if ``calendar``, the parts of the calendar that vary."""
        dates = self.read(table, j)
        parts = varying_parts(local_dates(dates, self.zone)) if calendar else ()
        known = dates[~np.isnat(dates)]
        are_days = self.zone is None and bool((known == known.astype("M8[D]")).all())
        return replace(self, parts=parts, are_days=are_days)

    def read(self, table: Table, j: int) -> Array:
        """The column as dates. Raises ValueError if it holds none."""
        if table.dtype_kind(j) in "OUS":
            return self._read_text(table, j)
        if table.dtype_kind(j) != "M":
            _refuse_unless_missing(table, j, "dates")
            return np.full(table.n, np.datetime64("NaT", "us"), dtype=DATE)
        column = table.column(j)
        if not np.isnat(column).all():
            self._refuse_other_zone(j in table.zones, table.names[j])
        return column

    def _read_text(self, table: Table, j: int) -> Array:
        """Dates from text; what is not written in the format is missing, with a warning."""
        form = FORMATS[0] if self.form is None else self.form
        values, codes = distinct_values(table, j)
        cells = values.tolist()
        moments = [form.read(cell) if isinstance(cell, str) else None for cell in cells]
        for moment in moments:
            if moment is not None:
                self._refuse_other_zone(moment.has_offset, table.names[j])
        unread = [place for place, moment in enumerate(moments) if moment is None]
        if unread:
            count = int(np.isin(codes, unread).sum())
            warn(
                f"column {table.names[j]!r}: {count} of {table.n} cells, such as {cells[unread[0]]!r}, are no dates written as "
                f"{form.name}: taken as missing",
                ColumnWarning,
            )
        dates = [None if moment is None else moment.date for moment in moments]
        return np.asarray(np.array([*dates, None], dtype=DATE)[codes])

    def _refuse_other_zone(self, has_zone: bool, name: str) -> None:
        if has_zone != (self.zone is not None):
            old, new = ("a", "no") if self.zone is not None else ("no", "a")
            raise ValueError(
                f"the dates of column {name!r} had {old} time zone in training and now have {new} time zone"
            )

    def numbers(self, column: Array) -> Array:
        """Dates as numbers."""
        return days_of(column)

    def levels(self, column: Array, part: str) -> Array:
        """Dates as levels of a part of the calendar."""
        return calendar_levels(local_dates(column, self.zone), part)

    def restored(self, numbers: Array) -> Array:
        """Numbers as dates."""
        return dates_of(np.rint(numbers) if self.are_days else numbers)

    def as_read(self, column: Array, *, as_text: bool = True) -> Array:
        """Dates as the training column had them: with a time zone, or as text unless not ``as_text``."""
        if self.form is not None and as_text:
            return _each_known(self.form.write, column)
        if self.zone is None:
            return column
        zone = time_zone(self.zone)
        return _each_known(lambda date: date.replace(tzinfo=datetime.UTC).astimezone(zone), column)


Converter: TypeAlias = Dates | Durations
"""How a column becomes numbers and levels."""


def learned_dates(table: Table, j: int) -> Dates | None:
    """How a column of dates, or of text in which all known values are dates of one format, is read; else None."""
    if table.dtype_kind(j) == "M":
        zone = table.zones.get(j)
        return Dates("UTC" if zone is not None and not is_zone(zone) else zone)
    values = distinct_values(table, j)[0].tolist()
    if not all(isinstance(value, str) for value in values):
        return None
    forms = formats_of(values)
    if len(forms) > 1:
        warn(
            f"column {table.names[j]!r} holds dates in which day and month cannot be told apart, such as "
            f"{values[0]!r}: they are levels; convert the column to dates first",
            ColumnWarning,
        )
    return Dates("UTC" if forms[0].has_offset else None, forms[0]) if len(forms) == 1 else None


def _each_known(function: Callable[[datetime.datetime], Any], dates: Array) -> Array:
    """A function of each date, as an object array; None where missing."""
    return np.array([None if date is None else function(date) for date in dates.tolist()], dtype=object)


def _refuse_unless_missing(table: Table, j: int, held: str) -> None:
    """Raises ValueError if a column that held dates or durations in training holds something else now."""
    if not table.missing_mask(j).all():
        raise ValueError(f"column {table.names[j]!r} held {held} in training and now holds other values")

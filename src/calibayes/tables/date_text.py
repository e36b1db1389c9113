"""Dates written as text: recognize the format of a column, read it, and write dates in it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from calibayes.core.verify import require
from calibayes.tables.dates import MONTHS

TIME = (
    r"(?:(?P<separator>[T ])(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?: ?(?P<half>[AaPp][Mm]))?(?: ?(?P<offset>Z|[+-]\d{2}:?\d{2}))?)?"
)
"""A time of day after a date, with or without seconds, AM or PM and an offset from UTC."""
YEAR, MONTH, DAY = r"(?P<year>\d{4})", r"(?P<month>\d{1,2})", r"(?P<day>\d{1,2})"
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
    DateFormat("YYYY-MM-DD", rf"{YEAR}-{MONTH}-{DAY}", "{year:04d}-{month:02d}-{day:02d}"),
    DateFormat("YYYY/MM/DD", rf"{YEAR}/{MONTH}/{DAY}", "{year:04d}/{month:02d}/{day:02d}"),
    DateFormat("YYYY-MM", rf"{YEAR}-(?P<month>\d{{2}})", "{year:04d}-{month:02d}"),
    DateFormat("DD.MM.YYYY", rf"{DAY}\.{MONTH}\.{YEAR}", "{day:02d}.{month:02d}.{year:04d}"),
    DateFormat("DD/MM/YYYY", rf"{DAY}/{MONTH}/{YEAR}", "{day:02d}/{month:02d}/{year:04d}"),
    DateFormat("MM/DD/YYYY", rf"{MONTH}/{DAY}/{YEAR}", "{month:02d}/{day:02d}/{year:04d}"),
    DateFormat("DD-MM-YYYY", rf"{DAY}-{MONTH}-{YEAR}", "{day:02d}-{month:02d}-{year:04d}"),
    DateFormat("MM-DD-YYYY", rf"{MONTH}-{DAY}-{YEAR}", "{month:02d}-{day:02d}-{year:04d}"),
    DateFormat("DD Mon YYYY", rf"{DAY}[ -]{MONTH_NAME}[ -]{YEAR}", "{day:02d} {month_name} {year:04d}"),
    DateFormat("Mon DD, YYYY", rf"{MONTH_NAME} {DAY},? {YEAR}", "{month_name} {day:02d}, {year:04d}"),
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
    try:
        date = datetime.datetime(
            int(fields["year"]), month, int(fields.get("day") or 1), hour, minute, second, microsecond
        )
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
    shift = datetime.timedelta(hours=int(offset[1:3]), minutes=int(offset[-2:]))
    return -shift if offset[0] == "-" else shift

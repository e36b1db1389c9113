"""Columns of dates and of durations: as numbers, as levels of the calendar, and back."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from calibayes.core.notices import warn
from calibayes.core.protocols import Array
from calibayes.core.verify import require
from calibayes.tables.date_text import FORMATS, DateFormat, Moment, formats_of
from calibayes.tables.dates import (
    CALENDAR,
    DATE,
    DURATION,
    calendar_levels,
    dates_of,
    days_of,
    durations_of,
    is_zone,
    local_dates,
    seconds_of,
    time_zone,
    varying_parts,
)
from calibayes.tables.distinct import distinct_values
from calibayes.tables.table import Table, is_missing


class ColumnWarning(UserWarning):
    """A column is left out, or it has values that could not be read.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ColumnWarning)  # an error instead of a warning
    """


class Converter(Protocol):
    """How a column becomes numbers and levels."""

    @property
    def parts(self) -> Sequence[str]:
        """Parts of the calendar that become columns of levels."""

    @property
    def remark(self) -> str:
        """What was recognized, for a schema."""

    def read(self, table: Table, j: int) -> Array:
        """The column as dates or durations. Raises ValueError if it holds none."""

    def numbers(self, column: Array) -> Array:
        """Dates or durations as numbers."""

    def levels(self, column: Array, part: str) -> Array:
        """Dates as levels of a part of the calendar."""

    def restored(self, numbers: Array) -> Array:
        """Numbers as dates or durations."""

    def as_read(self, column: Array, *, as_text: bool = True) -> Array:
        """Dates or durations as the training column had them: with a time zone, or as text unless not ``as_text``."""


@dataclass(frozen=True)
class Durations:
    """Durations as seconds."""

    parts: ClassVar[tuple[str, ...]] = ()
    remark: ClassVar[str] = "durations, in seconds"

    def read(self, table: Table, j: int) -> Array:
        column = table.column(j)
        if column.dtype.kind == "m":
            return column
        _refuse_unless_missing(table, j, "durations")
        return np.full(table.n, np.timedelta64("NaT", "us"), dtype=DURATION)

    def numbers(self, column: Array) -> Array:
        return seconds_of(column)

    def levels(self, column: Array, part: str) -> Array:
        raise ValueError("durations have no levels of the calendar")

    def restored(self, numbers: Array) -> Array:
        return durations_of(numbers)

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
        return replace(
            self, parts=parts, are_days=self.zone is None and bool((known == known.astype("M8[D]")).all())
        )

    def read(self, table: Table, j: int) -> Array:
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
        moments = [_moment(form, value) for value in values.tolist()]
        for moment in moments:
            if moment is not None:
                self._refuse_other_zone(moment.has_offset, table.names[j])
        unread = [value for value, moment in zip(values.tolist(), moments, strict=True) if moment is None]
        if unread:
            count = int(
                np.isin(codes, [place for place, moment in enumerate(moments) if moment is None]).sum()
            )
            warn(
                f"column {table.names[j]!r}: {count} of {table.n} cells, such as {unread[0]!r}, are no dates written as "
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
        return days_of(column)

    def levels(self, column: Array, part: str) -> Array:
        return calendar_levels(local_dates(column, self.zone), part)

    def restored(self, numbers: Array) -> Array:
        return dates_of(np.rint(numbers) if self.are_days else numbers)

    def as_read(self, column: Array, *, as_text: bool = True) -> Array:
        if self.form is not None and as_text:
            return _each_known(self.form.write, column)
        if self.zone is None:
            return column
        zone = time_zone(self.zone)
        return _each_known(lambda date: date.replace(tzinfo=datetime.UTC).astimezone(zone), column)


def learned_dates(table: Table, j: int) -> Dates | None:
    """How a column of dates, or of text in which all known values are dates of one format, is read; else None."""
    if table.dtype_kind(j) == "M":
        zone = table.zones.get(j)
        return Dates("UTC" if zone is not None and not is_zone(zone) else zone)
    if table.dtype_kind(j) not in "OU":
        return None
    first = next((cell for cell in table.column(j) if not is_missing(cell)), None)
    if not isinstance(first, str):
        return None
    values = distinct_values(table, j)[0].tolist()
    if not values or not all(isinstance(value, str) for value in values):
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


def _moment(form: DateFormat, value: Any) -> Moment | None:
    return form.read(value) if isinstance(value, str) else None


def _refuse_unless_missing(table: Table, j: int, held: str) -> None:
    """Raises ValueError if a column that held dates or durations in training holds something else now."""
    if not table.missing_mask(j).all():
        raise ValueError(f"column {table.names[j]!r} held {held} in training and now holds other values")

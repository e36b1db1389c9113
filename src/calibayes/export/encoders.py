"""Encoders as expressions: the number or the code of a level that a cell of the table is encoded as."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from calibayes import encoders
from calibayes.core.protocols import Array
from calibayes.encoders.bins import Bins
from calibayes.encoders.dense import FARTHEST, AsinhScaled, Indicators, MissingIndicator
from calibayes.encoders.leaves import OrderedBytes
from calibayes.encoders.numbers import Counts
from calibayes.export import expressions as ex
from calibayes.kernels.forests import Forest, TreeNodes
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


def _floored(value: ex.Expression, divisor: float) -> ex.Expression:
    return ex.Function("floor", value / divisor)


def _month(microseconds: ex.Expression) -> ex.Expression:
    """0 to 11."""
    days = ex.Once(_floored(microseconds, DAY) + DAYS_BEFORE_1970)
    of_era = ex.Once(days - _floored(days, ERA) * ERA)
    leap = _floored(of_era, 1460.0) + _floored(of_era, ERA - 1.0)
    year = ex.Once(_floored(of_era - leap + _floored(of_era, 36524.0), 365.0))
    of_year = of_era - (year * 365.0 + _floored(year, 4.0) - _floored(year, 100.0))
    from_march = ex.Once(_floored(of_year * 5.0 + 2.0, 153.0))
    return ex.Where(from_march < 10.0, from_march + 2.0, from_march - 10.0)


def _weekday(microseconds: ex.Expression) -> ex.Expression:
    """0 (Monday) to 6."""
    days = ex.Once(_floored(microseconds, DAY) + FIRST_WEEKDAY)
    return days - _floored(days, 7.0) * 7.0


def _hour(microseconds: ex.Expression) -> ex.Expression:
    """0 to 23."""
    hours = ex.Once(_floored(microseconds, 3600.0 * SECOND))
    return hours - _floored(hours, 24.0) * 24.0


CALENDAR: Mapping[str, Callable[[ex.Expression], ex.Expression]] = {
    "month": _month,
    "weekday": _weekday,
    "hour": _hour,
}
"""Part of the calendar -> its position among the levels of `calibayes.tables.dates.CALENDAR`."""


# -- Columns of the table that a model reads, as numbers or as codes of levels -------------------------------


@dataclass(frozen=True)
class TableColumn(ABC):
    """A column of a table after its conversion (a date as a number of days, a month as a level)."""

    name: str

    def number(self) -> ex.Expression:
        """Its values as numbers. Raises TypeError if they are not numbers."""
        raise TypeError(f"column {self.name!r} holds text, not numbers")

    @abstractmethod
    def code(self, levels: Array, other: float | None) -> ex.Expression:
        """The position of its value among levels; ``other`` for any other value (None: missing)."""

    @abstractmethod
    def is_missing(self) -> ex.Condition:
        """Whether its value is missing."""


@dataclass(frozen=True)
class NumberCells(TableColumn):
    """A column of numbers, booleans (0 and 1), dates (days) or durations (seconds)."""

    expression: ex.Expression

    def number(self) -> ex.Expression:
        return self.expression

    def code(self, levels: Array, other: float | None) -> ex.Expression:
        if not len(levels):
            return _code_without_levels(self.is_missing(), other)
        numbers = [_as_float(level, self.name) for level in levels.tolist()]
        if any(left >= right for left, right in pairwise(numbers)):
            raise TypeError(
                f"column {self.name!r} has levels that are equal as float64 numbers, such as {levels[0]!r}: use text "
                "for such codes"
            )
        return ex.NumberCode(ex.Once(self.expression), tuple(numbers), other)

    def is_missing(self) -> ex.Condition:
        return ex.IsMissing(self.expression)


@dataclass(frozen=True)
class TextCells(TableColumn):
    """A column of text, or of booleans with missing values."""

    def number(self) -> ex.Expression:
        return ex.BooleanColumn(self.name)  # an object column that a model reads as numbers holds booleans

    def code(self, levels: Array, other: float | None) -> ex.Expression:
        if not len(levels):
            return _code_without_levels(self.is_missing(), other)
        if all(isinstance(level, str) for level in levels.tolist()):
            return ex.TextCode(ex.TextColumn(self.name), tuple(map(str, levels.tolist())), other)
        kinds = {type(level) for level in levels.tolist()}
        column = ex.BooleanColumn(self.name) if kinds <= {bool} else ex.NumberColumn(self.name)
        return NumberCells(self.name, column).code(levels, other)

    def is_missing(self) -> ex.Condition:
        return ex.IsMissing(ex.TextColumn(self.name))


@dataclass(frozen=True)
class CalendarPart(TableColumn):
    """Months, weekdays or hours of a column of dates."""

    position: ex.Expression
    """The position of the month, weekday or hour in ``names``."""
    names: tuple[str, ...]

    def code(self, levels: Array, other: float | None) -> ex.Expression:
        codes = {level: float(code) for code, level in enumerate(levels.tolist())}
        unseen = np.nan if other is None else other
        return ex.TableEntry(tuple(codes.get(name, unseen) for name in self.names), self.position)

    def is_missing(self) -> ex.Condition:
        return ex.IsMissing(self.position)


def table_columns(conversion: Any, types: Sequence[np.dtype[Any]]) -> list[TableColumn]:
    """The columns of the converted table: those that were read, then the derived ones.

    Raises TypeError if a column cannot be read outside of Python.
    """
    assert isinstance(conversion, ColumnConversion)
    converters = conversion.converters
    read = [
        _converted(name, converters[j]) if j in converters else _plain(name, types[j].kind)
        for j, name in enumerate(conversion.names)
    ]
    derived = [_calendar(conversion, j, part, name) for j, part, name in conversion.derived]
    return [*read, *derived]


def _plain(name: str, kind: str) -> TableColumn:
    """A column that is not converted, by the kind of its NumPy type."""
    if kind in "OUS":
        return TextCells(name)
    columns = {"b": ex.BooleanColumn, "M": ex.TimeColumn, "m": ex.DurationColumn}
    return NumberCells(name, columns.get(kind, ex.NumberColumn)(name))


def _converted(name: str, converter: Any) -> TableColumn:
    """Dates as days, durations as seconds."""
    if not isinstance(converter, Dates):
        return NumberCells(name, ex.DurationColumn(name) / SECOND)
    return NumberCells(name, _times(name, converter, None) / DAY)


def _times(name: str, dates: Dates, zone: str | None) -> ex.Expression:
    if dates.form is not None:
        raise TypeError(
            f"column {name!r} holds dates written as text ({dates.form.name}), which only Python reads as the model does: "
            "train on a column of dates (pandas.to_datetime) to export the model"
        )
    return ex.TimeColumn(name, zone)


def _calendar(conversion: ColumnConversion, j: int, part: str, name: str) -> TableColumn:
    microseconds = ex.Once(_local_times(conversion.names[j], conversion.converters[j]))
    return CalendarPart(name, ex.Once(CALENDAR[part](microseconds)), CALENDAR_LEVELS[part][1])


def _local_times(name: str, dates: Any) -> ex.Expression:
    """Microseconds in the local time of the dates. A fixed offset is added: databases differ in the sign of "UTC+02:00"."""
    if dates.zone is None or dates.zone == "UTC":
        return _times(name, dates, None)
    zone = time_zone(dates.zone)
    if not isinstance(zone, datetime.timezone):
        return _times(name, dates, dates.zone)
    return _times(name, dates, None) + zone.utcoffset(None).total_seconds() * SECOND


def _code_without_levels(missing: ex.Condition, other: float | None) -> ex.Expression:
    return ex.MISSING if other is None else ex.where(missing, ex.MISSING, other)


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


# -- Decision trees over columns of bytes: the leaf of a row in each tree, by nested comparisons -------------


def leaves(forest: Forest, columns: Sequence[ex.Expression]) -> list[ex.Expression]:
    """The number of the leaf of a row in each tree."""
    return [ex.Once(_leaf(tree, 0, columns)) for tree in forest.trees()]


def _leaf(tree: TreeNodes, node: int, columns: Sequence[ex.Expression]) -> ex.Expression:
    """The leaf of a row in the subtree of a node. A comparison with a missing byte is false: "otherwise" is its branch."""
    left, right = (int(child) for child in tree.children[node])
    if tree.column[node] < 0:
        return ex.Constant(float(left))
    byte, most = columns[tree.column[node]], ex.Constant(float(tree.most[node]))
    below, above = _leaf(tree, left, columns), _leaf(tree, right, columns)
    is_left = tree.missing_left[node]
    return ex.Where(most < byte, above, below) if is_left else ex.Where(byte <= most, below, above)


# -- Encoders as expressions: the number or the code of a level that a cell of the table is encoded as -------


class Encoded(NamedTuple):
    """Encoded columns: numbers or codes, missing where the encoder returns NaN or the code -1."""

    columns: ex.Columns
    refused: list[ex.Condition]
    """Conditions under which `predict_proba` would raise an error."""


@singledispatch
def encode_columns(encoder: Any, table: Sequence[TableColumn]) -> Encoded:
    """The encoded columns of a table. Raises TypeError if the encoder cannot be written as expressions."""
    raise TypeError(
        f"its columns are encoded by {type(encoder).__name__}, which is not written as an expression"
    )


def _numbers(indices: Sequence[int], table: Sequence[TableColumn]) -> Encoded:
    """Columns of numbers, each computed once."""
    return Encoded([ex.Once(table[j].number()) for j in indices], _refused(indices, table))


def _refused(indices: Sequence[int], table: Sequence[TableColumn]) -> list[ex.Condition]:
    """Conditions under which `predict_proba` would raise an error because of a number."""
    cells = [column.expression for j in indices if isinstance(column := table[j], NumberCells)]
    return [ex.IsBeyond(cell) for cell in cells if isinstance(cell, ex.NumberColumn)]


@encode_columns.register
def _(encoder: encoders.Numbers, table: Sequence[TableColumn]) -> Encoded:
    return _numbers(encoder.indices, table)


@encode_columns.register
def _(encoder: encoders.Clusters, table: Sequence[TableColumn]) -> Encoded:
    return _numbers(encoder.numbers.indices, table)


@encode_columns.register
def _(encoder: Counts, table: Sequence[TableColumn]) -> Encoded:
    numbers = _numbers(encoder.indices, table)
    return Encoded(numbers.columns, [*numbers.refused, *(column < 0.0 for column in numbers.columns)])


@encode_columns.register
def _(encoder: encoders.Flags, table: Sequence[TableColumn]) -> Encoded:
    columns, refused = _numbers(encoder.indices, table)
    if encoder.threshold is None:
        return Encoded(columns, [*refused, *(_is_no_flag(column) for column in columns)])
    least = ex.Constant(encoder.threshold)
    flags = [ex.where(least < x, 1.0, ex.where(x <= least, 0.0, ex.MISSING)) for x in columns]
    return Encoded([ex.Once(flag) for flag in flags], refused)


def _is_no_flag(column: ex.Expression) -> ex.Condition:
    """Whether a number is neither 0 nor 1."""
    between = ex.where(ex.Constant(0.0) < column, ex.Constant(1.0) - column, 0.0)
    return ex.AnyTrue((column < 0.0, ex.Constant(1.0) < column, ex.Constant(0.0) < between))


@encode_columns.register
def _(encoder: encoders.Levels, table: Sequence[TableColumn]) -> Encoded:
    codes = [ex.Once(code) for code in _level_codes(encoder, table)]
    return Encoded(codes, _refused(encoder.indices, table))


def _level_codes(encoder: encoders.Levels, table: Sequence[TableColumn]) -> list[ex.Expression]:
    return [
        table[j].code(in_microseconds(levels), float(len(levels)) if len(pooled) else None)
        for j, levels, pooled in zip(encoder.indices, encoder.levels, encoder.pooled, strict=True)
    ]


@encode_columns.register
def _(encoder: Bins, table: Sequence[TableColumn]) -> Encoded:
    columns, refused = _numbers(encoder.indices, table)
    pairs = zip(columns, encoder.edges, strict=True)
    return Encoded([ex.Once(ex.BinCode(x, tuple(edges[1:-1].tolist()))) for x, edges in pairs], refused)


@encode_columns.register
def _(encoder: encoders.Grid, table: Sequence[TableColumn]) -> Encoded:
    columns, refused = _numbers(encoder.indices, table)
    triples = zip(columns, encoder.origin.tolist(), encoder.step.tolist(), strict=True)
    return Encoded([ex.Once((x - origin) / step) for x, origin, step in triples], refused)


@encode_columns.register
def _(encoder: encoders.ByColumnType, table: Sequence[TableColumn]) -> Encoded:
    columns: dict[int, ex.Expression] = {}
    refused: list[ex.Condition] = []
    for part, places in zip(encoder.parts, encoder.places, strict=True):
        inner = encode_columns(part, table)
        columns.update(zip(places, inner.columns, strict=True))
        refused += inner.refused
    return Encoded([columns[place] for place in range(len(encoder.indices))], refused)


@encode_columns.register
def _(encoder: encoders.MissingAsLevel, table: Sequence[TableColumn]) -> Encoded:
    inner = encode_columns(encoder.inner, table) if encoder.inner_places else Encoded([], [])
    codes: list[ex.Expression] = [ex.MISSING] * len(encoder.indices)
    for place, code in zip(encoder.inner_places, inner.columns, strict=True):
        codes[place] = code
    sizes = np.array(encoder.layout()["levels"]) - np.array(encoder.has_missing)
    for place, (j, size, has_missing) in enumerate(
        zip(encoder.indices, sizes.tolist(), encoder.has_missing, strict=True)
    ):
        if has_missing and encoder.missing_is_coded:
            codes[place] = ex.Once(ex.where(table[j].is_missing(), size, codes[place]))
    return Encoded(codes, inner.refused)


@encode_columns.register
def _(encoder: OrderedBytes, table: Sequence[TableColumn]) -> Encoded:
    """The byte of each column; missing where it is 0, for a missing value or a level that did not occur in training."""
    columns: list[ex.Expression] = [ex.MISSING] * len(encoder.indices)
    inner = encode_columns(encoder.inner, table) if encoder.places else Encoded([], [])
    for place, order, code in zip(encoder.places, encoder.orders, inner.columns, strict=True):
        bytes_of_codes = np.where(order > 0, order.astype(np.float64), np.nan)
        columns[place] = ex.Once(ex.TableEntry(tuple(bytes_of_codes.tolist()), code))
    return Encoded(columns, inner.refused)


@encode_columns.register
def _(encoder: encoders.Leaves, table: Sequence[TableColumn]) -> Encoded:
    columns, refused = encode_columns(encoder.bytes, table)
    return Encoded(leaves(encoder.forest, columns), refused)


# -- mixed columns as standardized numbers -------------------------------------------------------------------------


@encode_columns.register
def _(encoder: encoders.Dense, table: Sequence[TableColumn]) -> Encoded:
    if not encoder.leaves_missing:
        raise TypeError("its columns are encoded as for training rows, with missing values imputed")
    raw: list[ex.Expression] = []
    refused: list[ex.Condition] = []
    for indices, part in encoder.parts:
        raw += _dense_part(part, indices, table)
        refused += _refused(indices, table)
    known = [
        ex.Filled(x, ex.Constant(0.0)) if indicated else x
        for x, indicated in zip(raw, encoder.indicated, strict=True)
    ]
    kept = [x for x, varies in zip(known, encoder.varying, strict=True) if varies]
    triples = zip(kept, encoder.mean.tolist(), encoder.deviation.tolist(), strict=True)
    return Encoded([ex.Once((x - mean) / deviation) for x, mean, deviation in triples], refused)


@singledispatch
def _dense_part(part: Any, indices: Sequence[int], table: Sequence[TableColumn]) -> list[ex.Expression]:
    """The columns of a part of `Dense`, before standardization."""
    raise TypeError(
        f"its columns are encoded by {type(part).__name__}, which is not written as an expression"
    )


@_dense_part.register
def _(part: AsinhScaled, indices: Sequence[int], table: Sequence[TableColumn]) -> list[ex.Expression]:
    columns = [table[j].number() for j in indices]
    scaled = zip(columns, part.median.tolist(), part.scale.tolist(), strict=True)
    return [
        _asinh(ex.Once(_clipped(ex.Once(x - median), FARTHEST * min(scale, 1.0)) / scale))
        for x, median, scale in scaled
    ]


def _clipped(x: ex.Expression, limit: float) -> ex.Expression:
    return ex.where(x < -limit, -limit, ex.where(ex.Constant(limit) < x, limit, x))


def _asinh(x: ex.Expression) -> ex.Expression:
    """log(|x| + sqrt(x^2 + 1)) with the sign of x; log(2 |x|) where the 1 makes no difference."""
    size = ex.Once(ex.Where(x < 0.0, ex.Constant(0.0) - x, x))
    near = ex.Function("log", size + ex.Function("sqrt", size * size + 1.0))
    far = ex.Function("log", size) + float(np.log(2.0))
    value = ex.Once(ex.Where(ex.Constant(1e9) < size, far, near))
    return ex.Where(x < 0.0, ex.Constant(0.0) - value, value)


@_dense_part.register
def _(part: Indicators, indices: Sequence[int], table: Sequence[TableColumn]) -> list[ex.Expression]:
    size = part.levels.layout()["levels"][0]
    shown = len(part.named_columns([""]))
    code = ex.Once(_level_codes(part.levels, table)[0])
    return [_indicator(code, float(level), table[indices[0]]) for level in range(size - shown, size)]


def _indicator(code: ex.Expression, level: float, column: TableColumn) -> ex.Expression:
    """1 where a code is that of a level, 0 for other levels and unknown ones, missing where the value is missing."""
    is_level = ex.where(code < level, 0.0, ex.where(code <= level, 1.0, 0.0))
    return ex.Where(column.is_missing(), ex.MISSING, is_level)


@_dense_part.register
def _(part: MissingIndicator, indices: Sequence[int], table: Sequence[TableColumn]) -> list[ex.Expression]:
    return [ex.where(table[j].is_missing(), 1.0, 0.0) for j in indices]

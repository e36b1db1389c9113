"""Encoders as expressions: the number or the code of a level that a cell of the table is encoded as."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.bins import Bins, Grid
from calibayes.encoders.by_column_type import ByColumnType, MissingAsLevel
from calibayes.encoders.dense import FARTHEST, AsinhScaled, Dense, Indicators, MissingIndicator
from calibayes.encoders.encoder import Encoder
from calibayes.encoders.leaves import Leaves, OrderedBytes
from calibayes.encoders.levels import Levels
from calibayes.encoders.numbers import Clusters, Counts, Flags, Numbers
from calibayes.export.columns import TableColumn, in_microseconds
from calibayes.export.expressions import (
    MISSING,
    AnyOf,
    Bin,
    Condition,
    Constant,
    Entry,
    Expression,
    Filled,
    Function,
    IsMissing,
    Once,
    Where,
)
from calibayes.kernels.forests import Forest, TreeNodes

# -- Decision trees over columns of bytes: the leaf of a row in each tree, by nested comparisons -------------

Encode = Callable[[Encoder, Sequence[TableColumn]], tuple[list[Expression], list[Condition]]]
"""The encoded columns of a table, and conditions under which `predict_proba` would raise an error."""


def byte_columns(
    encoder: OrderedBytes, table: Sequence[TableColumn], encode: Encode
) -> tuple[list[Expression], list[Condition]]:
    """The byte of each column; missing where it is 0, for a missing value or a level that did not occur in training."""
    columns: list[Expression] = [MISSING] * len(encoder.indices)
    if not encoder.places:
        return columns, []
    codes, refused = encode(encoder.inner, table)
    for place, order, code in zip(encoder.places, encoder.orders, codes, strict=True):
        columns[place] = Once(Entry(_without_zero(order), code))
    return columns, refused


def _without_zero(order: Array) -> tuple[float, ...]:
    return tuple(np.where(order > 0, order.astype(np.float64), np.nan).tolist())


def leaves(forest: Forest, columns: Sequence[Expression]) -> list[Expression]:
    """The number of the leaf of a row in each tree."""
    return [Once(_leaf(tree, 0, columns)) for tree in forest.trees()]


def _leaf(tree: TreeNodes, node: int, columns: Sequence[Expression]) -> Expression:
    """The leaf of a row in the subtree of a node. A comparison with a missing byte is false: "otherwise" is its branch."""
    left, right = (int(child) for child in tree.children[node])
    if tree.column[node] < 0:
        return Constant(float(left))
    byte, most = columns[tree.column[node]], Constant(float(tree.most[node]))
    below, above = _leaf(tree, left, columns), _leaf(tree, right, columns)
    return Where(most < byte, above, below) if tree.missing_left[node] else Where(byte <= most, below, above)


# -- Encoders as expressions: the number or the code of a level that a cell of the table is encoded as -------


class Encoded(NamedTuple):
    """Encoded columns: numbers or codes, missing where the encoder returns NaN or the code -1."""

    columns: list[Expression]
    refused: list[Condition]
    """Conditions under which `predict_proba` would raise an error."""


@singledispatch
def encoded(encoder: Any, table: Sequence[TableColumn]) -> Encoded:
    """The encoded columns of a table. Raises TypeError if the encoder cannot be written as expressions."""
    raise TypeError(
        f"its columns are encoded by {type(encoder).__name__}, which is not written as an expression"
    )


def _numbers(indices: Sequence[int], table: Sequence[TableColumn]) -> Encoded:
    """Columns of numbers, each computed once."""
    refused = [condition for j in indices for condition in table[j].refused()]
    return Encoded([Once(table[j].number()) for j in indices], refused)


@encoded.register
def _(encoder: Numbers, table: Sequence[TableColumn]) -> Encoded:
    return _numbers(encoder.indices, table)


@encoded.register
def _(encoder: Clusters, table: Sequence[TableColumn]) -> Encoded:
    return _numbers(encoder.numbers.indices, table)


@encoded.register
def _(encoder: Counts, table: Sequence[TableColumn]) -> Encoded:
    numbers = _numbers(encoder.indices, table)
    return Encoded(numbers.columns, [*numbers.refused, *(column < 0.0 for column in numbers.columns)])


@encoded.register
def _(encoder: Flags, table: Sequence[TableColumn]) -> Encoded:
    columns, refused = _numbers(encoder.indices, table)
    if encoder.threshold is None:
        return Encoded(columns, [*refused, *(_is_no_flag(column) for column in columns)])
    least = Constant(encoder.threshold)
    flags = [Where(least < x, Constant(1.0), Where(x <= least, Constant(0.0), MISSING)) for x in columns]
    return Encoded([Once(flag) for flag in flags], refused)


def _is_no_flag(column: Expression) -> Condition:
    """Whether a number is neither 0 nor 1."""
    between = Where(Constant(0.0) < column, Constant(1.0) - column, Constant(0.0))
    return AnyOf((column < 0.0, Constant(1.0) < column, Constant(0.0) < between))


@encoded.register
def _(encoder: Levels, table: Sequence[TableColumn]) -> Encoded:
    refused = [condition for j in encoder.indices for condition in table[j].refused()]
    return Encoded([Once(code) for code in _level_codes(encoder, table)], refused)


def _level_codes(encoder: Levels, table: Sequence[TableColumn]) -> list[Expression]:
    return [
        table[j].code(in_microseconds(levels), float(len(levels)) if len(pooled) else None)
        for j, levels, pooled in zip(encoder.indices, encoder.levels, encoder.pooled, strict=True)
    ]


@encoded.register
def _(encoder: Bins, table: Sequence[TableColumn]) -> Encoded:
    columns, refused = _numbers(encoder.indices, table)
    pairs = zip(columns, encoder.edges, strict=True)
    return Encoded([Once(Bin(x, tuple(edges[1:-1].tolist()))) for x, edges in pairs], refused)


@encoded.register
def _(encoder: Grid, table: Sequence[TableColumn]) -> Encoded:
    columns, refused = _numbers(encoder.indices, table)
    triples = zip(columns, encoder.origin.tolist(), encoder.step.tolist(), strict=True)
    return Encoded([Once((x - origin) / step) for x, origin, step in triples], refused)


@encoded.register
def _(encoder: ByColumnType, table: Sequence[TableColumn]) -> Encoded:
    columns: dict[int, Expression] = {}
    refused: list[Condition] = []
    for part, places in zip(encoder.parts, encoder.places, strict=True):
        inner = encoded(part, table)
        columns.update(zip(places, inner.columns, strict=True))
        refused += inner.refused
    return Encoded([columns[place] for place in range(len(encoder.indices))], refused)


@encoded.register
def _(encoder: MissingAsLevel, table: Sequence[TableColumn]) -> Encoded:
    inner = encoded(encoder.inner, table) if encoder.inner_places else Encoded([], [])
    codes: list[Expression] = [MISSING] * len(encoder.indices)
    for place, code in zip(encoder.inner_places, inner.columns, strict=True):
        codes[place] = code
    sizes = np.array(encoder.layout()["levels"]) - np.array(encoder.has_missing)
    for place, (j, size, has_missing) in enumerate(
        zip(encoder.indices, sizes.tolist(), encoder.has_missing, strict=True)
    ):
        if has_missing and encoder.missing_is_coded:
            codes[place] = Once(Where(table[j].is_missing(), Constant(float(size)), codes[place]))
    return Encoded(codes, inner.refused)


@encoded.register
def _(encoder: Leaves, table: Sequence[TableColumn]) -> Encoded:
    columns, refused = byte_columns(encoder.bytes, table, encoded)
    return Encoded(leaves(encoder.forest, columns), refused)


# -- mixed columns as standardized numbers -------------------------------------------------------------------------


@encoded.register
def _(encoder: Dense, table: Sequence[TableColumn]) -> Encoded:
    if not encoder.leaves_missing:
        raise TypeError("its columns are encoded as for training rows, with missing values imputed")
    raw: list[Expression] = []
    refused: list[Condition] = []
    for indices, part in encoder.parts:
        raw += _dense_part(part, indices, table)
        refused += [condition for j in indices for condition in table[j].refused()]
    known = [
        Filled(x, Constant(0.0)) if indicated else x
        for x, indicated in zip(raw, encoder.indicated, strict=True)
    ]
    kept = [x for x, varies in zip(known, encoder.varying, strict=True) if varies]
    triples = zip(kept, encoder.mean.tolist(), encoder.deviation.tolist(), strict=True)
    return Encoded([Once((x - mean) / deviation) for x, mean, deviation in triples], refused)


@singledispatch
def _dense_part(part: Any, indices: Sequence[int], table: Sequence[TableColumn]) -> list[Expression]:
    """The columns of a part of `Dense`, before standardization."""
    raise TypeError(
        f"its columns are encoded by {type(part).__name__}, which is not written as an expression"
    )


@_dense_part.register
def _(part: AsinhScaled, indices: Sequence[int], table: Sequence[TableColumn]) -> list[Expression]:
    columns = [table[j].number() for j in indices]
    scaled = zip(columns, part.median.tolist(), part.scale.tolist(), strict=True)
    return [
        _asinh(Once(_clipped(Once(x - median), FARTHEST * min(scale, 1.0)) / scale))
        for x, median, scale in scaled
    ]


def _clipped(x: Expression, limit: float) -> Expression:
    return Where(x < -limit, Constant(-limit), Where(Constant(limit) < x, Constant(limit), x))


def _asinh(x: Expression) -> Expression:
    """log(|x| + sqrt(x^2 + 1)) with the sign of x; log(2 |x|) where the 1 makes no difference."""
    size = Once(Where(x < 0.0, Constant(0.0) - x, x))
    near = Function("log", size + Function("sqrt", size * size + 1.0))
    far = Function("log", size) + float(np.log(2.0))
    value = Once(Where(Constant(1e9) < size, far, near))
    return Where(x < 0.0, Constant(0.0) - value, value)


@_dense_part.register
def _(part: Indicators, indices: Sequence[int], table: Sequence[TableColumn]) -> list[Expression]:
    size = part.levels.layout()["levels"][0]
    shown = len(part.named_columns([""]))
    code = Once(_level_codes(part.levels, table)[0])
    return [_indicator(code, float(level), table[indices[0]]) for level in range(size - shown, size)]


def _indicator(code: Expression, level: float, column: TableColumn) -> Expression:
    """1 where a code is that of a level, 0 for other levels and unknown ones, missing where the value is missing."""
    is_level = Where(code < level, Constant(0.0), Where(code <= level, Constant(1.0), Constant(0.0)))
    return Where(column.is_missing(), MISSING, is_level)


@_dense_part.register
def _(part: MissingIndicator, indices: Sequence[int], table: Sequence[TableColumn]) -> list[Expression]:
    return [Where(table[j].is_missing(), Constant(1.0), Constant(0.0)) for j in indices]


def is_incomplete(columns: Sequence[Expression]) -> Condition:
    """Whether one of the columns is missing."""
    return AnyOf(tuple(IsMissing(column) for column in columns))

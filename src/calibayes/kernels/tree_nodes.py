"""Nodes of a tree: the bytes of their rows, sums of residuals, their best split, and the rows of their children."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import (
    as_float64,
    as_int64,
    as_type,
    is_matrix,
    native_team,
    twin,
)
from calibayes.kernels.posterior import exact_posterior

# -- Residuals and their variances as whole numbers, two in one: sums of them are exact, in any order --------
#
# A packed number is ``residual * 2**32 + variance`` in units of 1 / scale. The scale is such that the sum of all variances
# is at most 2**30, so that neither part of any sum overflows. Sums of blocks, of threads and of machines are the same bits,
# and the sums of one child are those of its parent minus those of the other, without rounding. Numbers are rounded up or down
# by a fraction of each row, so that sums of many small ones are right on average. Of two classes the second is enough: the
# residuals of the first are the opposite ones, and the variances the same. Posteriors have the same bits everywhere, too.

LARGEST_SUM = 2.0**30
"""Largest sum of the weights of all rows, in units of 1 / scale."""
SMALLEST_SUM = 2.0**-900
"""A smaller sum of weights is taken for this one, so that the scale is finite."""
HALF = 2**32
FINER = 2.0**31
"""Units of the sums of leaves in one of packed numbers: sums of weights are at most 2**61."""
LOSS_UNITS = 2.0**16
"""Units of losses in one of packed numbers."""
LARGEST_LOSS = 2.0**16
"""A log loss of a row that is larger counts as this one: sums are at most 2**62."""


def scale_of(weight: Array) -> float:
    """Units per row, a power of two, such that the sum of all weights (n,) fits into a packed number, for any order of them."""
    exponent = int(np.frexp(max(float(np.max(weight, initial=0.0)), SMALLEST_SUM * 2.0**-60))[1])
    # Whole numbers, rounded up: their sum does not depend on the order of the rows.
    total = int(np.ceil(np.ldexp(weight, 28 - exponent)).astype(np.int64).sum())
    size = max(np.ldexp(float(total), exponent - 28), SMALLEST_SUM)
    return float(2.0 ** np.floor(np.log2(LARGEST_SUM) - np.log2(size)))


def variances(posterior: Array) -> Array:
    """P (1 - P) of posteriors (n, k), times k / (k - 1): the second derivative of the log loss if all classes may move."""
    k = posterior.shape[1]
    if k < 2:
        raise ValueError(f"residuals need two classes, got {k}")
    return np.asarray(posterior * (1.0 - posterior) * (k / (k - 1)))


def native_packed_residuals(
    module: Any, scores: Array, labels: Array, weight: Array, scale: float, fractions: Array
) -> Any:
    if not is_matrix(scores, "f"):
        return NotImplemented
    packed = np.empty((len(scores), packed_classes(scores.shape[1])), dtype=np.int64)
    rows = as_float64(scores), as_int64(labels), as_float64(weight)
    module.packed_residuals(*rows, scale, as_float64(fractions), native_team(module), packed)
    return packed


@twin(native_packed_residuals)
def packed_residuals(scores: Array, labels: Array, weight: Array, scale: float, fractions: Array) -> Array:
    """Packed weight * (1[label] - posterior) and weight * variance, (n, k), or (n, 1) of the second of two classes.

    ``scores`` (n, k) are log posteriors up to a constant of each row, ``labels`` (n,) class codes, ``fractions`` (n,) those by
    which each row is rounded.
    """
    posterior = exact_posterior(scores).posterior
    units, rounding = (weight * scale)[:, None], fractions[:, None]
    packed = np.floor(variances(posterior) * units + rounding).astype(np.int64)
    packed -= np.floor(posterior * units + rounding).astype(np.int64) * HALF
    packed[np.arange(len(labels)), labels] += np.floor(weight * scale + fractions).astype(np.int64) * HALF
    return packed[:, -packed_classes(posterior.shape[1]) :].copy()


def packed_classes(k: int) -> int:
    """Number of classes whose numbers are packed, of k."""
    return 1 if k == 2 else k


def native_with_factors(module: Any, scores: Array, codes: Array, factors: Array) -> Any:
    if not is_matrix(scores, "f") or not scores.shape[1]:
        return NotImplemented
    moved = np.array(scores, dtype=np.float64, order="C")
    module.add_factors(as_float64(factors), as_type(codes, np.int32), native_team(module), moved)
    return moved


@twin(native_with_factors)
def with_factors(scores: Array, codes: Array, factors: Array) -> Array:
    """Log scores (n, k) plus the log factors (leaves, k) of the leaf of each row."""
    return np.asarray(scores + factors[codes])


class LeafSums(NamedTuple):
    """Sums over the rows of each leaf."""

    residual: Array
    """Of weight * (1[label] - posterior), (leaves, k)."""
    variance: Array
    """Of weight * variance, (leaves, k)."""
    mass: Array
    """Of the weights, (leaves,)."""


def native_leaf_sums(
    module: Any, scores: Array, codes: Array, labels: Array, weight: Array, leaves: int, scale: float
) -> Any:
    if not is_matrix(scores, "f"):
        return NotImplemented
    residuals, variances = np.zeros((2, leaves, scores.shape[1]), dtype=np.int64)
    sums = LeafSums(residuals, variances, np.zeros(leaves, dtype=np.int64))
    rows = as_float64(scores), as_type(codes, np.int32), as_int64(labels), as_float64(weight)
    finer = scale * FINER
    module.leaf_sums(*rows, finer, native_team(module), *sums)
    return LeafSums(sums.residual / finer, sums.variance / finer, sums.mass / finer)


@twin(native_leaf_sums)
def leaf_sums(
    scores: Array, codes: Array, labels: Array, weight: Array, leaves: int, scale: float
) -> LeafSums:
    """`LeafSums` over rows with log scores (n, k), leaves ``codes`` (n,) and class codes ``labels`` (n,).

    They are added up as whole numbers, in finer units than those of packed numbers with this ``scale``.
    """
    posterior, finer = exact_posterior(scores).posterior, scale * FINER
    units = weight * finer
    mass, spread = (
        np.floor(units).astype(np.int64),
        np.floor(variances(posterior) * units[:, None]).astype(np.int64),
    )
    deviation = -np.floor(posterior * units[:, None]).astype(np.int64)
    deviation[np.arange(len(labels)), labels] += mass
    sums = LeafSums(
        *(np.zeros((leaves, *part.shape[1:]), dtype=np.int64) for part in (deviation, spread, mass))
    )
    for of_leaves, of_rows in zip(sums, (deviation, spread, mass), strict=True):
        np.add.at(of_leaves, codes, of_rows)
    return LeafSums(*(part / finer for part in sums))


def native_whole_loss(module: Any, scores: Array, labels: Array, weight: Array, scale: float) -> Any:
    if not is_matrix(scores, "f"):
        return NotImplemented
    rows = as_float64(scores), as_int64(labels), as_float64(weight)
    return int(module.whole_loss(*rows, scale, LARGEST_LOSS, native_team(module)))


@twin(native_whole_loss)
def whole_loss(scores: Array, labels: Array, weight: Array, scale: float) -> int:
    """The weighted sum of the log losses of rows with log scores (n, k), a whole number of units of 1 / scale."""
    exact = exact_posterior(scores)
    losses = exact.log_sum - exact.shifted[np.arange(len(labels)), labels]
    units = np.floor(np.minimum(losses, LARGEST_LOSS) * (weight * scale) + 0.5)
    return int(units.astype(np.int64).sum())


def residual(packed: Array) -> Array:
    """The residuals of packed numbers, as floats."""
    return np.right_shift(packed - (packed & (HALF - 1)), 32).astype(np.float64)


def variance(packed: Array) -> Array:
    """The variances of packed numbers, as floats."""
    return (packed & (HALF - 1)).astype(np.float64)


# -- Nodes of a tree: sums over their rows, their best split, and the rows of their children -----------------


class Split(NamedTuple):
    """A condition on one column: codes from 1 to ``most`` go left, larger ones right."""

    gain: float
    """0 if there is no split."""
    column: int
    most: int
    missing_left: bool


NO_SPLIT = Split(0.0, -1, 0, False)


class SplitOptions(NamedTuple):
    """Which splits are possible. Sums are in units of 1 / scale, see `calibayes.kernels.tree_nodes`."""

    columns: Array
    """The columns that may be split, (m,) int32: of equal gains the first of them is taken."""
    direction: Array
    """1 (-1) if the log odds of the second class may only rise (fall) with a column, else 0, (d,) int8."""
    prior: float
    """Added to variances: the precision of a prior with mean 0 of the log factors of leaves."""
    least: float
    """Smallest variance of a side, over all classes whose numbers are packed."""

    def in_memory(self) -> SplitOptions:
        """The options in the types and the memory layout that native code reads."""
        columns, direction = as_type(self.columns, np.int32), as_type(self.direction, np.int8)
        return SplitOptions(columns, direction, self.prior, self.least)


class Bounds(NamedTuple):
    """Bounds of the change of the log odds of the second class, in a node below a split of a column with a direction."""

    low: float = -np.inf
    high: float = np.inf


UNBOUNDED = Bounds()


def native_node_sums(module: Any, columns: ByteColumns, rows: Array, packed: Array) -> Any:
    if not columns.d or not packed.shape[1]:
        return NotImplemented
    words, first = columns.in_memory()
    chosen, numbers = as_type(rows, np.int32), as_int64(packed)
    out = np.empty((int(first[-1]), packed.shape[1]), dtype=np.int64)
    module.node_sums(words, chosen, numbers, first, out)
    return out


@twin(native_node_sums)
def node_sums(columns: ByteColumns, rows: Array, packed: Array) -> Array:
    """Sums of packed numbers (n, c) over some rows (int32) by cell, (cells, c)."""
    chosen = packed[rows]
    whole, part = residual(chosen), variance(chosen)
    sums = np.zeros((int(columns.first[-1]), packed.shape[1]), dtype=np.int64)
    for j, (begin, end) in enumerate(pairwise(columns.first)):
        codes = columns.column(j)[rows]
        for c in range(packed.shape[1]):  # exact: sums are below 2**53
            residuals = np.bincount(codes, whole[:, c], minlength=end - begin)
            variances = np.bincount(codes, part[:, c], minlength=end - begin)
            sums[begin:end, c] = residuals.astype(np.int64) * HALF + variances.astype(np.int64)
    return sums


def native_best_split(
    module: Any, sums: Array, first: Array, options: SplitOptions, bounds: Bounds = UNBOUNDED
) -> Any:
    if not len(options.direction) or not sums.shape[1]:
        return NotImplemented
    return Split(*module.best_split(as_int64(sums), as_int64(first), *options.in_memory(), *bounds))


@twin(native_best_split)
def best_split(sums: Array, first: Array, options: SplitOptions, bounds: Bounds = UNBOUNDED) -> Split:
    """The split of the largest gain: sum over classes and sides of residual**2 / (variance + prior), minus that of the node.

    ``sums`` (cells, c) are packed. Of equal gains the first is taken: in the order of the columns, then missing values to
    the right before those to the left, then by code. Where no value of the column is missing in the node, missing ones go
    to the larger side.
    """
    best = NO_SPLIT
    for j in options.columns:
        column = sums[first[j] : first[j + 1]]
        for missing_left in (False, True) if column[0].any() else (False,):
            direction = int(options.direction[j])
            gain, most, larger_left = _best_of_column(column, options, direction, bounds, missing_left)
            if gain > best.gain:
                is_left = missing_left if column[0].any() else larger_left
                best = Split(gain, int(j), most, is_left)
    return best


def _best_of_column(
    column: Array, options: SplitOptions, direction: int, bounds: Bounds, missing_left: bool
) -> tuple[float, int, bool]:
    """Gain and last code on the left of the best split of a column, (codes, c) packed sums; whether the left is larger."""
    if len(column) < 2:
        return 0.0, 0, False
    total = column.sum(axis=0)
    left = np.cumsum(column[1:], axis=0) + (column[0] if missing_left else 0)
    right = total - left
    gain = _quality(left, options.prior) + _quality(right, options.prior)
    gain -= _quality(total[None], options.prior)
    on_left, on_right = _size(left), _size(right)
    possible = (on_left >= options.least) & (on_right >= options.least)
    if direction:
        lower, upper = (left, right) if direction > 0 else (right, left)
        changes = [np.clip(log_odds_change(side, options.prior), *bounds) for side in (lower, upper)]
        possible &= changes[0] <= changes[1]
    gain = np.where(possible, gain, 0.0)
    place = int(np.argmax(gain))
    return float(gain[place]), place + 1, bool(on_left[place] >= on_right[place])


def _quality(packed: Array, prior: float) -> Array:
    """Sum over classes, one after another, of residual**2 / (variance + prior), (m,)."""
    quality = np.zeros(len(packed))
    for c in range(packed.shape[1]):
        deviation = residual(packed[:, c])
        quality += deviation * deviation / (variance(packed[:, c]) + prior)
    return quality


def _size(packed: Array) -> Array:
    """Variance over all classes, (m,)."""
    return variance(packed).sum(axis=1)


def log_odds_change(packed: Array, prior: float) -> Array:
    """A full step of the log odds of the second of two classes, (m,): the classes move in opposite directions."""
    return np.asarray(2.0 * (residual(packed[:, 0]) / (variance(packed[:, 0]) + prior)))


def native_divide(module: Any, columns: ByteColumns, rows: Array, split: Split) -> Any:
    if not columns.d:
        return NotImplemented
    left, right = np.empty((2, len(rows)), dtype=np.int32)
    words, chosen = columns.in_memory().words, as_type(rows, np.int32)
    count = module.divide(words, chosen, split.column, split.most, split.missing_left, left, right)
    return left[:count], right[: len(rows) - count]


@twin(native_divide)
def divide(columns: ByteColumns, rows: Array, split: Split) -> tuple[Array, Array]:
    """The rows of both children, in order."""
    goes_left = is_left(columns.column(split.column)[rows], split.most, split.missing_left)
    return rows[goes_left], rows[~goes_left]


def is_left(codes: Array, most: Any, missing_left: Any) -> Array:
    """Whether bytes go left."""
    return np.where(codes == 0, missing_left, codes <= most)


# -- Columns of bytes in the order in which trees read them: eight columns of a row in one word, word by word
#
# Code 0 is a missing value; 1 and more are bins or levels in order. The cells of all columns lie side by side: code v of
# column j is cell ``first[j] + v``.

WORD = 8
"""Columns in a word."""
MOST_CODES = 256
"""Largest number of codes of a column, that of missing values included."""
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class ByteColumns(NamedTuple):
    """Codes of n rows and d columns."""

    words: Array
    """(ceil(d / 8), n) words; column 8 t + s is byte s of word t."""
    first: Array
    """First cell of each column and the number of all cells, (d + 1,) integers."""

    @property
    def n(self) -> int:
        return int(self.words.shape[1])

    @property
    def d(self) -> int:
        return len(self.first) - 1

    def column(self, j: int) -> Array:
        """The codes of a column, (n,) bytes."""
        return np.asarray(self.words[j // WORD].view(np.uint8).reshape(-1, WORD)[:, _byte(j)])

    def rows(self, selection: Array | slice) -> ByteColumns:
        """The columns of some rows."""
        return ByteColumns(np.ascontiguousarray(self.words[:, selection]), self.first)

    def in_memory(self) -> ByteColumns:
        """The columns in the types and the memory layout that native code reads."""
        return ByteColumns(as_type(self.words, np.uint64), as_int64(self.first))

    def order(self) -> Array:
        """All columns in an order that depends on their codes alone, not on their position, (d,) int32."""
        digests = [_digest(self.column(j)) for j in range(self.d)]
        return np.array(sorted(range(self.d), key=digests.__getitem__), dtype=np.int32)

    def fractions(self) -> Array:
        """A number from 0 to 1 for each row that looks random, (n,).

        It depends on how often the row's codes occur in its columns, not on the order of rows and columns, nor on
        columns of a single code.
        """
        mixed = np.zeros(self.n, dtype=np.uint64)
        for codes in map(self.column, range(self.d)):
            counts = np.bincount(codes, minlength=MOST_CODES)
            if np.count_nonzero(counts) > 1:
                seed = np.uint64(int.from_bytes(_digest(counts), "little"))
                mixed += _mixed(np.arange(MOST_CODES, dtype=np.uint64) + seed)[codes]
        return np.asarray((_mixed(mixed) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _digest(array: Array) -> bytes:
    return hashlib.blake2b(array.tobytes(), digest_size=8).digest()


def _mixed(numbers: Array) -> Array:
    """Hashes of 64-bit numbers."""
    for _ in range(2):
        numbers = (numbers ^ numbers >> np.uint64(32)) * MULTIPLIER
    return numbers ^ numbers >> np.uint64(29)


def _byte(j: int) -> int:
    """Place of a column in the memory of its word: byte s is worth 256**s."""
    place = j % WORD
    return place if np.little_endian else WORD - 1 - place


def byte_columns(codes: Array, sizes: Array) -> ByteColumns:
    """Codes (n, d) of bytes, of which column j has codes below ``sizes[j]``."""
    n, d = codes.shape
    words = np.zeros((-(-d // WORD), n), dtype=np.uint64)
    for j in range(d):
        words[j // WORD].view(np.uint8).reshape(n, WORD)[:, _byte(j)] = codes[:, j]
    return ByteColumns(words, first_cells(sizes))


def first_cells(sizes: Array) -> Array:
    """First cell of each column, and the number of all cells, (d + 1,)."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

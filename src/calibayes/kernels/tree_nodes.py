"""Nodes of a tree: the bytes of their rows, sums of residuals, their best split, and the rows of their children."""

from __future__ import annotations

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
# A packed number is ``residual * 2**32 + variance`` in units of 1 / scale. The scale is such that the variances of 2**20 rows add
# up to 2**30 at most, so that neither part of their sum overflows; sums of more rows are unpacked, with a word for each part.
# Sums of blocks, of threads and of machines are the same bits, and the sums of one child are those of its parent minus those of
# the other, without rounding. Numbers are rounded up or down by a fraction of each row, so that sums of many small ones are
# right on average. Of two classes the second is enough: the residuals of the first are the opposite ones, and the variances the
# same. Posteriors have the same bits everywhere, too.

LARGEST_SUM = 2.0**30
"""Largest sum of weights, in units: of `PACKED_ROWS` rows in packed numbers, of all rows in units of ``whole``."""
PACKED_ROWS = 2**20
"""Rows whose packed numbers may be added up."""
SMALLEST_SUM = 2.0**-900
"""A smaller sum of weights is taken for this one, so that units are finite."""
HALF = 2**32
LEAF_UNITS = 2.0**31
"""Units of the sums of leaves in one of ``whole``: sums of weights are at most 2**61."""
LOSS_UNITS = 2.0**16
"""Units of losses in one of ``whole``."""
LARGEST_LOSS = 2.0**16
"""A log loss of a row that is larger counts as this one: sums are at most 2**62."""


class Units(NamedTuple):
    """Units of whole numbers in a weight of 1: powers of two, the same for any order of the rows."""

    packed: float
    """Of packed numbers."""
    whole: float
    """Such that the sum of all weights is at most `LARGEST_SUM`."""

    @property
    def leaf(self) -> float:
        """Of sums of leaves."""
        return self.whole * LEAF_UNITS

    @property
    def loss(self) -> float:
        """Of log losses."""
        return self.whole * LOSS_UNITS


def in_parts(weight: Array, top: float) -> int:
    """The sum of weights (n,) of at most ``top``, in parts of 2^-28 of a power of two above it, each rounded up.

    A whole number: it does not depend on the order of the rows.
    """
    return int(np.ceil(np.ldexp(weight, 28 - _exponent(top))).astype(np.int64).sum())


def units_of(top: float, parts: int) -> Units:
    """Units for rows of weights of at most ``top``, whose sum is given by `in_parts`."""
    size = max(np.ldexp(float(parts), _exponent(top) - 28), SMALLEST_SUM)
    most = np.ldexp(float(PACKED_ROWS), _exponent(top))
    return Units(*(_power_below(LARGEST_SUM / part) for part in (min(size, most), size)))


def _exponent(top: float) -> int:
    return int(np.frexp(max(top, SMALLEST_SUM * 2.0**-60))[1])


def _power_below(number: float) -> float:
    return float(2.0 ** np.floor(np.log2(number)))


def variances(posterior: Array) -> Array:
    """P (1 - P) of posteriors (n, k), times k / (k - 1): the second derivative of the log loss if all classes may move."""
    k = posterior.shape[1]
    if k < 2:
        raise ValueError(f"residuals need two classes, got {k}")
    return np.asarray(posterior * (1.0 - posterior) * (k / (k - 1)))


class LabeledScores(NamedTuple):
    """Rows with log scores, class codes and weights."""

    scores: Array
    """Log posteriors up to a constant of each row, (n, k)."""
    labels: Array
    """Class codes, (n,) int32."""
    weight: Array
    """(n,), or (1,) if all rows have the same."""

    def in_memory(self) -> LabeledScores:
        """The rows in the types and the memory layout that native code reads."""
        return LabeledScores(as_float64(self.scores), as_type(self.labels, np.int32), as_float64(self.weight))


def native_packed_residuals(module: Any, rows: LabeledScores, scale: float, fractions: Array) -> Any:
    if not is_matrix(rows.scores, "f"):
        return NotImplemented
    packed = np.empty((len(rows.scores), packed_classes(rows.scores.shape[1])), dtype=np.int64)
    module.packed_residuals(
        *rows.in_memory(), scale, as_type(fractions, np.uint32), native_team(module), packed
    )
    return packed


@twin(native_packed_residuals)
def packed_residuals(rows: LabeledScores, scale: float, fractions: Array) -> Array:
    """Packed weight * (1[label] - posterior) and weight * variance, (n, k), or (n, 1) of the second of two classes.

    Each row is rounded by its own of the ``fractions`` (n,) of 2^32.
    """
    posterior, labels = exact_posterior(rows.scores).posterior, rows.labels
    units, rounding = (rows.weight * scale)[:, None], fractions[:, None] * 2.0**-32
    packed = np.floor(variances(posterior) * units + rounding).astype(np.int64)
    packed -= np.floor(posterior * units + rounding).astype(np.int64) * HALF
    packed[np.arange(len(labels)), labels] += np.floor(units + rounding).astype(np.int64)[:, 0] * HALF
    return packed[:, -packed_classes(posterior.shape[1]) :].copy()


def packed_classes(k: int) -> int:
    """Number of classes whose numbers are packed, of k."""
    return 1 if k == 2 else k


def native_add_factors(module: Any, scores: Array, codes: Array, factors: Array) -> Any:
    if (
        not is_matrix(scores, "f")
        or not scores.shape[1]
        or scores.dtype != np.float64
        or not scores.flags.c_contiguous
    ):
        return NotImplemented
    module.add_factors(as_float64(factors), as_type(codes, np.int8), native_team(module), scores)
    return scores


@twin(native_add_factors)
def add_factors(scores: Array, codes: Array, factors: Array) -> Array:
    """Log scores (n, k), to which the log factors (leaves, k) of the leaf of each row were added in place."""
    scores += factors[codes]
    return scores


class LeafSums(NamedTuple):
    """Whole-number sums over the rows of each leaf, (leaves, k) each."""

    residual: Array
    """Of weight * (1[label] - posterior), without held-out rows."""
    variance: Array
    """Of weight * variance, without held-out rows."""
    mass: Array
    """Of the weights of all rows by class."""


def native_leaf_sums(
    module: Any, rows: LabeledScores, codes: Array, held_out: Array, leaves: int, units: float
) -> Any:
    if not is_matrix(rows.scores, "f"):
        return NotImplemented
    sums = np.zeros((3, leaves, rows.scores.shape[1]), dtype=np.int64)
    places = as_type(codes, np.int8), as_type(held_out, np.bool_)
    module.leaf_sums(
        rows.in_memory().scores, places[0], *rows.in_memory()[1:], places[1], units, native_team(module), sums
    )
    return LeafSums(*sums)


@twin(native_leaf_sums)
def leaf_sums(rows: LabeledScores, codes: Array, held_out: Array, leaves: int, units: float) -> LeafSums:
    """`LeafSums` over rows with leaves ``codes`` (n,), in units of 1 / ``units``; ``held_out`` (n,) are booleans."""
    scores, labels, weight = rows
    posterior, own = exact_posterior(scores).posterior, np.arange(len(labels))
    size = np.broadcast_to(weight * units, len(labels))[:, None]
    counted = np.zeros(posterior.shape, dtype=np.int64)
    counted[own, labels] = np.floor(size[:, 0]).astype(np.int64)
    spread = np.floor(variances(posterior) * size).astype(np.int64)
    deviation = counted - np.floor(posterior * size).astype(np.int64)
    training, sums = ~held_out, np.zeros((3, leaves, posterior.shape[1]), dtype=np.int64)
    np.add.at(sums[0], codes[training], deviation[training])
    np.add.at(sums[1], codes[training], spread[training])
    np.add.at(sums[2], codes, counted)
    return LeafSums(*sums)


def native_whole_loss(module: Any, rows: LabeledScores, held_out: Array, units: float) -> Any:
    if not is_matrix(rows.scores, "f"):
        return NotImplemented
    flags = as_type(held_out, np.bool_)
    return int(module.whole_loss(*rows.in_memory(), flags, units, LARGEST_LOSS, native_team(module)))


@twin(native_whole_loss)
def whole_loss(rows: LabeledScores, held_out: Array, units: float) -> int:
    """The weighted sum of the log losses of held-out rows, a whole number of units of 1 / ``units``."""
    exact = exact_posterior(rows.scores)
    losses = exact.log_sum - exact.shifted[np.arange(len(rows.labels)), rows.labels]
    whole = np.floor(np.minimum(losses, LARGEST_LOSS) * (rows.weight * units) + 0.5)
    return int(whole[held_out].astype(np.int64).sum())


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
    out = np.empty((2, int(first[-1]), packed.shape[1]), dtype=np.int64)
    module.node_sums(words, chosen, numbers, first, out)
    return out


@twin(native_node_sums)
def node_sums(columns: ByteColumns, rows: Array, packed: Array) -> Array:
    """Sums over some rows (int32) of residuals and of variances by cell, (2, cells, c), from packed numbers (n, c)."""
    chosen = packed[rows]
    parts = residual(chosen), variance(chosen)
    sums = np.zeros((2, int(columns.first[-1]), packed.shape[1]), dtype=np.int64)
    for j, (begin, end) in enumerate(pairwise(columns.first)):
        codes = columns.column(j)[rows]
        for of_cells, of_rows in zip(sums, parts, strict=True):
            for c in range(packed.shape[1]):  # exact: sums are below 2**53
                of_cells[begin:end, c] = np.bincount(codes, of_rows[:, c], minlength=end - begin)
    return sums


def native_best_split(
    module: Any, sums: Array, first: Array, options: SplitOptions, bounds: Bounds = UNBOUNDED
) -> Any:
    if not len(options.direction) or not sums.shape[2]:
        return NotImplemented
    return Split(*module.best_split(as_int64(sums), as_int64(first), *options.in_memory(), *bounds))


@twin(native_best_split)
def best_split(sums: Array, first: Array, options: SplitOptions, bounds: Bounds = UNBOUNDED) -> Split:
    """The split of the largest gain: sum over classes and sides of residual**2 / (variance + prior), minus that of the node.

    ``sums`` (2, cells, c) are those of `node_sums`. Of equal gains the first is taken: in the order of the columns, then missing values to
    the right before those to the left, then by code. Where no value of the column is missing in the node, missing ones go
    to the larger side.
    """
    best = NO_SPLIT
    for j in options.columns:
        column = sums[:, first[j] : first[j + 1]]
        for missing_left in (False, True) if column[:, 0].any() else (False,):
            direction = int(options.direction[j])
            gain, most, larger_left = _best_of_column(column, options, direction, bounds, missing_left)
            if gain > best.gain:
                is_left = missing_left if column[:, 0].any() else larger_left
                best = Split(gain, int(j), most, is_left)
    return best


def _best_of_column(
    column: Array, options: SplitOptions, direction: int, bounds: Bounds, missing_left: bool
) -> tuple[float, int, bool]:
    """Gain and last code on the left of the best split of a column, (2, codes, c) sums; whether the left is larger."""
    if column.shape[1] < 2:
        return 0.0, 0, False
    total = column.sum(axis=1, keepdims=True)
    left = np.cumsum(column[:, 1:], axis=1) + (column[:, :1] if missing_left else 0)
    right = total - left
    gain = _quality(left, options.prior) + _quality(right, options.prior)
    gain -= _quality(total, options.prior)
    on_left, on_right = _size(left), _size(right)
    possible = (on_left >= options.least) & (on_right >= options.least)
    if direction:
        lower, upper = (left, right) if direction > 0 else (right, left)
        changes = [np.clip(log_odds_change(side, options.prior), *bounds) for side in (lower, upper)]
        possible &= changes[0] <= changes[1]
    gain = np.where(possible, gain, 0.0)
    place = int(np.argmax(gain))
    return float(gain[place]), place + 1, bool(on_left[place] >= on_right[place])


def _quality(sums: Array, prior: float) -> Array:
    """Sum over classes, one after another, of residual**2 / (variance + prior), (m,), of sums (2, m, c)."""
    quality = np.zeros(sums.shape[1])
    for residuals, variances_ in zip(*sums.astype(np.float64).transpose(0, 2, 1), strict=True):
        quality += residuals * residuals / (variances_ + prior)
    return quality


def _size(sums: Array) -> Array:
    """Variance over all classes, (m,), of sums (2, m, c)."""
    return np.asarray(sums[1].astype(np.float64).sum(axis=1))


def log_odds_change(sums: Array, prior: float) -> Array:
    """A full step of the log odds of the second of two classes, (m,), by sums (2, m, 1): the classes move in opposite ways."""
    return np.asarray(2.0 * (sums[0, :, 0].astype(np.float64) / (sums[1, :, 0].astype(np.float64) + prior)))


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

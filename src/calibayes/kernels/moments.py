"""Columns of numbers x (n, d): weighted sums of powers for weights (n, k) of any sign, range and variances.

NaN is a missing value in functions over known cells; other functions take no NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cython_blas

from calibayes.core.protocols import AnyArray, Array
from calibayes.kernels.dispatch import as_float64, is_matrix, map_ranges, namespace, portable, row_major, twin

CELLS = 2**17
"""Numbers in a block of rows: a megabyte in float64."""
FEWEST_ROWS = 64
"""Least number of rows in a block."""
FEW_CELLS = 2**16
"""Rows times columns times classes up to which one product for all classes is faster: calls cost more than arithmetic."""
ROUNDING = 2.0**-39
"""A sum of weights below this share of the largest weight counts as 0."""


def blas_capsule(name: str) -> Any:
    """The BLAS routine of that name in the capsule of SciPy, for native code."""
    return vars(cython_blas)["__pyx_capi__"][name]


def row_blocks(n: int, d: int) -> Iterator[slice]:
    """Consecutive blocks of the rows of an (n, d) array that fit into the cache."""
    rows = max(CELLS // max(d, 1), FEWEST_ROWS)
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))


class CenteringBuffer:
    """Memory for the centered rows of one block, reused for every block and class."""

    def __init__(self) -> None:
        self._cells: dict[str, Array] = {}

    def centered(self, x: Array, center: Array, dtype: Any = np.float64) -> Array:
        """x - center in the given type, (n, d); valid until the next call."""
        letter = np.dtype(dtype).char
        if letter not in self._cells or self._cells[letter].size < x.size:
            self._cells[letter] = np.empty(x.size, dtype=dtype)
        out = self._cells[letter][: x.size].reshape(x.shape)
        return np.subtract(x, center, out=out, casting="same_kind")


@portable
def has_missing(x: Array) -> bool:
    """Whether a number of x (n, d) is NaN."""
    return bool(np.isnan(np.min(x, initial=np.inf)))  # the minimum needs no (n, d) mask


@portable
def as_floats(x: Array) -> Array:
    """Numbers as float64; float32 is kept, each kernel decides how to compute with it."""
    numbers = np.asarray(x)
    return numbers if numbers.dtype == np.float32 else np.asarray(numbers, dtype=np.float64)


@portable
def zeroth(weights: Array) -> Array:
    """Sum of the weights of each class, (k,)."""
    return namespace(weights).ones(weights.shape[0], dtype=weights.dtype) @ weights


@portable
def sum_over_classes(weights: AnyArray) -> AnyArray:
    """Sum of the weights of each row, (n, 1); 0 if it is below `ROUNDING` times the largest weight."""
    xp = namespace(weights)
    total = weights @ xp.ones((weights.shape[1], 1), dtype=weights.dtype)
    largest = max(float(xp.max(weights)), -float(xp.min(weights)))
    return xp.where(xp.abs(total) <= ROUNDING * largest, 0.0, total)


def first(x: Array, weights: Array) -> Array:
    """Weighted sums of x, (k, d)."""
    return weights.T @ x


def first_about(x: Array, center: Array, weights: Array) -> Array:
    """Weighted sums of x - center, (k, d), in float64."""
    total, buffer = np.zeros((weights.shape[1], x.shape[1])), CenteringBuffer()
    for rows in row_blocks(*x.shape):
        total += weights[rows].T @ buffer.centered(x[rows], center)
    return total


def squares(x: Array, weights: Array) -> Array:
    """Weighted sums of x^2, (k, d)."""
    return weights.T @ (x * x)


def outer(x: AnyArray, weights: AnyArray) -> Array:
    """Weighted sums of outer products x x', (k, d, d)."""
    if isinstance(x, np.ndarray):
        return outer_about(x, np.zeros(x.shape[1]), weights)
    xp = namespace(x, weights)
    return xp.stack([(x * weights[:, c : c + 1]).T @ x for c in range(weights.shape[1])])


def outer_about(x: Array, center: Array, weights: Array) -> Array:
    """Weighted sums of outer products of x - center, (k, d, d), in float64.

    Products of a matrix with its own transpose take half the work of general products, and rows of weight 0 are left
    out. For small inputs one product for all classes takes fewer calls.
    """
    if x.size * weights.shape[1] <= FEW_CELLS:
        weighted = weights.any(axis=1)
        x, weights = (x, weights) if weighted.all() else (x[weighted], weights[weighted])
        centered = np.subtract(x, center, dtype=np.float64)
        return np.matmul(weights.T[:, None, :] * centered.T, centered)
    return first_and_outer(x, center, weights)[1]


def native_first_and_outer(module: Any, x: Array, center: Array, weights: Array) -> Any:
    if not is_matrix(x, "f") or not is_matrix(weights, "fiub") or x.shape[1] == 0 or weights.shape[1] == 0:
        return NotImplemented
    k, d = weights.shape[1], x.shape[1]
    first, second = np.empty((k, d)), np.empty((k, d, d))
    arrays = row_major(x), as_float64(center), as_float64(weights)
    module.first_and_outer(*arrays, blas_capsule("dsyrk"), first, second)
    return first, second


@twin(native_first_and_outer)
def first_and_outer(x: Array, center: Array, weights: Array) -> tuple[Array, Array]:
    """`first_about`, (k, d), and `outer_about`, (k, d, d), for many rows, columns or classes."""
    total = np.zeros((weights.shape[1], x.shape[1], x.shape[1]))
    for class_sum, weight in zip(total, weights.T, strict=True):
        # NaN weights are neither positive nor 0: they go with the negative ones, so that the sum becomes NaN.
        positive, negative = np.flatnonzero(weight > 0), np.flatnonzero(~((weight > 0) | (weight == 0)))
        if len(positive):
            _absolute_outer(x, center, weight, positive, out=class_sum)
        if len(negative):
            class_sum -= _absolute_outer(x, center, weight, negative)
    return first_about(x, center, weights), total


def _absolute_outer(x: Array, center: Array, weight: Array, rows: Array, out: Array | None = None) -> Array:
    """Sum of |weight| times the outer product of x - center over given rows, (d, d)."""
    centered = np.subtract(x if len(rows) == len(x) else x[rows], center, dtype=np.float64)
    scale = np.sqrt(np.abs(weight[rows]))
    if not (scale == 1.0).all():
        centered *= scale[:, None]
    return np.matmul(centered.T, centered, out=out)


@portable
def up_to_second(
    x: Array, center: Array, weights: Array, *, pool_second: bool = False
) -> tuple[Array, Array, Array]:
    """Weighted sums of 1, (k,), of x - center, (k, d), and of its outer products, (k, d, d).

    With ``pool_second`` the outer products are summed over the classes, (1, d, d).
    """
    if not pool_second and x.size * weights.shape[1] > FEW_CELLS:
        return zeroth(weights), *first_and_outer(x, center, weights)
    second_weights = sum_over_classes(weights) if pool_second else weights
    return zeroth(weights), first_about(x, center, weights), outer_about(x, center, second_weights)


def known_and_filled(x: Array) -> tuple[Array, Array]:
    """1.0 for known and 0.0 for missing cells, and the cells with 0 for missing ones, (n, d) each."""
    known = ~np.isnan(x)
    return known.astype(np.float64), np.where(known, x, 0.0)


def native_power_sums(module: Any, x: Array, center: Array, weights: Array) -> Any:
    if not is_matrix(x, "f") or not is_matrix(weights, "fiub") or x.shape[1] == 0 or weights.shape[1] == 0:
        return NotImplemented
    out = np.empty((3, weights.shape[1], x.shape[1]))
    module.power_sums(row_major(x), as_float64(center), as_float64(weights), out)
    return out[0], out[1], out[2]


@twin(native_power_sums)
def power_sums(x: Array, center: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Weighted sums over the known cells of 1, x - center and (x - center)^2, (k, d) each; weights (n, k) of any sign."""
    known, filled = known_and_filled(np.asarray(x, dtype=np.float64) - center)
    return first(known, weights), first(filled, weights), squares(filled, weights)


def native_minimum_and_maximum(module: Any, x: Array) -> Any:
    return module.ends(row_major(x)) if is_matrix(x, "f") and x.size else NotImplemented


@twin(native_minimum_and_maximum)
def minimum_and_maximum(x: Array) -> tuple[float, float]:
    """Smallest and largest number of x (n, d), not empty; both NaN if there is a NaN."""
    blocks = (x[rows] for rows in row_blocks(*x.shape))
    low, high = np.transpose([(np.min(block), np.max(block)) for block in blocks])
    return float(np.min(low)), float(np.max(high))


def extent(x: Array) -> tuple[float, float]:
    """`minimum_and_maximum` of x (n,) or (n, d) in parallel; 0 and 0 if x is empty."""
    if not x.size:
        return 0.0, 0.0
    x = x.reshape(-1, 1) if x.ndim == 1 else x
    low, high = np.transpose(map_ranges(lambda rows: minimum_and_maximum(x[rows]), len(x), x[:1].nbytes))
    return float(np.min(low)), float(np.max(high))


def missing_counts(x: Array) -> Array:
    """Number of NaN in each column of x (n, d), (d,) integers."""

    def range_counts(rows: slice) -> Array:
        return np.sum([_missing_in_block(x[rows][block]) for block in row_blocks(*x[rows].shape)], axis=0)

    return np.sum(map_ranges(range_counts, len(x), x[:1].nbytes), axis=0)


def _missing_in_block(x: Array) -> Array:
    """`missing_counts` of few rows, by a matrix product, which is faster than a sum of booleans over rows."""
    is_missing = np.isnan(x).astype(np.float32)  # exact, since a block has fewer than 2^24 rows
    return (np.ones(len(x), dtype=np.float32) @ is_missing).astype(np.int64)


def variances(x: Array, near: Array) -> Array:
    """Variance of each column, (d,), of rows (n, d) without missing values.

    Sums are taken about ``near`` (d,), a point close to the means, so that little precision is lost.
    """

    def range_sums(rows: slice) -> Array:
        return np.stack(power_sums(x[rows], near, np.ones((len(x[rows]), 1))))

    _, first_sum, second_sum = np.sum(map_ranges(range_sums, len(x), x[:1].nbytes), axis=0)[:, 0]
    return np.maximum(second_sum / len(x) - (first_sum / len(x)) ** 2, 0.0)


# -- Range, and sums of differences from a pivot, of the known numbers of a column ---------------------------


class KnownMoments(NamedTuple):
    """Moments of the numbers of a column that are not NaN."""

    low: float
    """Smallest number; infinity if there is none."""
    high: float
    """Largest number; minus infinity if there is none."""
    total: float
    """Sum of the differences from the pivot."""
    squares: float
    """Sum of their squares."""


def native_known_moments(module: Any, x: Array, pivot: float) -> Any:
    return KnownMoments(*module.known_moments(as_float64(x), pivot))


@twin(native_known_moments)
def known_moments(x: Array, pivot: float) -> KnownMoments:
    """Range of the numbers of x (n,) that are not NaN, and sums of powers of their differences from a pivot."""
    numbers = np.asarray(x, dtype=np.float64)
    numbers = numbers[~np.isnan(numbers)]
    low, high = float(numbers.min(initial=np.inf)), float(numbers.max(initial=-np.inf))
    with np.errstate(invalid="ignore", over="ignore"):  # the range shows infinite numbers
        differences = numbers - pivot
        return KnownMoments(low, high, float(differences.sum()), float(np.dot(differences, differences)))


# -- Row weights as numbers of rows: whole weights are counts of equal rows ----------------------------------

MOST_COUNT = 2.0**53
WEIGHT_ROUNDING = 1e-12
"""Relative distance from a whole number that a weight may have after class weights were divided out."""
MOST_COPIES, LEAST_COPIES = 8, 1000
"""Whole weights are counts of rows, up to 8 times the number of weights, or 1,000; larger ones are divided."""


def whole_counts(weight: Array) -> Array | None:
    """The weights (n,) if all of them are whole numbers."""
    counts = np.round(weight)
    if weight.max() >= MOST_COUNT or (np.abs(weight - counts) > WEIGHT_ROUNDING * counts).any():
        return None
    return np.asarray(counts)


def count_of_one(counts: Array) -> float:
    """The count of one row: the greatest common divisor, or more if copies would be too many."""
    most = max(MOST_COPIES * len(counts), LEAST_COPIES)
    return max(float(np.gcd.reduce(counts.astype(np.int64))), float(counts.sum()) / most)


def weight_of_one(weight: Array) -> float:
    """The weight of one row: the common divisor of whole weights, otherwise the average weight of a row.

    The average is weighted by the weights themselves, so that rows of tiny weight do not count.

    >>> weight_of_one(np.array([2.0, 4.0, 6.0]))
    2.0
    """
    counts, top = whole_counts(weight), float(weight.max())
    relative = weight / top
    return top * float(relative @ relative / relative.sum()) if counts is None else count_of_one(counts)


class RowCounts(NamedTuple):
    """How rows count by their weights."""

    unit: float = 1.0
    """The weight of one row: priors of trees are in rows."""
    one: float = 0.0
    """The sample weight of one copy of a row; 0 if weights are no counts."""
    factor: Array = np.ones(1)
    """Class weights, (k,), or (1,) for all."""

    def copies(self, labels: Array, weight: Array) -> Array | None:
        """How often each row counts, (n,); None: once."""
        if not self.one:
            return None
        factor = self.factor if len(self.factor) == 1 else self.factor[labels]
        copies = np.maximum(np.rint(weight / factor / self.one), 1.0).astype(np.int64)
        return copies if (copies > 1).any() else None


# -- Shrinkage of a sample covariance towards a multiple of the identity (Ledoit and Wolf 2004) --------------


def ledoit_wolf_share(x: Array, weight: Array) -> float:
    """The share of the identity in the shrunk covariance of centered rows x (n, d) with weights (n,).

    Its expected squared error is least: delta is the squared distance of the sample covariance from the nearest
    multiple of the identity, beta the estimated squared error of the sample covariance, the share is beta / delta
    (Ledoit and Wolf 2004, section 3.2). A row of weight 2 counts as two rows.
    """
    size, d = weight.sum(), x.shape[1]
    covariance = (x * weight[:, None]).T @ x / size
    mean_variance = np.trace(covariance) / d
    squares = np.sum(covariance**2)
    delta = squares - d * mean_variance**2
    beta = (weight @ np.sum(x**2, axis=1) ** 2 / size - squares) / size
    return float(min(max(beta, 0.0) / delta, 1.0)) if delta > 0 else 0.0


def shrunk_covariance(x: Array, weight: Array) -> Array:
    """The covariance of rows (n, d) with weights (n,), its correlations shrunk by the share of Ledoit and Wolf, (d, d).

    Columns are standardized before and scaled back afterwards, so that the result does not depend on their units.
    """
    share_of_rows = weight / weight.sum()
    centered = x - share_of_rows @ x
    deviation = np.sqrt(share_of_rows @ centered**2)
    scale = np.where(deviation > 0, deviation, 1.0)
    standardized = centered / scale
    share = ledoit_wolf_share(standardized, weight)
    correlation = (standardized * share_of_rows[:, None]).T @ standardized
    identity = np.eye(x.shape[1]) * np.trace(correlation) / x.shape[1]
    return np.asarray(((1.0 - share) * correlation + share * identity) * np.outer(scale, scale))

"""Gaussian kernel classifier over all columns: sums of kernels by class at several bandwidths, and posteriors from them.

Bandwidth step s has the squared bandwidth ``square / 2**s``: each step is narrower by sqrt(2), and its kernels are the
squares of those of the step before. Step 0 is the widest. `relevance`, the mutual information of each column with the
class, is the measure by which columns are scaled before distances are computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri, xlogy

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_array, require_ascending, require_finite
from calibayes.kernels.cut_points import inverse_cdf_quantile, quantiles, sort_columns
from calibayes.kernels.dispatch import as_float64, as_int64, is_matrix, map_ranges, ordered_map, twin
from calibayes.kernels.level_counts import offsets, weighted_counts

STEPS = 15
"""Number of bandwidth steps."""
STEPS_TO_DOUBLE = 2
"""Bandwidth steps between a bandwidth and twice that bandwidth."""
UNLABELED_WEIGHT = 0.01
"""Weight of a pseudo-row of unknown class at the distance of the nearest row; it is divided by the class prior."""
MOST_EXPONENT = 600.0
"""Largest exponent of the inverse of a kernel, to avoid overflow: beyond it only wider kernels matter."""
MOST_SQUARINGS = 64
"""A number from 0 to 1 is 0 or 1 after so many squarings: further ones change nothing."""
FEW_COLUMNS = 48
"""Columns up to which distances are computed together with the kernels: products of such narrow matrices are slow."""
LARGER_RANGES = 4
"""Ranges of rows are larger than usual by this factor: products of matrices with few rows are slow."""
BINS, FEW_VALUES = 10, 20
"""Number of quantile bins of a column in `relevance`; at most `FEW_VALUES` distinct values have a bin each instead."""
RELEVANCE_CELLS = 2**18
"""Cells for which `relevance` is computed at a time."""


@dataclass(frozen=True)
class KernelRows:
    """The training rows at which kernels are centered.

    Attributes
    ----------
    rows : (m, d) array
        Sorted by class.
    weight : (m,) array
    ends : tuple
        Rows of class c are ``ends[c]`` to ``ends[c + 1]``; k + 1 numbers.
    """

    rows: Array
    weight: Array
    ends: tuple[int, ...]

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        m = len(require_finite("rows", self.rows, (None, None)))
        require(bool((np.abs(self.rows) < 1e100).all()), "rows are too far away")
        require_finite("weight", self.weight, (m,), least=0.0)
        require_ascending("ends", np.array(self.ends))
        is_complete = len(self.ends) > 1 and (self.ends[0], self.ends[-1]) == (0, m)
        require(is_complete, f"ends must begin with 0 and end with the number of rows, {m}")
        most = np.maximum.reduceat(self.weight, self.ends[:-1])
        require(bool(np.all((most > 0) & (most < 1e300 / m))), "a class has no weight, or too large ones")

    @cached_property
    def factor(self) -> Array:
        """The factor of squared distances (d + 2, m) to complete rows (see `_distance_factors`), made once."""
        rows = self.rows
        return np.stack([*(-2.0 * rows.T), np.ones(len(rows)), np.sum(rows * rows, axis=1)])

    @cached_property
    def incomplete_factor(self) -> Array:
        """The factor (2 d + 1, m) for rows of which some values are missing, made once."""
        return np.concatenate([self.factor[:-1], self.rows.T**2])

    def __getstate__(self) -> dict[str, Any]:
        """The fields: a pickled model does not contain its rows twice."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class ClassSums(NamedTuple):
    """Sums of kernels by class around given rows.

    Attributes
    ----------
    steps : sequence
        The bandwidth steps, ascending.
    sums : (steps, n, k) array
        Sums of weighted kernels by class, relative to the kernel of the nearest training row.
    nearest : (n,) array
        Minus the log of the kernel of the nearest training row at step 0.
    """

    steps: Sequence[int]
    sums: Array
    nearest: Array


def concatenate(parts: Sequence[ClassSums]) -> ClassSums:
    """The sums for the rows of all parts, which must have the same steps."""
    sums = np.concatenate([part.sums for part in parts], axis=1)
    return ClassSums(parts[0].steps, sums, np.concatenate([part.nearest for part in parts]))


def steps_up_to(step: int) -> Sequence[int]:
    """The bandwidth steps that the posterior at a step depends on (see `posteriors`), ascending, including itself."""
    return range(step % STEPS_TO_DOUBLE, step + 1, STEPS_TO_DOUBLE)


def class_sums(
    rows: Array,
    centers: KernelRows,
    square: float,
    steps: Sequence[int] = range(STEPS),
    left_out: Array | None = None,
) -> ClassSums:
    """Sums of kernels by class around rows (n, d); ``square`` is the squared bandwidth of step 0.

    Missing values (NaN) are integrated out of the kernels: the distance of a row is over its known columns.
    ``left_out`` (n,) is the position of each row among the centers: its own kernel is left out of its sums.
    """
    incomplete = np.isnan(rows).any(axis=1)
    if left_out is None and incomplete.any() and not incomplete.all():
        # Complete rows, which take half of the products, by themselves.
        order = np.argsort(incomplete, kind="stable")
        parts = np.split(order, [len(order) - int(incomplete.sum())])
        by_part = concatenate([class_sums(rows[part], centers, square, steps) for part in parts])
        back = np.argsort(order)
        return ClassSums(steps, by_part.sums[:, back], by_part.nearest[back])
    sums, nearest = np.empty((len(steps), len(rows), len(centers.ends) - 1)), np.empty(len(rows))
    row_factor, center_factor = _distance_factors(rows, centers)
    is_plain = left_out is None and center_factor is centers.factor
    # The factor of squared distances at the first step, and how often kernels are squared before each step.
    squarings = [0, *(after - before for before, after in pairwise(steps))]
    kernels = centers.weight, centers.ends, 0.5 * 2.0 ** steps[0] / square, squarings

    def fill(part: slice) -> None:
        if is_plain:
            sums[:, part], nearest[part] = kernel_sums_around(rows[part], centers.factor, *kernels)
            return
        distances = row_factor[part] @ center_factor
        if left_out is not None:
            distances[np.arange(len(distances)), left_out[part]] = np.inf
        sums[:, part], nearest[part] = kernel_sums(distances, *kernels)

    map_ranges(fill, len(rows), centers.weight.nbytes // LARGER_RANGES)
    return ClassSums(steps, sums, nearest * (0.5 / square))


def posteriors(around: ClassSums, prior: Array, prior_rows: Array) -> Iterator[Array]:
    """p(class | x) for each ``prior_rows`` (b,), bandwidth step by bandwidth step, (b, n, k) each.

    The sums of kernels are smoothed towards the posterior at twice the bandwidth (towards ``prior`` (k,) or (n, k) at the
    widest ones) with ``prior_rows`` pseudo-rows at the place of x: where training rows are close these dominate, elsewhere
    wider kernels do. A pseudo-row of weight `UNLABELED_WEIGHT` with the classes of ``prior`` at the distance of the
    nearest row bounds the posterior away from certainty where one row is much nearer than all others.
    """
    wider: dict[int, Array] = {}
    widest = np.broadcast_to(prior, (len(prior_rows), *around.sums.shape[1:]))
    for step, sums in zip(around.steps, around.sums, strict=True):
        pseudo = np.multiply.outer(prior_rows, np.exp(np.minimum(around.nearest * 2.0**step, MOST_EXPONENT)))
        posterior = pseudo[:, :, None] * wider.pop(step - STEPS_TO_DOUBLE, widest)
        posterior += sums + UNLABELED_WEIGHT * prior
        posterior /= (pseudo + sums.sum(axis=1) + UNLABELED_WEIGHT)[:, :, None]
        wider[step] = posterior
        yield posterior


def log_densities(rows: Array, centers: KernelRows, squares: Sequence[float]) -> Array:
    """Log of the kernel density of the known cells of rows (n, d), (n,), averaged over several squared bandwidths."""
    weight, dimension = centers.weight / centers.weight.sum(), (~np.isnan(rows)).sum(axis=1)
    row_factor, center_factor = _distance_factors(rows, centers)

    def range_densities(part: slice) -> Array:
        distances, logs = np.maximum(row_factor[part] @ center_factor, 0.0), []
        nearest = distances.min(axis=1)
        distances -= nearest[:, None]
        for square in squares:
            sums = np.exp(distances * (-0.5 / square)) @ weight
            volume = 0.5 * dimension[part] * np.log(2.0 * np.pi * square)
            # The shares of the nearest rows may be 0 to rounding.
            logs.append(np.log(np.maximum(sums, np.finfo(np.float64).tiny)) - 0.5 * nearest / square - volume)
        return np.asarray(np.logaddexp.reduce(logs, axis=0) - np.log(len(squares)))

    return np.concatenate(map_ranges(range_densities, len(rows), centers.weight.nbytes // LARGER_RANGES))


def _distance_factors(rows: Array, centers: KernelRows) -> tuple[Array, Array]:
    """Factors (n, f) and (f, m) of the matrix of squared distances |x|^2 - 2 x'c + |c|^2 of rows x and centers c.

    If values are missing, |c|^2 is over the known columns of each row, which takes twice as many products.
    """
    known = ~np.isnan(rows)
    if known.all():
        return np.column_stack([rows, np.sum(rows * rows, axis=1), np.ones(len(rows))]), centers.factor
    filled = np.where(known, rows, 0.0)
    return np.column_stack([filled, np.sum(filled * filled, axis=1), known]), centers.incomplete_factor


def native_kernel_sums(
    module: Any, distances: Array, weight: Array, ends: Any, scale: float, squarings: Any
) -> Any:
    supported = is_matrix(distances, "f") and distances.shape[1] > 0 and len(ends) > 1
    if not (supported and 0.0 <= scale < np.inf):
        return NotImplemented
    sums, nearest = np.empty((len(squarings), len(distances), len(ends) - 1)), np.empty(len(distances))
    arrays = as_float64(distances), as_float64(weight), as_int64(ends)
    module.kernel_sums(*arrays, scale, np.minimum(as_int64(squarings), MOST_SQUARINGS), sums, nearest)
    return sums, nearest


@twin(native_kernel_sums)
def kernel_sums(
    distances: Array, weight: Array, ends: Sequence[int], scale: float, squarings: Sequence[int]
) -> tuple[Array, Array]:
    """Sums of weighted kernels by class, (steps, n, k), relative to the nearest kernel, and nearest distances, (n,).

    ``distances`` (n, m) are squared distances and may be overwritten; kernels are exp(-scale * distance), and are squared
    ``squarings[s]`` times before step s; ``weight`` (m,). Class c has the columns ``ends[c]`` to ``ends[c + 1]``.
    """
    np.maximum(distances, 0.0, out=distances)
    nearest = distances.min(axis=1)
    distances -= nearest[:, None]
    distances *= -scale
    kernels = np.exp(distances, out=distances)
    sums = np.empty((len(squarings), len(kernels), len(ends) - 1))
    for step, times in enumerate(squarings):
        for _ in range(min(times, MOST_SQUARINGS)):
            np.square(kernels, out=kernels)
        for c, (start, stop) in enumerate(pairwise(ends)):
            sums[step, :, c] = kernels[:, start:stop] @ weight[start:stop]
    return sums, nearest


def native_kernel_sums_around(
    module: Any, rows: Array, factor: Array, weight: Array, ends: Any, scale: float, squarings: Any
) -> Any:
    supported = is_matrix(rows, "f") and factor.shape[1] > 0 and len(ends) > 1
    if not (supported and rows.shape[1] <= FEW_COLUMNS and 0.0 <= scale < np.inf):
        return NotImplemented
    sums, nearest = np.empty((len(squarings), len(rows), len(ends) - 1)), np.empty(len(rows))
    arrays = as_float64(rows), as_float64(factor), as_float64(weight), as_int64(ends)
    module.kernel_sums_around(*arrays, scale, np.minimum(as_int64(squarings), MOST_SQUARINGS), sums, nearest)
    return sums, nearest


@twin(native_kernel_sums_around)
def kernel_sums_around(
    rows: Array, factor: Array, weight: Array, ends: Sequence[int], scale: float, squarings: Sequence[int]
) -> tuple[Array, Array]:
    """`kernel_sums` of the squared distances between rows (n, d) and centers, given by their factor (d + 2, m)."""
    row_factor = np.column_stack([rows, np.sum(rows * rows, axis=1), np.ones(len(rows))])
    return kernel_sums(row_factor @ factor, weight, ends, scale, squarings)


# -- relevance of columns ------------------------------------------------------------------------------------------


def relevance(x: Array, shares: Array, rows: float) -> Array:
    """Mutual information in nats of the binned values of each column and the class, less its bias, (d,); at least 0.

    ``x`` (n, d) has no missing values; ``shares`` (n, k) is the weight of each row in each class; ``rows`` is the number
    of rows that all weights together represent. The bias, (bins - 1) (classes - 1) / (2 rows), is the expectation for
    an independent column.

    >>> labels = np.eye(2)[np.arange(200) % 2]
    >>> relevance(np.stack([np.arange(200) % 2, np.arange(200)], axis=1), labels, 200).round(2).tolist()
    [0.69, 0.0]
    """
    step = max(RELEVANCE_CELLS // max(len(x), 1), 1)
    starts = range(0, x.shape[1], step)
    return np.concatenate([_block_relevance(x[:, start : start + step], shares, rows) for start in starts])


def _block_relevance(x: Array, shares: Array, rows: float) -> Array:
    weight = shares.sum(axis=1)
    edges = _bin_edges(x, weight)
    bins = np.zeros(x.shape, dtype=np.int64)
    for edge in edges:
        bins += x > edge
    column_starts = offsets((len(edges) + 1,) * x.shape[1])
    joint = weighted_counts(bins, shares, column_starts) / weight.sum()
    classes, marginal = shares.sum(axis=0) / weight.sum(), joint.sum(axis=0)
    first = column_starts[:-1]
    both, alone = xlogy(joint, joint).sum(axis=0), xlogy(marginal, marginal)
    information = np.add.reduceat(both, first) - np.add.reduceat(alone, first) - xlogy(classes, classes).sum()
    sizes = np.add.reduceat(marginal > 0, first, dtype=np.int64)
    bias = (sizes - 1) * ((classes > 0).sum() - 1) / (2 * rows)
    return np.asarray(np.maximum(information - bias, 0.0))


def _bin_edges(x: Array, weight: Array) -> Array:
    """Upper edges of the bins of each column, (edges, d), inf for unused ones.

    All distinct values but the largest if they are few, else quantiles.
    """
    low, high = x.min(axis=0), x.max(axis=0)
    edges = np.full((FEW_VALUES - 1, x.shape[1]), np.inf)
    edges[0] = low
    several = np.flatnonzero(~((x == low) | (x == high)).all(axis=0))
    ranked, cumulative = sort_columns(np.ascontiguousarray(x[:, several].T), weight)
    distinct = np.diff(ranked, axis=1, prepend=-np.inf) > 0
    few = distinct.sum(axis=1) <= FEW_VALUES
    for line in np.flatnonzero(few):
        values = ranked[line, distinct[line]][:-1]
        edges[: len(values), several[line]] = values
    for part in range(1, BINS):
        edges[part - 1, several[~few]] = inverse_cdf_quantile(ranked[~few], cumulative[~few], part / BINS)
    return edges[: max(int(np.isfinite(edges).any(axis=1).sum()), 1)]


# -- Kernel densities of columns and of pairs of columns at many rows, by one small matrix product per row ---
#
# For a row x let A (d, m) hold the kernels K((x_j - X_lj) / h_j) of column j and training row l with weight w_l. The
# densities of all pairs of columns (i, j) at x are A diag(w) A' / (n h_i h_j). To leave a row out its weight is set to 0.


def native_product_sums(
    module: Any,
    rows: Array,
    own: Array,
    centers: Array,
    weights: Array,
    scales: Array,
    levels: Array,
    pairs: Array,
    shapes: Array,
) -> Any:
    if not (is_matrix(rows, "f") and is_matrix(centers, "f")):
        return NotImplemented
    arrays = as_float64(centers), as_float64(weights), as_float64(scales), as_float64(levels)
    single, of_pairs = np.empty(rows.shape), np.empty((len(rows), pairs.shape[1]))
    further = as_int64(pairs), as_float64(shapes)
    module.product_sums(as_float64(rows), as_int64(own), *arrays, *further, single, of_pairs)
    return single, of_pairs


@twin(native_product_sums)
def product_sums(
    rows: Array,
    own: Array,
    centers: Array,
    weights: Array,
    scales: Array,
    levels: Array,
    pairs: Array,
    shapes: Array,
) -> tuple[Array, Array]:
    """Weighted sums of kernels around rows (n, d) at centers (d, m), of columns (n, d) and of pairs of columns (n, pairs).

    ``own`` (n,) is the center of which one copy is left out, or negative. The kernel of column j is exp(scale * gap^2) with
    ``scales[0, j]`` for its own sum and ``scales[1, j]`` for pairs. Where ``levels[0, j]`` is positive the column has levels,
    and its kernels are ``levels[0, j]`` at an equal one and ``levels[1, j]`` at another. The kernel of a missing value (NaN)
    is 0. ``shapes`` (pairs, 3) has the exponents of x^2, xy and y^2 of pairs with a full bandwidth matrix, and NaN for
    pairs whose kernel is the product of those of their columns.
    """
    gaps = rows[:, :, None] - centers
    weighted = np.broadcast_to(weights, (len(rows), len(weights))).copy()
    training = np.flatnonzero((own >= 0) & (own < len(weights)))
    weighted[training, own[training]] = np.maximum(weights[own[training]] - 1.0, 0.0)
    single = _column_kernels(gaps, scales[0], levels)
    of_columns = np.matmul(single, weighted[:, :, None])[:, :, 0]
    if not pairs.shape[1]:
        return of_columns, np.empty((len(rows), 0))
    double = _column_kernels(gaps, scales[1], levels)
    products = (double * weighted[:, None]) @ double.transpose(0, 2, 1)
    of_pairs = products[:, pairs[0], pairs[1]]
    for pair in np.flatnonzero(~np.isnan(shapes[:, 0])):
        x, y = gaps[:, pairs[0, pair]], gaps[:, pairs[1, pair]]
        square, cross, other_square = shapes[pair]
        kernels = np.exp((square * x + cross * y) * x + other_square * y**2)
        of_pairs[:, pair] = (np.nan_to_num(kernels) * weighted).sum(axis=1)
    return of_columns, of_pairs


def _column_kernels(gaps: Array, scales: Array, levels: Array) -> Array:
    """Unnormalized kernels of gaps (b, d, m), 0 where they are NaN."""
    kernels = np.square(gaps)
    kernels *= scales[:, None]
    np.exp(kernels, out=kernels)
    for j in np.flatnonzero(levels[0] > 0):
        kernels[:, j] = np.where(gaps[:, j] == 0, levels[0, j], levels[1, j])
    kernels[np.isnan(gaps)] = 0.0
    return kernels


OF_ANOTHER_CLASS = -2
"""Position of training rows of other classes."""
CELLS_PER_BLOCK = 2**20
"""Kernels (rows times d times m) that are computed at a time."""
LEAST_BANDWIDTH = 1e-100
"""Squares of smaller bandwidths are not far from 0 in floating point."""


@dataclass(frozen=True)
class ProductKernel:
    """Kernel densities of one class.

    Parameters
    ----------
    centers : (d, m) array
        Training rows, transposed; NaN where a value is missing.
    weights : (m,) array
        Number of copies that each training row represents.
    single, double : (d,) arrays
        Bandwidths of the densities of one column and of pairs, in the units of the columns.
    levels : (2, d) array, optional
        Of a column whose numbers are codes of levels, the kernel of an equal level and that of another one (Aitchison and
        Aitken 1976); 0 for numbers.
    """

    centers: Array
    weights: Array
    single: Array
    double: Array
    levels: Array | None = None

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        d, m = require_array("centers", self.centers, (None, None)).shape
        require(d > 0 and m > 0, "a class has no rows or no columns")
        are_near = np.isnan(self.centers) | (np.abs(self.centers) < 1e100)
        require(bool(are_near.all()), "centers are too far away")
        require_finite("weights", self.weights, (m,))
        require(bool((self.weights > 0).all()), "weights must be positive")
        if self.levels is not None:
            same, other = require_finite("levels", self.levels, (2, d), least=0.0)
            are_kernels = (same >= other) & (same <= 1.0)
            require(
                bool(are_kernels.all()), "kernels of levels must be at most 1, and largest for an equal level"
            )
        require_finite("single", self.single, (d,), LEAST_BANDWIDTH)
        require_finite("double", self.double, (d,), LEAST_BANDWIDTH)

    def densities(
        self, rows: Array, pairs: Array, positions: Array, shapes: Array | None = None
    ) -> Iterator[tuple[slice, Array, Array]]:
        """Blocks of b rows of (n, d): their slice, densities of the columns (b, d) and of the pairs (b, pairs).

        ``pairs`` (2, pairs) are positions of columns; ``positions`` (n,) are the positions of the rows among the training
        rows, of which one copy is left out, -1 for other rows, and `OF_ANOTHER_CLASS` for training rows of other classes: one
        copy of their levels is left out, too, since a count of the own class that is one smaller would tell the class. Densities of missing values are NaN, as are all those of
        columns without a known value. ``shapes`` (pairs, 3) are exponents of pairs with a full bandwidth matrix, see
        `product_sums`.
        """
        size = max(1, CELLS_PER_BLOCK // self.centers.size)
        blocks = [slice(first, min(first + size, len(rows))) for first in range(0, len(rows), size)]
        order = np.lexsort(pairs[::-1])  # pairs with the same first column are faster side by side
        back, shapes = np.argsort(order), np.full((len(order), 3), np.nan) if shapes is None else shapes
        scales = -0.5 / np.square([self.single, self.double])
        levels = np.zeros((2, len(self.centers))) if self.levels is None else self.levels
        tiny = np.finfo(float).tiny
        volumes = np.where(levels[0] > 0, 1.0, math.sqrt(2 * math.pi) * np.array([self.single, self.double]))
        of_products, (square, cross, other_square) = volumes[1, pairs[0]] * volumes[1, pairs[1]], shapes.T
        is_full = ~np.isnan(square)
        determinant = np.where(is_full, 4.0 * square * other_square - cross**2, 1.0)
        volume = np.where(is_full, 2.0 * math.pi / np.sqrt(determinant), of_products)
        masses, equal = self._masses(pairs), self._equal_levels(pairs)

        def sums(block: slice) -> tuple[slice, Array, Array]:
            around = rows[block], positions[block], self.centers, self.weights
            single, double = product_sums(*around, scales, levels, pairs[:, order], shapes[order])
            of_columns, of_pairs = masses(positions[block], np.isnan(rows[block]))
            (first, second), double = pairs, double[:, back]
            if equal is not None and (others := positions[block] == OF_ANOTHER_CLASS).any():
                gone, gone_pairs = equal(rows[block])
                gone[~others], gone_pairs[~others] = 0.0, 0.0
                single, double = (
                    single - gone * levels[0],
                    double - gone_pairs * levels[0, first] * levels[0, second],
                )
                of_columns, of_pairs = of_columns - gone, of_pairs - gone_pairs
            double = double / (np.maximum(of_pairs, tiny) * volume)
            return block, single / (np.maximum(of_columns, tiny) * volumes[0]), double

        return ordered_map(sums, blocks)

    def _masses(self, pairs: Array) -> Callable[[Array, Array], tuple[Array, Array]]:
        """A function from positions (b,) and missing values (b, d) of rows to the weight of all other centers.

        It is that of the centers whose columns are known, (b, d) and (b, pairs), and NaN where there are none, or where the
        value of the row is missing.
        """
        known = ~np.isnan(self.centers)
        first, second = pairs
        of_columns = known @ self.weights
        of_pairs = ((known * self.weights) @ known.T)[first, second]

        def masses(positions: Array, missing: Array) -> tuple[Array, Array]:
            place = np.maximum(positions, 0)
            left_out = np.where(positions >= 0, np.minimum(self.weights[place], 1.0), 0.0)[:, None]
            own = left_out * known[:, place].T
            single = np.where(of_columns > 0, of_columns, np.nan) - own
            double = np.where(of_pairs > 0, of_pairs, np.nan) - own[:, first] * (own[:, second] > 0)
            if not missing.any():
                return single, double
            gone = missing[:, first] | missing[:, second]
            return np.where(missing, np.nan, single), np.where(gone, np.nan, double)

        return masses

    def _equal_levels(self, pairs: Array) -> Callable[[Array], tuple[Array, Array]] | None:
        """A function from rows (b, d) to the weight, at most 1, of the centers with the same level, (b, d), and the same levels
        of a pair, (b, pairs); 0 for numbers. None if there are no levels."""
        if self.levels is None:
            return None
        of_levels = self.levels[0] > 0
        coded = np.flatnonzero(of_levels)
        both = np.flatnonzero(of_levels[pairs].all(axis=0))
        codes, size = np.nan_to_num(self.centers, nan=-1.0).astype(np.int64) + 1, 1
        size += int(codes[coded].max(initial=0))

        def weights_of(columns: Array, cells: Array) -> Array:
            """Weights of the centers in these cells of the columns (c,), (b,); cells (b, c) with a 0 are missing."""
            flat, own = (
                np.ravel_multi_index(tuple(part), (size,) * len(columns))
                for part in (codes[columns], cells.T)
            )
            table = np.bincount(flat, self.weights, minlength=size ** len(columns))
            return np.where((cells > 0).all(axis=1), np.minimum(table[own], 1.0), 0.0)

        def equal(rows: Array) -> tuple[Array, Array]:
            cells = np.minimum(np.nan_to_num(rows, nan=-1.0).astype(np.int64) + 1, size - 1)
            single, double = np.zeros(rows.shape), np.zeros((len(rows), pairs.shape[1]))
            for j in coded:
                single[:, j] = weights_of(np.array([j]), cells[:, [j]])
            for place in both:
                double[:, place] = weights_of(pairs[:, place], cells[:, pairs[:, place]])
            return single, double

        return equal


# -- Transformation of columns to normal scores by their ranks -----------------------------------------------

KNOTS = 200
"""Largest number of quantiles between which the map is linear."""


@dataclass(frozen=True)
class NormalScores:
    """An increasing piecewise linear map of each column to approximately standard normal scores.

    Equal values have one score, the mean of those of their ranks. Values outside the range of the training rows have the
    score of the nearest training value.
    """

    knots: tuple[tuple[Array, Array], ...]
    """For each column, values and their scores, ascending."""

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        for values, scores in self.knots:
            require(len(require_finite("knots", values, (None,))) > 0, "a column has no knots")
            require_ascending("knots", values)
            require_finite("scores", scores, values.shape)

    def apply(self, columns: Array) -> Array:
        """Scores of columns (n, d), (n, d); missing values (NaN) stay missing."""
        scores = [np.interp(column, *knots) for column, knots in zip(columns.T, self.knots, strict=True)]
        return np.stack(scores, axis=1)


def learn_normal_scores(columns: Array, weights: Array) -> NormalScores:
    """Normal scores of training columns (n, d); a weight (n,) counts as that many copies of its row."""
    n = max(float(weights.sum()), 2.0)
    count = int(min(n, KNOTS))
    shares = (np.arange(count) + 0.5) / count
    inner = quantiles(columns, weights, shares)
    values = np.concatenate([columns.min(axis=0)[None], inner, columns.max(axis=0)[None]])
    scores = ndtri(np.concatenate([[0.5 / n], shares, [1 - 0.5 / n]]))
    return NormalScores(tuple(_merge_equal(column, scores) for column in values.T))


def _merge_equal(values: Array, scores: Array) -> tuple[Array, Array]:
    """Distinct values, each with the mean of its scores."""
    distinct, group = np.unique(values, return_inverse=True)
    return distinct, np.bincount(group, scores) / np.bincount(group)

"""Quantiles, ranks and spread of weighted columns.

A weight counts as that many copies of its row. There are three definitions of a quantile, for three uses:

- `quantiles`: linear interpolation between neighboring copies (definition 7 of Hyndman and Fan 1996, the default of
  `numpy.quantile`). Needs weights in units of rows.
- `inverse_cdf_quantiles`: a value of the sample, or the midpoint of two (definition 2; "averaged_inverted_cdf" of
  `numpy.quantile`). Does not depend on the unit of the weights.
- `histogram_quantiles`: linear interpolation of the cumulative counts of a histogram, where values are not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import (
    as_float64,
    as_int64,
    as_type,
    code_type,
    is_matrix,
    map_ranges,
    row_major,
    twin,
)

ROOT_BITS = 16
"""Leading bits that the first node of a tree tells apart: sign, exponent and four bits of the fraction."""
SIGN = np.uint64(2**63)
SORTED_ROWS, FIRST_ROWS = 2**16, 256
"""Up to the first number of rows, sorting is faster than hashing if more than half of the first rows are distinct; up to
twice the second, in any case."""


class CellTree(NamedTuple):
    """Nodes that divide the ordered bits of numbers."""

    base: Array
    """Ordered bits of the smallest number of each node, (nodes,) uint64."""
    shift: Array
    """Number of trailing bits that each node ignores, (nodes,)."""
    first: Array
    """Position of the first entry of each node, and the number of all entries, (nodes + 1,)."""
    child: Array
    """The node that each entry is divided by, (entries,) int32; -1 if the entry is a cell."""


class CellCounts(NamedTuple):
    """The cells that have rows."""

    entries: Array
    """Positions among the entries of a tree, ascending, (cells,)."""
    rows: Array
    """Number of rows of each cell, (cells,) integers."""
    low: Array
    high: Array
    """Smallest and largest number of each cell, (cells,)."""
    weight: Array
    """Total weight of the rows of each cell, (cells,)."""


@cache
def root_tree() -> CellTree:
    """The tree of one node."""
    child = np.full(2**ROOT_BITS, -1, dtype=np.int32)
    child.flags.writeable = False  # it is shared
    base, shift, first = np.zeros(1, dtype=np.uint64), np.array([64 - ROOT_BITS]), np.array([0, 2**ROOT_BITS])
    return CellTree(base, shift, first, child)


def ordered_bits(x: Array) -> Array:
    """The ordered bits of numbers, as uint64; both zeros are the same."""
    bits = (np.asarray(x, dtype=np.float64) + 0.0).view(np.uint64)
    return np.where(bits >= SIGN, ~bits, bits | SIGN)


def native_distinct_positions(module: Any, x: Array, most: int) -> Any:
    x = as_float64(x)
    is_short = len(x) <= 2 * FIRST_ROWS
    if is_short or (len(x) <= SORTED_ROWS and _is_varied(module, x[:FIRST_ROWS])):
        return distinct_positions.numpy(x, most)
    values, positions = np.empty(most), np.empty(len(x), dtype=np.int64)
    count = module.distinct_positions(x, values, positions)
    if count < 0:
        return None
    order = np.argsort(values[:count])
    ranks = np.empty(count, dtype=np.int64)
    ranks[order] = np.arange(count)
    return values[order], ranks[positions]


def _is_varied(module: Any, x: Array) -> bool:
    """Whether more than half of the numbers are distinct."""
    room = np.empty(len(x) // 2), np.empty(len(x), dtype=np.int64)
    return bool(module.distinct_positions(x, *room) < 0)


@twin(native_distinct_positions)
def distinct_positions(x: Array, most: int) -> tuple[Array, Array] | None:
    """Distinct numbers of x (n,), ascending, and the position of each row's number among them; None if more than ``most``.

    x has no missing values.
    """
    values, positions = np.unique(np.asarray(x, dtype=np.float64) + 0.0, return_inverse=True)
    return (values, positions) if len(values) <= most else None


def native_cell_counts(module: Any, x: Array, weight: Array, tree: CellTree) -> Any:
    tallies, entries = np.zeros((len(tree.child), 4)), np.empty(len(tree.child), dtype=np.int64)
    count = module.tally_cells(as_float64(x), as_float64(weight), *tree_arrays(tree), tallies, entries)
    entries = np.sort(entries[:count])
    rows, low, high, weights = tallies[entries].T
    return CellCounts(entries, rows.astype(np.int64), low, high, weights)


@twin(native_cell_counts)
def cell_counts(x: Array, weight: Array, tree: CellTree) -> CellCounts:
    """Rows, weight, smallest and largest number of the cells of x (n,); NaN is in no cell."""
    x = np.asarray(x, dtype=np.float64) + 0.0
    known, size = ~np.isnan(x), len(tree.child)
    cells = cell_numbers(x[known], tree)
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, cells, x[known])
    np.maximum.at(high, cells, x[known])
    rows, weights = np.bincount(cells, minlength=size), np.bincount(cells, weight[known], size)
    entries = np.flatnonzero(rows)
    return CellCounts(entries, rows[entries], low[entries], high[entries], weights[entries])


def native_cell_weights(
    module: Any, x: Array, tree: CellTree, labels: Array, weight: Array, columns: int
) -> Any:
    weights = np.zeros((len(tree.child), columns))
    module.weigh_cells(as_float64(x), *tree_arrays(tree), as_int64(labels), as_float64(weight), weights)
    return weights


@twin(native_cell_weights)
def cell_weights(x: Array, tree: CellTree, labels: Array, weight: Array, columns: int) -> Array:
    """Weights of the rows of x (n,) by entry and label, (entries, columns); negative labels are in the last column."""
    known = ~np.isnan(x)
    cells = cell_numbers(np.asarray(x, dtype=np.float64)[known], tree)
    labels = np.where(labels < 0, columns - 1, labels)[known]
    sums = np.bincount(cells * columns + labels, weight[known], minlength=len(tree.child) * columns)
    return sums.reshape(-1, columns)


def cell_numbers(x: Array, tree: CellTree) -> Array:
    """The entry that each number of x (n,), none of them NaN, falls into."""
    bits, node = ordered_bits(x), np.zeros(len(x), dtype=np.int64)
    entry = np.zeros(len(x), dtype=np.int64)
    pending = np.arange(len(x))
    while len(pending):
        at = node[pending]
        place = (bits[pending] - tree.base[at]) >> tree.shift[at].astype(np.uint64)
        last = (tree.first[at + 1] - tree.first[at] - 1).astype(np.uint64)
        entry[pending] = tree.first[at] + np.minimum(place, last).astype(np.int64)
        node[pending] = tree.child[entry[pending]]
        pending = pending[node[pending] >= 0]
    return entry


def tree_arrays(tree: CellTree) -> tuple[Array, ...]:
    """The arrays of a tree, in the types of native code."""
    base, child = as_type(tree.base, np.uint64), as_type(tree.child, np.int32)
    return base, as_int64(tree.shift), as_int64(tree.first), child


# -- Cut points of numbers -------------------------------------------------------------------------------------

NORMAL_IQR = 2.0 * 0.6744897501960817
"""Interquartile range of the standard normal distribution."""
ROUNDING = 1e-12
"""Relative tolerance when a cumulative weight is compared with a share of the total."""
COPY_ROUNDING = 1e-9
"""Absolute tolerance, in rows, when a cumulative weight is compared with a position."""


def sort_columns(columns: Array, weights: Array) -> tuple[Array, Array]:
    """Values of each column in ascending order and the cumulative weights up to each, (d, n) each.

    ``columns`` are (d, n), one column per line; ``weights`` (n,).
    """
    if len(weights) and weights.min() == weights.max():  # a sort without positions takes a tenth of the time
        return np.sort(columns, axis=1), np.broadcast_to(np.cumsum(weights), columns.shape)
    order = np.argsort(columns, axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1), np.cumsum(weights[order], axis=1)


def quantiles(columns: Array, weights: Array, shares: Array) -> Array:
    """Quantiles of columns (n, d) at given shares, by linear interpolation between neighboring copies, (shares, d)."""
    positions = shares * max(float(weights.sum()) - 1.0, 0.0)
    low = np.floor(positions)
    part = positions - low
    ranked = list(zip(*sort_columns(columns.T, weights), strict=True))
    below, above = (np.stack([_copies_at(*pair, at) for pair in ranked], axis=1) for at in (low, low + 1))
    return (1 - part)[:, None] * below + part[:, None] * above


def _copies_at(values: Array, cumulative: Array, positions: Array) -> Array:
    """Values of the copies at given positions, counted from 0."""
    rows = np.searchsorted(cumulative, positions + COPY_ROUNDING, side="right")
    return np.asarray(values[np.minimum(rows, len(values) - 1)])


def inverse_cdf_quantiles(values: Array, weight: Array, shares: Sequence[float]) -> list[float]:
    """Quantiles of values (n,): the midpoint where a whole interval has the required share of the weight below it.

    >>> inverse_cdf_quantiles(np.array([3.0, 1.0, 2.0, 4.0]), np.ones(4), (0.5, 1.0))
    [2.5, 4.0]
    """
    ranked, cumulative = sort_columns(values[None], weight)
    return [float(inverse_cdf_quantile(ranked, cumulative, share)[0]) for share in shares]


def inverse_cdf_quantile(ranked: Array, cumulative: Array, share: float) -> Array:
    """The quantile at one share of several columns, (d,), given the result of `sort_columns`, (d, n) each."""
    total, last = cumulative[:, -1:], ranked.shape[1] - 1
    low = (cumulative < (share - ROUNDING) * total).sum(axis=1)
    high = (cumulative <= (share + ROUNDING) * total).sum(axis=1)
    column = np.arange(len(ranked))
    return np.asarray((ranked[column, np.minimum(low, last)] + ranked[column, np.minimum(high, last)]) / 2)


def histogram_quantiles(counts: Array, shares: Sequence[float]) -> Array:
    """Quantiles in units of bins, (shares,), of a histogram (bins,): bin i covers i to i + 1, uniformly."""
    cumulative = np.cumsum(counts)
    below = np.array(shares) * cumulative[-1]
    bins = np.searchsorted(cumulative, below)
    return bins + 1.0 - (cumulative[bins] - below) / np.where(counts[bins] > 0, counts[bins], 1.0)


def robust_deviation(columns: Array, weights: Array) -> Array:
    """min(standard deviation, interquartile range / `NORMAL_IQR`) of each column, (d,).

    The standard deviation alone where the interquartile range is 0: with half of the rows equal it measures no spread.
    """
    deviation = standard_deviation(columns, weights)
    low, high = quantiles(columns, weights, np.array([0.25, 0.75]))
    from_quartiles = (high - low) / NORMAL_IQR
    return np.where(from_quartiles > 0, np.minimum(deviation, from_quartiles), deviation)


def standard_deviation(columns: Array, weights: Array) -> Array:
    """Sample standard deviation (divisor n - 1) of each column, (d,); exactly 0 for a constant column."""
    total = weights.sum()
    centered = columns - weights @ columns / total
    deviation = np.sqrt(weights @ centered**2 / max(total - 1.0, 1.0))
    return np.where(np.ptp(columns, axis=0) > 0, deviation, 0.0)


def mid_ranks(columns: Array, weights: Array) -> Array:
    """Rank of each cell among the copies of its column, ties sharing the mean of their ranks, (n, d)."""
    return np.stack([_mid_ranks(column, weights) for column in columns.T], axis=1)


def _mid_ranks(column: Array, weights: Array) -> Array:
    _, group = np.unique(column, return_inverse=True)
    mass = np.bincount(group, weights)
    return np.asarray((np.cumsum(mass) - 0.5 * mass + 0.5)[group])


# -- Codes of the bins that numbers fall into ----------------------------------------------------------------

MOST_EDGES = 2**15 - 2
"""Native code supports so many edges of a column."""
ROW_BYTES = 16
"""Approximate number of bytes of a cell and its code."""


def native_bin_codes(module: Any, x: Array, edges: Sequence[Array]) -> Any:
    if not is_matrix(x, "f") or not x.shape[1] or max(map(len, edges)) > MOST_EDGES:
        return NotImplemented
    first = as_int64(np.concatenate([[0], np.cumsum([len(inner) for inner in edges])]))
    joined = as_float64(np.concatenate([np.zeros(0), *edges]))
    out = np.empty(x.shape, dtype=np.int16)

    def of_rows(rows: slice) -> None:
        module.bin_codes(row_major(x[rows]), joined, first, out[rows])

    map_ranges(of_rows, len(x), x.shape[1] * ROW_BYTES)
    return out.astype(_type(edges), copy=False)


@twin(native_bin_codes)
def bin_codes(x: Array, edges: Sequence[Array]) -> Array:
    """The code of each number (n, d): how many of the ascending edges of its column are not above it; -1 for NaN."""
    codes: Array = np.empty(x.shape, dtype=_type(edges))
    for j, (inner, column) in enumerate(zip(edges, x.T, strict=True)):
        codes[:, j] = np.where(np.isnan(column), -1, np.searchsorted(inner, column, side="right"))
    return codes


def native_bin_columns(module: Any, columns: Sequence[Array], edges: Sequence[Array], limit: float) -> Any:
    if not columns or max(map(len, edges)) > MOST_EDGES or not all(map(_is_supported, columns)):
        return NotImplemented
    codes: Array = np.empty((len(columns[0]), len(columns)), dtype=_type(edges))
    inner = [as_float64(column_edges) for column_edges in edges]

    def of_rows(rows: slice) -> list[bool]:
        return [module.bin_column(x[rows], inner[j], limit, codes[rows, j]) for j, x in enumerate(columns)]

    return codes, np.any(map_ranges(of_rows, len(codes), len(columns) * ROW_BYTES), axis=0)


def _is_supported(column: Array) -> bool:
    return is_matrix(column[:, None], "fiu") and column.flags.aligned


@twin(native_bin_columns)
def bin_columns(columns: Sequence[Array], edges: Sequence[Array], limit: float) -> tuple[Array, Array]:
    """`bin_codes` of columns of any types of numbers, (n,) each, and which of them have a number beyond +- limit, (d,)."""
    codes: Array = np.empty((len(columns[0]) if columns else 0, len(columns)), dtype=_type(edges))
    is_beyond = np.zeros(len(columns), dtype=bool)
    for j, (inner, column) in enumerate(zip(edges, columns, strict=True)):
        numbers = column.astype(np.float64)
        codes[:, j] = np.where(np.isnan(numbers), -1, np.searchsorted(inner, numbers, side="right"))
        is_beyond[j] = (np.abs(numbers) > limit).any()
    return codes, is_beyond


def _type(edges: Sequence[Array]) -> type:
    """The type of the codes."""
    return code_type(max((len(inner) + 2 for inner in edges), default=1))


# -- Supervised cut points of an ordered column by minimum description length (Fayyad and Irani 1993) --------

LEAST_SHARE = 1e-12
"""Share of the rows below which a class counts as absent: rounding of differences of cumulative weights."""


def cuts(counts: Array) -> Array:
    """Accepted cut points, ascending: cut ``p`` separates the values before position ``p`` from the others.

    ``counts`` (values, k) are the weights of each class at each value, values ascending. Each interval is split
    recursively at the cut of least class entropy, as long as `is_accepted` holds.
    """
    cumulative = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
    candidates = boundary_points(counts)
    pending: list[tuple[int, int]] = [(0, len(counts))]
    accepted: list[int] = []
    while pending:
        low, high = pending.pop()
        inside = candidates[slice(*np.searchsorted(candidates, (low + 1, high)))]
        if not len(inside):
            continue
        left = _without_rounding(cumulative[inside] - cumulative[low])
        right = _without_rounding(cumulative[high] - cumulative[inside])
        best = int(np.argmin(entropy_bits(left) + entropy_bits(right)))
        if is_accepted(left[best], right[best]):
            accepted.append(int(inside[best]))
            pending += [(low, accepted[-1]), (accepted[-1], high)]
    return np.array(sorted(accepted), dtype=np.intp)


def boundary_points(counts: Array) -> Array:
    """Positions where a cut of least entropy can be: all but those between two pure values of the same class."""
    pure, first = np.count_nonzero(counts, axis=1) == 1, np.argmax(counts > 0, axis=1)
    same = pure[1:] & pure[:-1] & (first[1:] == first[:-1])
    return np.flatnonzero(~same) + 1


def entropy_bits(counts: Array) -> Array:
    """Number of rows times the entropy of their classes in bits, over the last axis of (..., k)."""
    total = counts.sum(axis=-1)
    return np.asarray((xlogy(total, total) - xlogy(counts, counts).sum(axis=-1)) / np.log(2.0))


def is_accepted(left: Array, right: Array) -> bool:
    """Whether a cut into class counts (k,) shortens the description: Fayyad and Irani's criterion times the row count."""
    parts = (left + right, left, right)
    n = float(parts[0].sum())
    if n <= 1.0:
        return False
    before, *after = (float(entropy_bits(part)) for part in parts)
    # The number of classes times their entropy.
    penalties = [np.count_nonzero(part) * float(entropy_bits(part)) / float(part.sum()) for part in parts]
    k = np.count_nonzero(parts[0])
    delta = k * np.log2(3.0) + np.log2(1.0 - 2.0 * 3.0**-k) - (penalties[0] - penalties[1] - penalties[2])
    return bool(before - sum(after) > np.log2(n - 1.0) + delta)


def _without_rounding(counts: Array) -> Array:
    return np.where(counts > LEAST_SHARE * counts.sum(axis=-1, keepdims=True), counts, 0.0)


# -- A sample of the distinct numbers of a column, which does not depend on how often or in which order they occur
#
# A number is in the sample if the hash of its bits begins with enough zeros: as few as leave no more numbers than wanted.
# Each zero halves the sample, so that a part of the numbers has about 2^zeros times as many distinct ones as are in the
# sample (Wegman's adaptive sampling; Flajolet 1990).

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class DistinctSample(NamedTuple):
    """Distinct numbers whose hashes begin with at least so many zeros."""

    values: Array
    """The numbers, ascending."""
    zeros: int


def native_distinct_sample(module: Any, x: Array, most: int, zeros: int = 0) -> Any:
    values = np.empty(most)
    count, zeros = module.distinct_sample(as_float64(x), zeros, values)
    return DistinctSample(np.sort(values[:count]), zeros)


@twin(native_distinct_sample)
def distinct_sample(x: Array, most: int, zeros: int = 0) -> DistinctSample:
    """At most ``most`` of the distinct numbers of x (n,), those whose hashes begin with at least ``zeros`` zeros, or with more.

    NaN is no number.
    """
    values = np.unique(np.asarray(x, dtype=np.float64) + 0.0)
    values = values[~np.isnan(values)]
    hashes = mixed(values.view(np.uint64))
    # A hash that begins with so many zeros is no larger.
    while np.count_nonzero(has := hashes <= np.uint64((2**64 - 1) >> zeros)) > most:
        zeros += 1
    return DistinctSample(values[has], zeros)


def mixed(words: Array) -> Array:
    """Each word multiplied and shifted, so that close words become unrelated."""
    words = words * MULTIPLIER
    return np.asarray((words ^ (words >> np.uint64(29))) * MULTIPLIER)


# -- k-means in one dimension over distinct weighted values --------------------------------------------------

TOLERANCE = 1e-4
"""Squared movement of the centers, relative to the variance, below which the iteration ends."""
PASSES = 300
"""Most passes of Lloyd's iteration."""


def kmeans_centers(values: Array, weight: Array, start: Array) -> Array:
    """Cluster centers found by Lloyd's iteration from ``start`` (clusters,), ascending.

    ``values`` (n,) are distinct and ascending; a value of weight w acts like w equal rows. The iteration ends when no
    value changes its cluster or the centers move by less than `TOLERANCE`, as in scikit-learn's KMeans.
    """
    mean = np.average(values, weights=weight)
    centered = values - mean
    tolerance = TOLERANCE * np.average(centered**2, weights=weight)
    current, cluster = start - mean, np.full(len(values), -1)
    for _ in range(PASSES):
        before, cluster = cluster, np.argmin(current * current - 2.0 * centered[:, None] * current, axis=1)
        updated = _means(centered, weight, cluster, current)
        shift = np.sum((updated - current) ** 2)
        current = updated
        if np.array_equal(before, cluster) or shift <= tolerance:
            break
    return np.sort(current) + mean


def _means(values: Array, weight: Array, cluster: Array, current: Array) -> Array:
    """Means of the clusters; an empty one takes over one of the rows farthest from their centers."""
    k = len(current)
    mass = np.bincount(cluster, weight, minlength=k)
    total = np.bincount(cluster, weight * values, minlength=k)
    empty = np.flatnonzero(mass == 0)
    if len(empty):
        for target, row in zip(empty, _farthest(values, weight, cluster, current, len(empty)), strict=True):
            share = min(1.0, weight[row])
            total[cluster[row]] -= share * values[row]
            mass[cluster[row]] -= share
            total[target], mass[target] = share * values[row], share
    return np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), current)


def _farthest(values: Array, weight: Array, cluster: Array, current: Array, count: int) -> Array:
    """Positions of the ``count`` rows farthest from their centers; a value of weight w counts as w rows."""
    order = np.argsort(-((values - current[cluster]) ** 2), kind="stable")
    copies = np.clip(np.ceil(weight[order]), 1, count).astype(np.intp)
    return np.repeat(order, copies)[:count]


# -- k-means over distinct weighted rows in any number of columns, with missing values (NaN) in distances ----

RESTARTS = 10
"""Number of runs from different starts."""
EQUAL = 1e-10
"""Distances between scaled rows that differ by less are equal: rounding errors must not choose between clusters."""


def cluster_centers(rows: Array, weight: Array, count: int, seed: int) -> Array:
    """Centers of the best of `RESTARTS` runs of Lloyd's iteration, (count, d), in the order in which they were started.

    ``rows`` (n, d) are distinct, at least ``count`` of them; a row of weight w acts like w equal rows. The result does
    not depend on the order of the original rows if these are put into one order before: random numbers choose shares of
    the weight.
    """
    rng = np.random.default_rng(seed)
    starts = [initial_centers(rows, weight, count, rng) for _ in range(RESTARTS if count > 1 else 1)]
    runs = [lloyd(rows, weight, start) for start in starts]
    return runs[int(first_least(np.array([loss for _, loss in runs])))][0]


def first_least(numbers: Array) -> Array:
    """Position of the first of the least numbers along the last axis; those that are `EQUAL` count as one."""
    least = numbers.min(axis=-1, keepdims=True)
    return np.argmax(numbers <= least + EQUAL * (1.0 + np.abs(least)), axis=-1)


def squared_distances(rows: Array, points: Array) -> Array:
    """Squared Euclidean distances over the known cells of each row (n, d) to points (m, d), (n, m)."""
    known = ~np.isnan(rows)
    filled = np.where(known, rows, 0.0)
    squares = np.sum(filled**2, axis=1)[:, None] - 2.0 * filled @ points.T + known @ (points**2).T
    return np.maximum(squares, 0.0)


def initial_centers(rows: Array, weight: Array, count: int, rng: np.random.Generator) -> Array:
    """Rows that are far apart, (count, d): k-means++ (Arthur and Vassilvitskii 2007)."""
    chosen, chance = [], weight
    nearest = np.full(len(rows), np.inf)
    for _ in range(count):
        cumulative = np.cumsum(chance)
        draw = rng.random() * cumulative[-1]
        position = min(int(np.searchsorted(cumulative, draw, side="right")), len(rows) - 1)
        chosen.append(rows[position])
        nearest = np.minimum(nearest, squared_distances(rows, rows[position][None])[:, 0])
        nearest[position] = 0.0
        chance = weight * nearest if (nearest > 0).any() else weight
    return np.stack(chosen)


def lloyd(rows: Array, weight: Array, start: Array) -> tuple[Array, float]:
    """Centers (count, d) once no row changes its cluster, and the weighted sum of squared distances to them."""
    means, cluster = start, np.full(len(rows), -1)
    squares, numbers = np.sum(rows**2, axis=1), np.arange(len(start))[:, None]
    for _ in range(PASSES):
        # One cluster after another: rows of few clusters would be short loops.
        distances = np.maximum(squares - 2.0 * means @ rows.T + np.sum(means**2, axis=1)[:, None], 0.0)
        before, cluster = cluster, _refill_empty(_first_of_least(distances), distances)
        if np.array_equal(before, cluster):
            break
        share = weight * (cluster == numbers)
        means = share @ rows / share.sum(axis=1)[:, None]
    return means, float(weight @ squared_distances(rows, means)[np.arange(len(rows)), cluster])


def _first_of_least(distances: Array) -> Array:
    """`first_least` of each column of (m, n)."""
    least = distances.min(axis=0)
    least += EQUAL * (1.0 + least)
    position = np.zeros(distances.shape[1], dtype=np.intp)
    for number in range(len(distances) - 1, -1, -1):
        position[distances[number] <= least] = number
    return position


def _refill_empty(cluster: Array, distances: Array) -> Array:
    """Assign to each empty cluster the farthest row of those in clusters of several rows; distances are (m, n)."""
    for empty in np.flatnonzero(np.bincount(cluster, minlength=len(distances)) == 0):
        sizes = np.bincount(cluster, minlength=len(distances))
        movable = np.where(sizes[cluster] > 1, distances[cluster, np.arange(len(cluster))], -1.0)
        cluster[first_least(-movable)] = empty
    return cluster

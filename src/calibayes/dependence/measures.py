"""The interface of a measure of dependence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from scipy import stats
from scipy.linalg.blas import dsyrk

from calibayes.core.protocols import Array
from calibayes.kernels.cut_points import mid_ranks, quantiles

PRECISION = 1e-13
"""Relative precision of the bisection for the median: nearly that of float64."""
ROUNDING = 1e-6
"""Tolerance in pairs when numbers of pairs are compared."""
LEAST_EIGENVALUE = 1e-9
"""Eigenvalues of the landmarks' Gram matrix below this share of the largest are rounding errors."""
LEAST_RESIDUAL = 1e-8
"""Residual of the diagonal at a candidate, times the squared share of rows near it, below which no landmark is added.
For isolated rows only the diagonal matters, which is stored separately."""


def median_squared_gaps(columns: Array, weights: Array) -> Array:
    """Median over pairs of different rows of (x_l - x_m)^2, for each column of (n, d), (d,).

    A weight counts as that many copies of its row. Where more than half of the pairs are equal the median is 0, which is
    no scale; it is replaced by the mean, which is twice the variance (0 for a constant column).
    """
    return np.array([_median_squared_gap(column, weights) for column in columns.T])


def _median_squared_gap(column: Array, weights: Array) -> float:
    order = np.argsort(column, kind="stable")
    values, weight = column[order], weights[order]
    total = float(weight.sum())
    pairs = 0.5 * total * (total - 1.0)
    gap, reached = _gap_of_rank(values, weight, np.floor((pairs - 1) / 2) + 1)
    upper_gap = gap if reached >= np.floor(pairs / 2) + 1 - ROUNDING else _next_gap(values, gap)
    median = 0.5 * (gap**2 + upper_gap**2)
    if median > 0:
        return float(median)
    centered = values - weight @ values / total
    return float(2.0 * (weight @ centered**2) / total)


def _gap_of_rank(values: Array, weight: Array, rank: float) -> tuple[float, float]:
    """The rank-th smallest gap between sorted values (n,), and the number of pairs up to it, by bisection."""
    cumulative = np.concatenate([[0.0], np.cumsum(weight)])
    copies = float((0.5 * weight * (weight - 1.0)).sum())

    def pairs_within(gap: float) -> float:
        ends = np.searchsorted(values, values + gap, side="right")
        return float(weight @ (cumulative[ends] - cumulative[1:])) + copies

    low, high = 0.0, float(values[-1] - values[0])
    if pairs_within(low) >= rank - ROUNDING:
        return 0.0, pairs_within(low)
    while high - low > PRECISION * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if pairs_within(middle) >= rank - ROUNDING else (middle, high)
    return high, pairs_within(high)


def _next_gap(values: Array, gap: float) -> float:
    """The smallest gap between sorted values that is larger than ``gap``."""
    ends = np.searchsorted(values, values + gap, side="right")
    inside = ends < len(values)
    return float((values[ends[inside]] - values[inside]).min()) if inside.any() else gap


def gram_factor(column: Array, share: Array, scale: float, landmarks: int, tolerance: float) -> Array:
    """F (n, rank) with F F' close to exp(-(x_l - x_m)^2 / scale), of as small a rank as possible (Nystroem method).

    ``share`` (n,) are the weights of the rows, which sum to one. The error in the weighted mean of the diagonal is
    below the tolerance plus the error of the approximation by landmarks.
    """
    candidates = _candidates(column, share, landmarks)
    points = _landmarks(candidates, _neighbors(candidates, column, share, scale), scale, landmarks)
    values, vectors = np.linalg.eigh(_gram(points, points, scale))
    significant = values > LEAST_EIGENVALUE * values[-1]
    factor = _gram(column, points, scale) @ (vectors[:, significant] / np.sqrt(values[significant]))
    mass, directions = np.linalg.eigh((factor * share[:, None]).T @ factor)
    return np.asarray(factor @ directions[:, np.cumsum(mass) > tolerance])


def _candidates(column: Array, share: Array, count: int) -> Array:
    """Candidate landmarks, distinct and ascending: quantiles, equidistant points and the outermost rows on each side."""
    at_quantiles = quantiles(column[:, None], share * len(column), np.linspace(0, 1, count))[:, 0]
    outermost = np.sort(column)[np.r_[:count, -count:0]] if len(column) > 2 * count else column
    equidistant = np.linspace(column.min(), column.max(), count)
    return np.unique(np.concatenate([at_quantiles, equidistant, outermost]))


def _neighbors(candidates: Array, column: Array, share: Array, scale: float) -> Array:
    """Share of the rows within sqrt(scale) of each candidate, (candidates,)."""
    order, radius = np.argsort(column), np.sqrt(scale)
    cumulative = np.concatenate([[0.0], np.cumsum(share[order])])
    low, high = (np.searchsorted(column[order], candidates + sign * radius) for sign in (-1, 1))
    return np.asarray(cumulative[high] - cumulative[low])


def _landmarks(candidates: Array, neighbors: Array, scale: float, most: int) -> Array:
    """At most ``most`` landmarks, ascending: the pivots of a Cholesky factorization of the candidates' Gram matrix.

    Each step takes the candidate with the largest residual times squared share of neighbors, until that is small.
    """
    factor_rows, residual = np.zeros((most, len(candidates))), np.ones(len(candidates))
    priority = neighbors**2
    chosen: list[int] = []
    while len(chosen) < most and (residual * priority).max() > LEAST_RESIDUAL:
        pivot = int(np.argmax(residual * priority))
        before = factor_rows[: len(chosen)]
        row = _gram(candidates[pivot : pivot + 1], candidates, scale)[0] - before[:, pivot] @ before
        factor_rows[len(chosen)] = row / np.sqrt(residual[pivot])
        residual -= factor_rows[len(chosen)] ** 2
        residual[pivot] = 0.0
        chosen.append(pivot)
    return np.sort(candidates[chosen])


def _gram(left: Array, right: Array, scale: float) -> Array:
    """exp(-(x - y)^2 / scale) for all pairs of x (n,) and y (m,), (n, m)."""
    gaps = left[:, None] - right
    return np.exp(-(gaps**2) / scale)


class PairStatistics(NamedTuple):
    """Statistics and p-values of all pairs of columns.

    Examples
    --------
    >>> import numpy as np
    >>> PairStatistics(statistic=np.array([0.5]), p_value=np.array([0.01])).p_value
    array([0.01])
    """

    statistic: Array
    """(d, d), symmetric."""
    p_value: Array
    """(d, d), of the test that the two columns are independent."""


class Measure(Protocol):
    """A measure of dependence between pairs of columns. A row of weight w counts as w copies.

    Examples
    --------
    >>> import numpy as np
    >>> from calibayes.dependence import Pearson
    >>> columns = np.array([[1.0, 2.0], [2.0, 4.1], [3.0, 5.9], [4.0, 8.2]])
    >>> Pearson().measure(columns, np.ones(4)).statistic.round(3)
    array([[1.   , 0.999],
           [0.999, 1.   ]])
    """

    @property
    def name(self) -> str:
        """Name in tables and plots."""

    def measure(self, columns: Array, weights: Array) -> PairStatistics:
        """Statistics and p-values of all pairs; columns (n, d), weights (n,)."""


# -- Pearson's and Spearman's correlations of all pairs of columns -------------------------------------------


@dataclass(frozen=True)
class Pearson:
    """Pearson correlation of the values: detects linear dependence. p-values by the t distribution.

    Examples
    --------
    >>> from calibayes import measure_dependence
    >>> from sklearn.datasets import load_iris
    >>> measure_dependence(*load_iris(return_X_y=True), measure=Pearson()).statistics.shape
    (3, 4, 4)
    """

    name: ClassVar[str] = "Pearson"

    def measure(self, columns: Array, weights: Array) -> PairStatistics:
        n = float(weights.sum())
        centered = columns - weights @ columns / n
        covariance = (centered * weights[:, None]).T @ centered
        deviation = np.sqrt(np.diag(covariance))
        safe = np.where(deviation > 0, deviation, np.inf)  # so that a constant column has correlation 0
        correlation = np.clip(covariance / np.outer(safe, safe), -1.0, 1.0)
        if n <= 2:
            return PairStatistics(correlation, np.ones_like(correlation))
        with np.errstate(divide="ignore"):
            t = np.abs(correlation) * np.sqrt((n - 2.0) / (1.0 - correlation**2))
        return PairStatistics(correlation, 2 * stats.t.sf(t, n - 2.0))


@dataclass(frozen=True)
class Spearman:
    """Spearman correlation, of the ranks: detects monotone dependence. p-values by the t distribution.

    Examples
    --------
    >>> from calibayes import measure_dependence
    >>> from sklearn.datasets import load_iris
    >>> measure_dependence(*load_iris(return_X_y=True), measure=Spearman()).statistics.shape
    (3, 4, 4)
    """

    name: ClassVar[str] = "Spearman"

    def measure(self, columns: Array, weights: Array) -> PairStatistics:
        return Pearson().measure(mid_ranks(columns, weights), weights)


# -- The Hilbert-Schmidt independence criterion of all pairs of columns (slb-2020, section 2.2) --------------

CELLS_PER_BLOCK = 2**21


@dataclass(frozen=True)
class HSIC:
    """tr(K H L H) / n^2 with Gaussian kernels exp(-gap^2 / median of gap^2).

    Parameters
    ----------
    exact_rows : int, default=2000
        With more rows than this, low-rank factors replace the Gram matrices.
    landmarks : int, default=120
        Maximum rank of the factors; columns without heavy tails need far fewer.
    tolerance : float, default=1e-6
        Approximation error allowed in the mean of a Gram matrix's diagonal, unless ``landmarks`` is reached first.

    Examples
    --------
    >>> from calibayes import measure_dependence
    >>> from sklearn.datasets import load_iris
    >>> measure_dependence(*load_iris(return_X_y=True), measure=HSIC()).statistics.shape
    (3, 4, 4)
    """

    exact_rows: int = 2000
    landmarks: int = 120
    tolerance: float = 1e-6

    name: ClassVar[str] = "HSIC"

    def measure(self, columns: Array, weights: Array) -> PairStatistics:
        scale = median_squared_gaps(columns, weights)
        scale = np.where(scale > 0, scale, 1.0)
        n, share = float(weights.sum()), weights / weights.sum()
        if len(columns) <= self.exact_rows:
            statistic, mean = exact_hsic(columns, share, scale)
        else:
            statistic, mean = low_rank_hsic(columns, share, scale, self.landmarks, self.tolerance)
        return PairStatistics(statistic, _gamma_p_values(statistic, mean, n))


def exact_hsic(columns: Array, share: Array, scale: Array) -> tuple[Array, Array]:
    """HSIC (d, d) and the mean of each Gram matrix (d,), by one product of all Gram matrices, in blocks of rows.

    Gram matrices are symmetric, so only the blocks right of the diagonal are computed; centering uses the row sums.
    """
    n, d = columns.shape
    values, root = columns.T, np.sqrt(share)
    product, sums = np.zeros((d, d)), np.zeros((d, n))
    size = max(1, CELLS_PER_BLOCK // (n * d))
    for first in range(0, n, size):
        block = slice(first, min(first + size, n))
        gram = values[:, block, None] - values[:, None, first:]
        np.square(gram, out=gram)
        gram *= (-1.0 / scale)[:, None, None]
        np.exp(gram, out=gram)
        width = block.stop - first
        sums[:, block] += gram @ share[first:]
        sums[:, block.stop :] += share[block] @ gram[:, :, width:]
        gram *= root[block, None]
        gram *= root[first:]
        gram[:, :, width:] *= np.sqrt(2.0)
        product += dsyrk(1.0, gram.reshape(d, -1).T, trans=1)
    product = np.triu(product) + np.triu(product, 1).T
    mean = sums @ share
    return product - 2 * (sums * share) @ sums.T + np.outer(mean, mean), mean


def low_rank_hsic(
    columns: Array, share: Array, scale: Array, landmarks: int, tolerance: float
) -> tuple[Array, Array]:
    """The same from low-rank factors of the Gram matrices plus the diagonal of the approximation error.

    Rows far from all others contribute to the diagonal only, so heavy tails cost no accuracy.
    """
    factors = [
        gram_factor(column, share, float(width), landmarks, tolerance)
        for column, width in zip(columns.T, scale, strict=True)
    ]
    mean = np.array([float(((share @ factor) ** 2).sum()) for factor in factors])
    centered = [(factor - share @ factor) * np.sqrt(share)[:, None] for factor in factors]
    starts = np.concatenate([[0], np.cumsum([factor.shape[1] for factor in centered])])
    side_by_side = np.concatenate(centered, axis=1)
    statistic = np.empty((len(centered), len(centered)))
    for j, factor in enumerate(centered):
        squares = ((factor.T @ side_by_side[:, starts[j] :]) ** 2).sum(axis=0)
        statistic[j, j:] = np.add.reduceat(squares, starts[j:-1] - starts[j])
    residual = np.stack([1.0 - (factor**2).sum(axis=1) for factor in factors])
    captured = np.stack([((factor - share @ factor) ** 2).sum(axis=1) for factor in factors])
    diagonal = (residual * share**2) @ (captured + 0.5 * residual).T
    return np.triu(statistic) + np.triu(statistic, 1).T + diagonal + diagonal.T, mean + residual @ share**2


def _gamma_p_values(statistic: Array, mean: Array, n: float) -> Array:
    """p-values by the gamma approximation of Gretton et al. (2008), with the mean and variance under independence."""
    if n < 6:
        return np.ones_like(statistic)
    off_diagonal = (mean * n - 1.0) / (n - 1.0)  # mean of the Gram matrix without its diagonal
    expected = (1.0 + np.outer(off_diagonal, off_diagonal) - off_diagonal[:, None] - off_diagonal) / n
    self_hsic = np.diag(statistic)
    variance = 2 * (n - 4) * (n - 5) / (n * (n - 1) * (n - 2) * (n - 3)) * np.outer(self_hsic, self_hsic)
    valid = (expected > 0) & (variance > 0)
    expected, variance = np.where(valid, expected, 1.0), np.where(valid, variance, 1.0)
    p_value = stats.gamma.sf(statistic, expected**2 / variance, scale=variance / expected)
    return np.where(valid, p_value, 1.0)


# -- Mutual information of all pairs of columns, after quantile binning --------------------------------------


@dataclass(frozen=True)
class MutualInformation:
    """Mutual information in nats, of columns in bins of about equal weight. p-values by the G-test (chi-squared).

    Parameters
    ----------
    bins : int, optional
        Number of bins; by default the cube root of the number of rows, between 2 and 16. Equal values share a bin.

    Examples
    --------
    >>> from calibayes import measure_dependence
    >>> from sklearn.datasets import load_iris
    >>> measure_dependence(*load_iris(return_X_y=True), measure=MutualInformation()).statistics.shape
    (3, 4, 4)
    """

    bins: int | None = None

    name: ClassVar[str] = "mutual information"

    def measure(self, columns: Array, weights: Array) -> PairStatistics:
        n = float(weights.sum())
        bins = int(np.clip(round(n ** (1 / 3)), 2, 16)) if self.bins is None else self.bins
        codes = np.clip(((mid_ranks(columns, weights) - 0.5) / n * bins).astype(np.int64), 0, bins - 1)
        d = columns.shape[1]
        flags = (codes[:, :, None] == np.arange(bins)).reshape(len(codes), d * bins).astype(np.float64)
        joint = ((flags * weights[:, None]).T @ flags / n).reshape(d, bins, d, bins).transpose(0, 2, 1, 3)
        share = weights @ flags / n
        information = _information(joint, share.reshape(d, bins))
        degrees = (share.reshape(d, bins) > 0).sum(axis=1) - 1.0
        freedom = np.outer(degrees, degrees)
        p_value = stats.chi2.sf(2 * n * information, np.maximum(freedom, 1.0))
        return PairStatistics(information, np.where(freedom > 0, p_value, 1.0))


def _information(joint: Array, share: Array) -> Array:
    """Sum of p log(p / (p_i p_j)) over all pairs of bins, (d, d)."""
    independent = share[:, None, :, None] * share[None, :, None, :]
    ratio = np.divide(joint, independent, out=np.ones_like(joint), where=joint > 0)
    return np.maximum((joint * np.log(ratio)).sum(axis=(2, 3)), 0.0)


# -- Permutation p-values for any measure of dependence ------------------------------------------------------


@dataclass(frozen=True)
class Permuted:
    """Another measure with p-values by permutation; one permutation of all columns serves all pairs.

    Parameters
    ----------
    of : Measure, default=HSIC()
        Computes the statistic.
    times : int, default=200
        Number of permutations; no p-value is below 1 / (times + 1).
    seed : int, default=0
        Seed of the permutations.

    Examples
    --------
    >>> from calibayes import measure_dependence
    >>> from calibayes.dependence import Pearson
    >>> from sklearn.datasets import load_iris
    >>> measure_dependence(*load_iris(return_X_y=True), measure=Permuted(Pearson(), times=20)).p_values.shape
    (3, 4, 4)
    """

    of: Measure = field(default_factory=HSIC)
    times: int = 200
    seed: int = 0

    @property
    def name(self) -> str:
        return self.of.name

    def measure(self, columns: Array, weights: Array) -> PairStatistics:
        statistic = self.of.measure(columns, weights).statistic
        copies = np.repeat(columns, weights.astype(np.int64), axis=0) if (weights % 1 == 0).all() else columns
        rng, unit_weights = np.random.default_rng(self.seed), np.ones(len(copies))
        as_large = np.zeros_like(statistic)
        for _ in range(self.times):
            null = self.of.measure(rng.permuted(copies, axis=0), unit_weights).statistic
            as_large += np.abs(null) >= np.abs(statistic)
        return PairStatistics(statistic, (as_large + 1.0) / (self.times + 1.0))

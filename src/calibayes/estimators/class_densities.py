"""Log kernel densities of columns and of pairs of columns, class by class (slb-2020, Eq. 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

from calibayes.core import verify
from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_array, require_finite, require_positions
from calibayes.encoders import Levels
from calibayes.estimators import density_columns
from calibayes.estimators.density_columns import (
    LabeledNumbers,
    Report,
    each_known,
    known_means,
    varying_columns,
)
from calibayes.kernels.cut_points import robust_deviation
from calibayes.kernels.grids import REFERENCE, plug_in_bandwidths
from calibayes.kernels.joint_density import OF_ANOTHER_CLASS, NormalScores, ProductKernel

BandwidthRule = Callable[[Array, Array], Array]
"""Columns (n, d) and weights (n,) -> bandwidths of the densities of single columns, (d,)."""
LEAST_BANDWIDTH = 1e-3
"""In standard deviations of the column: below it the density would have a spike at each repeated value."""

LEVEL_COUNT = 1.0
"""Pseudo-count of each level of a column."""

CONSTANT_DEVIATION = 0.1
"""Standard deviation, relative to that of the column, assumed for a column that is constant within a class."""


@dataclass(frozen=True)
class LogDensities:
    """The function from rows to features: standardized columns (optional), then log densities of columns and pairs.

    Parameters
    ----------
    varying : (d,) array
        Positions of the columns that are not constant.
    scores : NormalScores or None
        Transformation of these columns to normal scores, applied first.
    center, scale : (d,) arrays
        Mean and standard deviation of the transformed columns.
    kernels : one `ProductKernel` for each class
    pair_codes, pairs : (pairs,) and (2, pairs) arrays
        Class and columns of each pair.
    floor : float
        Least density, in units of one standard deviation of the columns.
    original_columns : bool
        Whether the standardized columns are features, except for columns of levels.
    levels : Levels or None
        The encoder of the columns of levels, if there are any: their densities are tables of probabilities.
    expected : (n_univariate + pairs,) array, optional
        Mean of each log density over the training rows, which replaces that of a missing value.
    excess : (2, pairs) array, optional
        Mean difference between the log density of a pair and that of its first and of its second column, which is added
        to the log density of the known column where the other one is missing.
    information : (pairs,) array, optional
        Mean of log p(a, b) - log p(a) - log p(b) over the training rows of the class of the pair.
    shares : (k,) array, optional
        Share of each class in the weight of the training rows.
    shapes : (pairs, 3) array, optional
        Factors of x^2, xy and y^2 in the exponent of the kernel of each pair, NaN for a product of kernels.
    """

    varying: Array
    scores: NormalScores | None
    center: Array
    scale: Array
    kernels: Sequence[ProductKernel]
    pair_codes: Array
    pairs: Array
    floor: float
    original_columns: bool = False
    levels: Levels | None = None
    expected: Array | None = None
    excess: Array | None = None
    information: Array | None = None
    shares: Array | None = None
    shapes: Array | None = None

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        d, k = len(require_array("varying", self.varying, (None,), "iu")), len(self.kernels)
        require(d > 0 and k > 0 and self.varying[0] >= 0, "the densities have no columns or no classes")
        verify.require_ascending("varying", self.varying)
        require_finite("center", self.center, (d,))
        require(bool((require_finite("scale", self.scale, (d,)) > 0).all()), "scale must be positive")
        if self.scores is not None:
            verify.require_length("scores", self.scores.knots, d)
        for kernel in self.kernels:
            columns = len(kernel.centers)
            require(columns == d, f"the densities of a class have {columns} of {d} columns")
        count = len(require_array("pair_codes", self.pair_codes, (None,), "iu"))
        require_array("pairs", self.pairs, (2, count), "iu")
        require_positions("pair_codes", self.pair_codes.tolist(), k)
        require_positions("pairs", self.pairs.ravel().tolist(), d)
        require(bool((self.pairs[0] < self.pairs[1]).all()), "a pair must be two columns in ascending order")
        verify.require_number("floor", self.floor, 1e-300, 1.0)
        if self.shapes is not None:
            square, cross, other_square = require_array("shapes", self.shapes, (count, 3)).T
            is_kernel = (square < 0) & (other_square < 0) & (4.0 * square * other_square > cross**2)
            require(bool((is_kernel | np.isnan(self.shapes).all(axis=1)).all()), "shapes contains no kernels")
        if self.expected is not None:
            require_finite("expected", self.expected, (self.n_univariate + count,))
            require_finite("excess", self.excess, (2, count))
            require_finite("information", self.information, (count,))
            verify.require_sums_of_one("shares", require_finite("shares", self.shares, (k,), 0.0).sum())

    @property
    def n_rows(self) -> int:
        """Number of training rows that the densities are computed from."""
        return sum(len(kernel.weights) for kernel in self.kernels)

    @property
    def n_univariate(self) -> int:
        """Number of densities of one column."""
        return len(self.kernels) * len(self.varying)

    @property
    def n_without_pairs(self) -> int:
        """Number of features that do not depend on the choice of pairs."""
        return self.n_univariate + (len(self.numeric) if self.original_columns else 0)

    @property
    def numeric(self) -> Array:
        """Positions of the columns of numbers among the varying ones."""
        coded = () if self.levels is None else self.levels.indices
        return np.flatnonzero(~np.isin(self.varying, coded))

    def with_pairs(self, pair_codes: Array, pairs: Array) -> LogDensities:
        """The same with other pairs, of which nothing is known yet."""
        return replace(
            self,
            pair_codes=pair_codes,
            pairs=pairs,
            expected=None,
            excess=None,
            information=None,
            shapes=None,
        )

    def with_full_matrices(self) -> LogDensities:
        """The same with a full bandwidth matrix for each pair of columns of numbers."""
        shapes, numeric = np.full((len(self.pair_codes), 3), np.nan), self.numeric
        for place, (c, pair) in enumerate(zip(self.pair_codes, self.pairs.T, strict=True)):
            if np.isin(pair, numeric).all():
                shapes[place] = full_shape(self.kernels[c].centers[pair].T, self.kernels[c].weights)
        return replace(self, shapes=shapes)

    def _with_some_pairs(self, chosen: Array) -> LogDensities:
        """The same with the pairs at these positions, of which only the kernels are known."""
        fewer = self.with_pairs(self.pair_codes[chosen], self.pairs[:, chosen])
        return fewer if self.shapes is None else replace(fewer, shapes=self.shapes[chosen])

    def restrict_to(self, features: Array) -> LogDensities:
        """The same with only those pairs whose feature is at one of these positions."""
        chosen = features[features >= self.n_without_pairs] - self.n_without_pairs
        fewer = self._with_some_pairs(chosen)
        if self.expected is None or self.excess is None or self.information is None:
            return fewer
        positions = np.concatenate([np.arange(self.n_univariate), self.n_univariate + chosen])
        of_pairs = {"excess": self.excess[:, chosen], "information": self.information[chosen]}
        return replace(fewer, expected=self.expected[positions], **of_pairs)

    def standardize(self, columns: Array) -> Array:
        """Varying columns, transformed and standardized, (n, d)."""
        varying = columns[:, self.varying]
        scores = varying if self.scores is None else self.scores.apply(varying)
        return (scores - self.center) / self.scale

    def features(self, columns: Array, kept_positions: Sequence[Array] | None, report: Report) -> Array:
        """Features of rows, (n, features); see `evaluate` for ``kept_positions``."""
        logs = self.complete(self.evaluate(columns, kept_positions, report))
        return np.concatenate([np.nan_to_num(self.own_columns(columns)), logs], axis=1)

    def own_columns(self, columns: Array) -> Array:
        """The standardized columns of numbers that are features, (n, numbers or 0)."""
        return self.standardize(columns)[:, self.numeric if self.original_columns else []]

    @property
    def parts(self) -> tuple[Array, Array]:
        """Positions of the log densities of the first and of the second column of each pair, (pairs,) each."""
        first, second = self.pair_codes * len(self.varying) + self.pairs
        return first, second

    def with_expected(self, logs: Array, rows: LabeledNumbers) -> LogDensities:
        """The same with the means over training rows, whose log densities (n, n_univariate + pairs) may be missing."""
        single, expected = logs[:, : self.n_univariate], known_means(logs, rows.weights)
        pairs, (first, second), information = (
            logs[:, self.n_univariate :],
            self.parts,
            np.zeros(len(self.pair_codes)),
        )
        if np.isnan(logs).any():
            excess = [known_means(pairs - single[:, part], rows.weights) for part in (first, second)]
        else:
            excess = [expected[self.n_univariate :] - expected[part] for part in (first, second)]
        for c in range(rows.k):
            own, of_class = np.flatnonzero(self.pair_codes == c), np.flatnonzero(rows.codes == c)
            gain = (
                pairs[np.ix_(of_class, own)]
                - single[np.ix_(of_class, first[own])]
                - single[np.ix_(of_class, second[own])]
            )
            information[own] = known_means(gain, rows.weights[of_class])
        shares = np.bincount(rows.codes, rows.weights, minlength=rows.k) / rows.weights.sum()
        means = {"excess": np.array(excess), "information": information, "shares": shares}
        return replace(self, expected=expected, **means)

    def complete(self, logs: Array) -> Array:
        """Log densities without missing ones.

        Of a pair of which one value is missing, the log density of the known column stays, plus the mean difference of the
        two; otherwise the mean over the training rows is neutral for a linear classifier. Raises ValueError if there are
        missing values and no means.
        """
        missing = np.isnan(logs)
        if not missing.any():
            return logs
        if self.expected is None or self.excess is None:
            problem = "missing values, and this model of an older version cannot predict such rows"
            raise ValueError(f"Input X contains NaN: {problem}. Fill them, or fit the model again")
        single = logs[:, : self.n_univariate]
        first, second = (single[:, part] + more for part, more in zip(self.parts, self.excess, strict=True))
        known_part = np.where(np.isnan(first), second, first)
        marginal = np.concatenate([np.full(single.shape, np.nan), known_part], axis=1)
        filled = np.where(missing, marginal, logs)
        return np.where(np.isnan(filled), self.expected, filled)

    def evaluate(self, columns: Array, kept_positions: Sequence[Array] | None, report: Report) -> Array:
        """Log densities, (n, n_univariate + pairs).

        ``kept_positions`` has for each class the position of each row among the kept rows, -1 for none: each row is then
        left out of its own densities. Those of missing values are NaN.
        """
        rows = self.standardize(columns)
        n, d = rows.shape
        densities = np.empty((n, self.n_univariate + len(self.pair_codes)))
        for c, kernel in enumerate(self.kernels):
            class_pairs = np.flatnonzero(self.pair_codes == c)
            left_out = np.full(n, -1) if kept_positions is None else kept_positions[c]
            shapes = None if self.shapes is None else self.shapes[class_pairs]
            blocks = kernel.densities(rows, self.pairs[:, class_pairs], left_out, shapes)
            for block, of_columns, of_pairs in blocks:
                densities[block, c * d : (c + 1) * d] = of_columns
                densities[block, self.n_univariate + class_pairs] = of_pairs
                report("densities of rows", c * n + block.stop, len(self.kernels) * n)
        np.maximum(densities, self.floor, out=densities)
        return np.log(densities, out=densities)

    def forests(self) -> LogDensities:
        """The same with the pairs of the maximum spanning forest of each class, by their information (Chow and Liu 1968).

        Pairs without positive information are no edges.
        """
        if self.information is None:
            raise ValueError("this model of an older version has no class densities: fit the model again")
        edges, d = [], len(self.varying)
        for c in range(len(self.kernels)):
            own = np.flatnonzero((self.pair_codes == c) & (self.information > 0))
            gain = self.information[own]
            costs = csr_array((1.0 + gain.max(initial=0.0) - gain, self.pairs[:, own]), shape=(d, d))
            tree = minimum_spanning_tree(costs).tocoo()
            places = {
                (i, j): place for place, i, j in zip(own.tolist(), *self.pairs[:, own].tolist(), strict=True)
            }
            edges += [
                places[min(i, j), max(i, j)]
                for i, j in zip(tree.row.tolist(), tree.col.tolist(), strict=True)
            ]
        chosen = np.array(sorted(edges), dtype=np.int64)
        return self._with_some_pairs(chosen)

    def class_log_densities(self, columns: Array, report: Report) -> Array:
        """log p(x | class), (n, k), of the standardized columns, by a forest of pairs in each class (slb-2020, Eq. 3).

        Missing values are left out, with the edges at them.
        """
        forests, k = self.forests(), len(self.kernels)
        logs = forests.evaluate(columns, None, report)
        single, pairs = logs[:, : self.n_univariate], logs[:, self.n_univariate :]
        first, second = forests.parts
        of_columns = np.nan_to_num(single).reshape(len(logs), k, -1).sum(axis=2)
        of_edges = np.nan_to_num(pairs - single[:, first] - single[:, second])
        return np.asarray(of_columns + of_edges @ np.eye(k)[forests.pair_codes])

    def feature_names(self, columns: Sequence[str], classes: Sequence[Any]) -> list[str]:
        """Names of the features, from the names of all columns."""
        names = [str(columns[j]) for j in self.varying]
        univariate = [f"log p({name} | {label})" for label in classes for name in names]
        pairs = zip(self.pair_codes, *self.pairs, strict=True)
        bivariate = [f"log p({names[i]}, {names[j]} | {classes[c]})" for c, i, j in pairs]
        return ([names[j] for j in self.numeric] if self.original_columns else []) + univariate + bivariate


def learn_log_densities(
    rows: LabeledNumbers,
    floor: float,
    kept_rows: int | None,
    seed: Any,
    normal_scores: bool = False,
    original_columns: bool = False,
    rule: BandwidthRule = plug_in_bandwidths,
) -> tuple[LogDensities, list[Array]]:
    """Densities of the columns, without pairs, and for each class the position of each row among its kept rows.

    Rows that are not kept have position -1, those of other classes `OF_ANOTHER_CLASS`. Raises ValueError if all columns are constant.
    """
    varying = varying_columns(rows.columns)
    if not len(varying):
        raise ValueError("all columns are constant: at least one must have two different values")
    columns, sizes = rows.columns[:, varying], rows.sizes[varying]
    scores = density_columns.normal_scores(columns, rows.weights, sizes) if normal_scores else None
    columns = columns if scores is None else scores.apply(columns)
    center, scale = density_columns.center_and_scale(columns, rows.weights, sizes)
    rng = np.random.default_rng(seed)
    kernels, kept_positions = [], []
    for c in range(rows.k):
        class_rows = _draw(np.flatnonzero(rows.codes == c), kept_rows, rng)
        kernels.append(_kernel((columns[class_rows] - center) / scale, rows.weights[class_rows], sizes, rule))
        positions = np.full(len(columns), -1)
        positions[class_rows] = np.arange(len(class_rows))
        kept_positions.append(positions)
    kept = np.max(kept_positions, axis=0) >= 0
    kept_positions = [np.where(kept & (p < 0), OF_ANOTHER_CLASS, p) for p in kept_positions]
    no_pairs = pairs_at(np.zeros(0, dtype=np.int64), len(varying))
    densities = LogDensities(
        varying,
        scores,
        center,
        scale,
        kernels,
        *no_pairs,
        floor,
        original_columns,
        _encoder_of(rows.levels, varying),
    )
    return densities, kept_positions


def _encoder_of(levels: Levels | None, columns: Array) -> Levels | None:
    """The encoder of those columns of levels that are among these; None if there are none."""
    indices = () if levels is None else levels.indices
    places = [place for place, j in enumerate(indices) if j in columns]
    if levels is None or not places:
        return None
    chosen: Any = {
        name: tuple(getattr(levels, name)[place] for place in places)
        for name in ("indices", "unpooled", "pooled")
    }
    return replace(levels, **chosen)


def _draw(positions: Array, most: int | None, rng: np.random.Generator) -> Array:
    """At most so many of the positions, drawn at random, ascending."""
    if most is None or len(positions) <= most:
        return positions
    return np.sort(rng.choice(positions, most, replace=False))


def _kernel(rows: Array, weights: Array, sizes: Array, rule: BandwidthRule) -> ProductKernel:
    """Kernels of one class: bandwidths by a rule, for pairs at the optimal rate of two dimensions, n^(-1/6).

    Kernels of levels make tables of probabilities in which each level has `LEVEL_COUNT` pseudo-counts.
    """
    n = np.maximum(weights @ ~np.isnan(rows), 1.0)
    bandwidth = each_known(rule, rows, weights)
    bandwidth = np.where(bandwidth > 0, bandwidth, CONSTANT_DEVIATION * REFERENCE * n**-0.2)
    bandwidth = np.where(sizes > 0, 1.0, np.maximum(bandwidth, LEAST_BANDWIDTH))
    double = bandwidth * n ** (1 / 5 - 1 / 6) / REFERENCE
    other = np.where(sizes > 0, LEVEL_COUNT / (n + LEVEL_COUNT * sizes), 0.0)
    levels = np.array([np.where(sizes > 0, 1.0 - (sizes - 1) * other, 0.0), other]) if sizes.any() else None
    return ProductKernel(rows.T.copy(), weights, bandwidth, double, levels)


def normal_bandwidths(columns: Array, weights: Array) -> Array:
    """The optimal bandwidths for normal columns, with robust deviations (normal reference rule), (d,)."""
    return np.asarray(REFERENCE * weights.sum() ** -0.2 * robust_deviation(columns, weights))


def full_shape(rows: Array, weights: Array) -> Array:
    """Factors of x^2, xy and y^2 in the exponent of a kernel for two columns (n, 2), NaN (3,) if it has no full matrix.

    The bandwidths along the principal components are those of the plug-in rule, at the rate of two dimensions.
    """
    known = ~np.isnan(rows).any(axis=1)
    rows, weights = rows[known], weights[known]
    n = float(weights.sum())
    if n <= 2:
        return np.full(3, np.nan)
    centered = rows - weights @ rows / n
    variances, axes = np.linalg.eigh((centered * weights[:, None]).T @ centered / n)
    if variances[0] <= 0:
        return np.full(3, np.nan)
    bandwidths = plug_in_bandwidths(centered @ axes, weights) * n ** (1 / 5 - 1 / 6) / REFERENCE
    precision = (axes / np.maximum(bandwidths, LEAST_BANDWIDTH) ** 2) @ axes.T
    return -0.5 * np.array([precision[0, 0], 2.0 * precision[0, 1], precision[1, 1]])


def pairs_at(positions: Array, d: int) -> tuple[Array, Array]:
    """Class codes and columns of positions in the flat (k, pairs) table of d columns."""
    all_pairs = np.stack(np.triu_indices(d, 1))
    codes, pair = np.divmod(positions, max(all_pairs.shape[1], 1))
    return codes, all_pairs[:, pair]

"""Log kernel densities of columns and of pairs of columns, class by class (slb-2020, Eq. 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import (
    require,
    require_array,
    require_ascending,
    require_finite,
    require_length,
    require_number,
    require_positions,
)
from calibayes.dependence import Dependence, Measure
from calibayes.estimators.log_density.report import Report
from calibayes.kernels.density.direct_plug_in import REFERENCE, plug_in_bandwidths
from calibayes.kernels.density.normal_scores import NormalScores, learn_normal_scores
from calibayes.kernels.density.product_kernel import ProductKernel
from calibayes.kernels.numbers.quantiles import standard_deviation

LEAST_BANDWIDTH = 1e-3
"""In standard deviations of the column: below it the density would have a spike at each repeated value."""

CONSTANT_DEVIATION = 0.1
"""Standard deviation, relative to that of the column, assumed for a column that is constant within a class."""


class LabeledNumbers(NamedTuple):
    """Training rows as numbers."""

    columns: Array
    """(n, d)"""
    codes: Array
    weights: Array
    k: int
    """Number of classes."""

    def only(self, keep: Array) -> LabeledNumbers:
        """The rows where ``keep`` is true, or at these positions."""
        return LabeledNumbers(self.columns[keep], self.codes[keep], self.weights[keep], self.k)


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
        Whether the standardized columns are features.
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

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        d, k = len(require_array("varying", self.varying, (None,), "iu")), len(self.kernels)
        require(d > 0 and k > 0 and self.varying[0] >= 0, "the densities have no columns or no classes")
        require_ascending("varying", self.varying)
        require_finite("center", self.center, (d,))
        require(bool((require_finite("scale", self.scale, (d,)) > 0).all()), "scale must be positive")
        if self.scores is not None:
            require_length("scores", self.scores.knots, d)
        for kernel in self.kernels:
            require(
                len(kernel.centers) == d,
                f"the densities of a class have {len(kernel.centers)} of {d} columns",
            )
        count = len(require_array("pair_codes", self.pair_codes, (None,), "iu"))
        require_array("pairs", self.pairs, (2, count), "iu")
        require_positions("pair_codes", self.pair_codes.tolist(), k)
        require_positions("pairs", self.pairs.ravel().tolist(), d)
        require(bool((self.pairs[0] < self.pairs[1]).all()), "a pair must be two columns in ascending order")
        require_number("floor", self.floor, 1e-300, 1.0)

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
        return self.n_univariate + (len(self.varying) if self.original_columns else 0)

    def with_pairs(self, pair_codes: Array, pairs: Array) -> LogDensities:
        """The same with other pairs."""
        return replace(self, pair_codes=pair_codes, pairs=pairs)

    def restrict_to(self, features: Array) -> LogDensities:
        """The same with only those pairs whose feature is at one of these positions."""
        chosen = features[features >= self.n_without_pairs] - self.n_without_pairs
        return self.with_pairs(self.pair_codes[chosen], self.pairs[:, chosen])

    def standardize(self, columns: Array) -> Array:
        """Varying columns, transformed and standardized, (n, d)."""
        varying = columns[:, self.varying]
        scores = varying if self.scores is None else self.scores.apply(varying)
        return (scores - self.center) / self.scale

    def features(self, columns: Array, kept_positions: Sequence[Array] | None, report: Report) -> Array:
        """Features of rows, (n, features); see `evaluate` for ``kept_positions``."""
        logs = self.evaluate(columns, kept_positions, report)
        return np.concatenate([self.standardize(columns), logs], axis=1) if self.original_columns else logs

    def evaluate(self, columns: Array, kept_positions: Sequence[Array] | None, report: Report) -> Array:
        """Log densities, (n, n_univariate + pairs).

        ``kept_positions`` has for each class the position of each row among the kept rows, -1 for none: each row is then
        left out of its own densities.
        """
        rows = self.standardize(columns)
        n, d = rows.shape
        densities = np.empty((n, self.n_univariate + len(self.pair_codes)))
        for c, kernel in enumerate(self.kernels):
            class_pairs = np.flatnonzero(self.pair_codes == c)
            left_out = np.full(n, -1) if kept_positions is None else kept_positions[c]
            for block, of_columns, of_pairs in kernel.densities(rows, self.pairs[:, class_pairs], left_out):
                densities[block, c * d : (c + 1) * d] = of_columns
                densities[block, self.n_univariate + class_pairs] = of_pairs
                report("densities of rows", c * n + block.stop, len(self.kernels) * n)
        np.maximum(densities, self.floor, out=densities)
        return np.log(densities, out=densities)

    def feature_names(self, columns: Sequence[str], classes: Sequence[Any]) -> list[str]:
        """Names of the features, from the names of all columns."""
        names = [str(columns[j]) for j in self.varying]
        univariate = [f"log p({name} | {label})" for label in classes for name in names]
        bivariate = [
            f"log p({names[i]}, {names[j]} | {classes[c]})"
            for c, i, j in zip(self.pair_codes, *self.pairs, strict=True)
        ]
        return (names if self.original_columns else []) + univariate + bivariate


def learn_log_densities(
    rows: LabeledNumbers,
    *,
    floor: float,
    kept_rows: int | None,
    seed: Any,
    normal_scores: bool = False,
    original_columns: bool = False,
) -> tuple[LogDensities, list[Array]]:
    """Densities of the columns, without pairs, and for each class the position of each row among its kept rows.

    Rows that are not kept have position -1. Raises ValueError if all columns are constant.
    """
    varying = np.flatnonzero(np.ptp(rows.columns, axis=0) > 0)
    if not len(varying):
        raise ValueError("all columns are constant: at least one must have two different values")
    columns = rows.columns[:, varying]
    scores = learn_normal_scores(columns, rows.weights) if normal_scores else None
    columns = columns if scores is None else scores.apply(columns)
    total = rows.weights.sum()
    center, scale = rows.weights @ columns / total, standard_deviation(columns, rows.weights)
    scale = np.where(scale > 0, scale, 1.0)  # zero for values that differ by less than rounding errors
    rng = np.random.default_rng(seed)
    kernels, kept_positions = [], []
    for c in range(rows.k):
        class_rows = _draw(np.flatnonzero(rows.codes == c), kept_rows, rng)
        kernels.append(_kernel((columns[class_rows] - center) / scale, rows.weights[class_rows]))
        positions = np.full(len(columns), -1)
        positions[class_rows] = np.arange(len(class_rows))
        kept_positions.append(positions)
    none = np.zeros(0, dtype=np.int64)
    no_pairs = none.reshape(2, 0)
    densities = LogDensities(varying, scores, center, scale, kernels, none, no_pairs, floor, original_columns)
    return densities, kept_positions


def _draw(positions: Array, most: int | None, rng: np.random.Generator) -> Array:
    """At most so many of the positions, drawn at random, ascending."""
    if most is None or len(positions) <= most:
        return positions
    return np.sort(rng.choice(positions, most, replace=False))


def _kernel(rows: Array, weights: Array) -> ProductKernel:
    """Kernels of one class: plug-in bandwidths, for pairs at the optimal rate of two dimensions, n^(-1/6)."""
    n = max(float(weights.sum()), 1.0)
    bandwidth = plug_in_bandwidths(rows, weights)
    bandwidth = np.where(bandwidth > 0, bandwidth, CONSTANT_DEVIATION * REFERENCE * n**-0.2)
    bandwidth = np.maximum(bandwidth, LEAST_BANDWIDTH)
    return ProductKernel(rows.T.copy(), weights, bandwidth, bandwidth * n ** (1 / 5 - 1 / 6) / REFERENCE)


def class_dependence(
    measure: Measure, rows: LabeledNumbers, names: Sequence[str], classes: Sequence[Any], report: Report
) -> Dependence:
    """Dependence of all pairs of columns within each class."""
    measured = []
    for c in range(rows.k):
        class_rows = rows.codes == c
        measured.append(measure.measure(rows.columns[class_rows], rows.weights[class_rows]))
        report(f"{measure.name} of classes", c + 1, rows.k)
    statistics, p_values = (np.stack(part) for part in zip(*measured, strict=True))
    return Dependence(measure.name, tuple(names), tuple(classes), statistics, p_values)

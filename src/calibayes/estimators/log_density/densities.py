"""Logarithms of the kernel densities of columns and of pairs of columns, class by class (slb-2020, Eq. 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.dependence import Dependence, Measure
from calibayes.kernels.density.direct_plug_in import REFERENCE, plug_in_bandwidths
from calibayes.kernels.density.normal_scores import NormalScores, learn_normal_scores
from calibayes.kernels.density.product_kernel import ProductKernel
from calibayes.kernels.numbers.quantiles import standard_deviation

LEAST_BANDWIDTH = 1e-3
"""In standard deviations of the column: below it ties would be points."""

NO_SPREAD = 0.1
"""Standard deviation, in those of the column, that a class without any is given."""

Report = Callable[[str, int, int], None]
"""Progress: text, number of items done, number of all items."""


class LabeledNumbersNumbers(NamedTuple):
    """Training rows as numbers."""

    columns: Array
    codes: Array
    weights: Array
    k: int

    def only(self, keep: Array) -> LabeledNumbers:
        return LabeledNumbers(self.columns[keep], self.codes[keep], self.weights[keep], self.k)


@dataclass(frozen=True)
class LogDensities:
    """The map from rows to log densities: all columns of each class, then the pairs that were kept.

    Parameters
    ----------
    varying : positions of the columns that are not constant
    scores : NormalScores or None
        What is done to them first.
    center, scale : (d,) arrays over those
    kernels : one `ProductKernel` a class
    labels, pairs : (pairs,) and (2, pairs) arrays
        Class and columns of each pair.
    floor : float
        Least density, in units of one standard deviation of the columns.
    """

    varying: Array
    scores: NormalScores | None
    center: Array
    scale: Array
    kernels: Sequence[ProductKernel]
    labels: Array
    pairs: Array
    floor: float

    @property
    def singles(self) -> int:
        """How many densities of one column there are."""
        return len(self.kernels) * len(self.varying)

    def with_pairs(self, labels: Array, pairs: Array) -> LogDensities:
        return replace(self, labels=labels, pairs=pairs)

    def standardize(self, columns: Array) -> Array:
        """Columns as densities see them, (n, d)."""
        used = columns[:, self.varying]
        scores = used if self.scores is None else self.scores.apply(used)
        return (scores - self.center) / self.scale

    def evaluate(self, columns: Array, own: Sequence[Array] | None, report: Report) -> Array:
        """Log densities, (n, singles + pairs); ``own`` says for each class which kept row each row is."""
        rows = self.standardize(columns)
        n, d = rows.shape
        found = np.empty((n, self.singles + len(self.labels)))
        for c, kernel in enumerate(self.kernels):
            mine = np.flatnonzero(self.labels == c)
            left_out = np.full(n, -1) if own is None else own[c]
            for block, single, double in kernel.densities(rows, self.pairs[:, mine], left_out):
                found[block, c * d : (c + 1) * d] = single
                found[block, self.singles + mine] = double
                report("densities of rows", c * n + block.stop, len(self.kernels) * n)
        np.maximum(found, self.floor, out=found)
        return np.log(found, out=found)

    def names(self, columns: Sequence[str], classes: Sequence[Any]) -> list[str]:
        called = [columns[j] for j in self.varying]
        singles = [f"log p({name} | {label})" for label in classes for name in called]
        return singles + [
            f"log p({called[i]}, {called[j]} | {classes[c]})"
            for c, i, j in zip(self.labels, *self.pairs, strict=True)
        ]


def learn_log_densities(
    rows: LabeledNumbers, *, floor: float, kept_rows: int | None, seed: Any, normal_scores: bool = False
) -> tuple[LogDensities, list[Array]]:
    """Densities of the columns, no pairs yet, and for each class which kept row each row is (-1 for none)."""
    varying = np.flatnonzero(np.ptp(rows.columns, axis=0) > 0)
    if not len(varying):
        raise ValueError("all columns are constant: there is nothing to tell classes apart by")
    columns = rows.columns[:, varying]
    scores = learn_normal_scores(columns, rows.weights) if normal_scores else None
    columns = columns if scores is None else scores.apply(columns)
    total = rows.weights.sum()
    center, scale = rows.weights @ columns / total, standard_deviation(columns, rows.weights)
    scale = np.where(scale > 0, scale, 1.0)  # as for values that differ by less than rounding
    rng = np.random.default_rng(seed)
    kernels, own = [], []
    for c in range(rows.k):
        mine = np.flatnonzero(rows.codes == c)
        if kept_rows is not None and len(mine) > kept_rows:
            mine = np.sort(rng.choice(mine, kept_rows, replace=False))
        kernels.append(_kernel((columns[mine] - center) / scale, rows.weights[mine]))
        places = np.full(len(columns), -1)
        places[mine] = np.arange(len(mine))
        own.append(places)
    none = np.zeros(0, dtype=np.int64)
    return LogDensities(varying, scores, center, scale, kernels, none, none.reshape(2, 0), floor), own


def _kernel(rows: Array, weights: Array) -> ProductKernel:
    """One class: plug-in bandwidths, widened for pairs at the rate of two dimensions."""
    n = max(float(weights.sum()), 1.0)
    single = plug_in_bandwidths(rows, weights)
    single = np.maximum(np.where(single > 0, single, NO_SPREAD * REFERENCE * n**-0.2), LEAST_BANDWIDTH)
    return ProductKernel(rows.T.copy(), weights, single, single * n ** (1 / 5 - 1 / 6) / REFERENCE)


def class_dependence(
    measure: Measure, rows: LabeledNumbers, names: Sequence[str], classes: Sequence[Any], report: Report
) -> Dependence:
    """The measure of all pairs of columns within each class."""
    found = []
    for c in range(rows.k):
        mine = rows.codes == c
        found.append(measure.measure(rows.columns[mine], rows.weights[mine]))
        report(f"{measure.name} of classes", c + 1, rows.k)
    statistics, p_values = (np.stack(part) for part in zip(*found, strict=True))
    return Dependence(measure.name, tuple(names), tuple(classes), statistics, p_values)

"""Whole-number sums over rows, to which one row contributes a bounded amount; noise on them; valid statistics from them.

Numbers are put on a lattice: u = (x - middle of the bounds) / half of their range, from -1 to 1, as round(u * LATTICE), and its square as
round((u^2 - 1/2) * LATTICE), so that sums and their noise are exact integers.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from calibayes.core.protocols import Array, Arrays, Trees
from calibayes.estimators.interface.privacy.discrete_gaussian import noise
from calibayes.families import Categorical
from calibayes.families.model import PRIOR

LATTICE = 2**20
LEAST_SPREAD = 1e-2
"""Smallest standard deviation of a column as a share of the radius of its bounds."""
VARIANCE_STEPS = 2**20
"""Variances of the noise are rounded up to multiples of the inverse of this."""


@dataclass(frozen=True)
class RowSum:
    """A sum over rows whose cells are by class: one row changes one cell of each block of columns."""

    name: str
    values: Array
    """(k, cells), whole numbers."""
    sensitivity: int
    """Most that one row changes (L2 norm)."""
    share: int = 2
    """Share of the privacy that is spent on it, beside those of the other sums."""


def class_cells(codes: Array, values: Array, k: int) -> Array:
    """Sums of whole numbers (n,) by class, (k, 1)."""
    return np.rint(np.bincount(codes, values, minlength=k)).astype(np.int64)[:, None]


def prior_sum(codes: Array, k: int) -> RowSum:
    """Rows of each class."""
    return RowSum(f"{PRIOR}/count", class_cells(codes, np.ones(len(codes)), k), 1)


def level_sums(name: str, encoded: Array, codes: Array, levels: tuple[int, ...], k: int) -> Iterator[RowSum]:
    """Counts of the levels of each column by class; a negative code is a missing cell."""
    for j, size in enumerate(levels):
        known = encoded[:, j] >= 0
        cells = codes[known] * size + encoded[known, j].astype(np.int64)
        yield RowSum(f"{name}/count/{j}", np.bincount(cells, minlength=k * size).reshape(k, size), 1)


def flag_sums(name: str, encoded: Array, codes: Array, k: int) -> Iterator[RowSum]:
    """Counts of zeros and ones of each column by class; NaN is a missing cell."""
    levels = np.where(np.isnan(encoded), -1, encoded).astype(np.int64)
    return level_sums(name, levels, codes, (2,) * encoded.shape[1], k)


def moment_sums(name: str, units: Array, codes: Array, may_miss: Array, k: int) -> Iterator[RowSum]:
    """First and second moments of each column by class, of u from -1 to 1, and its known cells if some may be missing."""
    for j, column in enumerate(units.T):
        known = ~np.isnan(column)
        u, classes = np.clip(column[known], -1.0, 1.0), codes[known]
        yield RowSum(f"{name}/first/{j}", class_cells(classes, np.rint(u * LATTICE), k), LATTICE)
        squares = np.rint((u**2 - 0.5) * LATTICE)
        yield RowSum(f"{name}/second/{j}", class_cells(classes, squares, k), LATTICE // 2, share=1)
        if may_miss[j]:
            yield RowSum(f"{name}/count/{j}", class_cells(classes, np.ones(len(u)), k), 1)


def noise_variances(sums: list[RowSum], rho: float) -> list[Fraction]:
    """The variance of the noise of each sum, which spends its share of rho as (sensitivity^2 / variance) / 2.

    Variances are rounded up, so that no more than rho is spent.
    """
    parts = [Fraction(rho) * total.share / sum(other.share for other in sums) for total in sums]
    exact = [Fraction(total.sensitivity) ** 2 / (2 * part) for total, part in zip(sums, parts, strict=True)]
    return [Fraction(math.ceil(variance * VARIANCE_STEPS), VARIANCE_STEPS) for variance in exact]


def noised(sums: list[RowSum], variances: list[Fraction], source: random.Random) -> dict[str, Array]:
    """Name -> the sum with noise."""
    return {
        total.name: total.values + noise(variance, total.values.shape, source)
        for total, variance in zip(sums, variances, strict=True)
    }


def valid_statistics(
    released: Mapping[str, Array],
    scales: Mapping[str, float],
    families: Mapping[str, Any],
    bounds: Mapping[str, Array],
) -> Trees:
    """Statistics of the families from released sums alone: nothing here costs privacy.

    ``bounds`` (2, d) are those of the columns of Gaussian families, ``scales`` standard deviations of the noise.
    """
    rows = np.maximum(released[f"{PRIOR}/count"].astype(np.float64), 1.0)
    statistics: dict[str, Arrays] = {PRIOR: {"count": rows[:, 0]}}
    for name, family in families.items():
        columns = range(len(family.layout.columns))
        if name in bounds:
            moments = [_moments(released, scales, f"{name}/{{}}/{j}", rows) for j in columns]
            count, mean, variance = (np.concatenate(parts, axis=1) for parts in zip(*moments, strict=True))
            middle, radius = bounds[name].mean(axis=0), np.ptp(bounds[name], axis=0) / 2
            mean = middle + radius * mean - family.layout.center
            second = count * (variance * radius**2 + mean**2)
            statistics[name] = {"count": count, "first": count * mean, "second": second}
        else:
            counts = [np.maximum(released[f"{name}/count/{j}"].astype(np.float64), 0.0) for j in columns]
            statistics[name] = _counts(family, np.concatenate(counts, axis=1))
    return statistics


def _counts(family: Any, counts: Array) -> Arrays:
    if isinstance(family, Categorical):
        return {"count": counts}
    return {"zeros": counts[:, 0::2], "ones": counts[:, 1::2]}


def _moments(
    released: Mapping[str, Array], scales: Mapping[str, float], name: str, rows: Array
) -> tuple[Array, Array, Array]:
    """Count, mean and variance of a column of u by class, (k, 1) each.

    Noise costs less where it is allowed for: a mean moves towards that of all classes (positive-part James-Stein), a
    variance towards the pooled one, and the noise of means and of the pooled variance is added to the variance, so that
    densities are wide where little is known.
    """
    counted = released.get(name.format("count"))
    count = rows if counted is None else np.clip(counted, 1.0, rows)
    first = released[name.format("first")] / LATTICE
    second = released[name.format("second")] / LATTICE + count / 2
    mean_noise, square_noise = (scales[name.format(part)] / LATTICE / count for part in ("first", "second"))
    mean, square = np.clip(first / count, -1.0, 1.0), np.clip(second / count, 0.0, 1.0)
    share = count / count.sum()
    pooled_noise = float(np.sqrt(np.sum((share * square_noise) ** 2)))
    variance = square - mean**2 + mean_noise**2
    pooled = max(float(np.sum(share * variance)), pooled_noise, LEAST_SPREAD**2)
    shrunk = variance + (pooled - variance) * square_noise**2 / (square_noise**2 + pooled**2)
    unknown = mean_noise**2 * pooled / (mean_noise**2 + pooled)
    wide = np.maximum(shrunk, LEAST_SPREAD**2) + pooled_noise + unknown
    return count, _towards_center(mean, share, mean_noise), np.minimum(wide, 1.0)


def _towards_center(mean: Array, share: Array, deviation: Array) -> Array:
    """Class means with noise of a standard deviation, moved towards the mean of all rows (positive-part James-Stein)."""
    center = np.sum(share * mean)
    distance = mean - center
    factor = 1.0 - deviation**2 / np.maximum(distance**2, deviation**2)
    return np.asarray(center + factor * distance)

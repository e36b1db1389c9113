"""The values that an unknown cell may have: levels, whole numbers, or nodes of a quadrature over numbers.

Values are in the encoding that a family reads. ``log_width`` is the log of what the density at a value is multiplied by to
give its probability: 0 for a level, the width of a bin, the weight of a quadrature node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from calibayes.core.protocols import Array, Layout

Density: TypeAlias = Callable[[Array], Array]
"""Values of one cell of each row, (m, v) -> log density of the row's family with that value, (m, v, k)."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
"""Gauss-Legendre rule of each interval."""
BREAKS = np.array([-9.0, -6.5, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.5, 9.0])
"""Ends of intervals about the conditional mean of each class, in its standard deviations."""
REACH, INTERVALS = 12.0, 512
"""Range, in standard deviations of the column, and number of intervals for densities that are not normal."""
CURVATURE_ERROR = 1e-6
"""Largest relative deviation of a log density from a parabola."""
MOST_COUNTS = 2**16
NEGLIGIBLE = 1e-9
"""Probability of the whole numbers beyond those that are listed."""


class CellValues(NamedTuple):
    """Values of an unknown cell and their widths, (m, v) each, or (1, v) if all rows have the same."""

    values: Array
    log_width: Array


def level_values(layout: Layout, place: int) -> CellValues:
    """All codes of a column of levels or bins."""
    size = layout.levels[place]
    return CellValues(np.arange(size)[None], _log_volume(layout, place)[None])


def _log_volume(layout: Layout, place: int) -> Array:
    """log of the width of each cell of a column, (levels,)."""
    if not np.size(layout.log_volume):
        return np.zeros(layout.levels[place])
    first = sum(layout.levels[:place])
    return np.asarray(layout.log_volume[first : first + layout.levels[place]])


def flag_values() -> CellValues:
    """Zero and one."""
    return CellValues(np.array([[0.0, 1.0]]), np.zeros((1, 2)))


def count_values(density: Density, log_missing: Array) -> CellValues:
    """0, 1, ... up to where each class has nearly all its probability; ``log_missing`` (m, k) is that of any value."""
    size = 64
    while size < MOST_COUNTS:
        total = np.logaddexp.reduce(density(np.arange(size, dtype=np.float64)[None]), axis=1)
        if (total >= log_missing + np.log1p(-NEGLIGIBLE)).all():
            break
        size *= 2
    return CellValues(np.arange(size, dtype=np.float64)[None], np.zeros((1, size)))


def grid_values(layout: Layout, place: int) -> CellValues:
    """Nodes between the points of a grid, where densities are linear, and one value for each range beyond it.

    Beyond the grid the densities of all classes fall alike: the posterior is the same everywhere.
    """
    points, volume = layout.ordered[place], _log_volume(layout, place)
    inside = intervals(np.arange(points, dtype=np.float64)[None])
    beyond = np.array([[-NEGLIGIBLE, points - 1.0 + points * NEGLIGIBLE]])
    return CellValues(
        np.concatenate([inside.values, beyond], axis=1),
        np.concatenate([inside.log_width + volume[1], volume[None, points:]], axis=1),
    )


def number_values(layout: Layout, place: int, density: Density) -> CellValues:
    """Nodes of a quadrature over numbers.

    The log density of a Gaussian family is a parabola in a single cell, from which mean and variance given the class and
    the known cells follow: the intervals are as wide as these standard deviations. Other densities (mixtures) have equal
    intervals over the range of the column.
    """
    center, variance = float(layout.center[place]), float(layout.variance[place])
    scale = np.sqrt(variance) if variance > 0 else 1.0
    conditional = conditional_normals(density, center, scale)
    if conditional is None:
        ends = center + scale * np.linspace(-REACH, REACH, INTERVALS + 1)
        return intervals(ends[None])
    mean, deviation = conditional
    ends = mean[:, :, None] + deviation[:, :, None] * BREAKS
    return intervals(np.sort(ends.reshape(len(mean), -1), axis=1))


def conditional_normals(density: Density, center: float, scale: float) -> tuple[Array, Array] | None:
    """Mean and standard deviation of a cell given class and known cells, (m, k) each; None if it is not normal."""
    steps = np.array([-1.0, 0.0, 1.0, 2.0])
    left, middle, right, further = np.moveaxis(density((center + scale * steps)[None]), 1, 0)
    curvature, slope = left - 2.0 * middle + right, (right - left) / 2.0
    expected = middle + 2.0 * slope + 2.0 * curvature
    error = CURVATURE_ERROR * (1.0 + np.abs(further) + np.abs(curvature))
    if not ((curvature < 0) & (np.abs(further - expected) <= error)).all():
        return None
    return center - scale * slope / curvature, scale / np.sqrt(-curvature)


def intervals(ends: Array) -> CellValues:
    """Gauss-Legendre nodes in the intervals between ascending ends (m, e)."""
    middle, half = (ends[:, 1:] + ends[:, :-1]) / 2.0, np.diff(ends, axis=1) / 2.0
    values = middle[:, :, None] + half[:, :, None] * NODES
    with np.errstate(divide="ignore"):
        log_width = np.log(half)[:, :, None] + np.log(WEIGHTS)
    return CellValues(values.reshape(len(ends), -1), log_width.reshape(len(ends), -1))

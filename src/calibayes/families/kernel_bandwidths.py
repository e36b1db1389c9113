"""Bandwidth rules: the width of a Gaussian kernel from the counts of the data.

A rule maps the counts of each class on the ordered cells of one column to a bandwidth in cells, so that the same rules
apply to points of a grid and to bins. On bins of unequal width the kernel acts on bin numbers: it is narrow where bins
are narrow, and rules that need a standard deviation use that of the bin numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from calibayes.core.protocols import Array, Layout, resolve
from calibayes.kernels import grids, level_counts

FEWEST_CELLS = 3
"""Columns with fewer cells are not smoothed."""
LARGEST_WIDTH = 10**300
"""Larger numbers count as infinite: an int may not fit into a float."""
EQUAL_WIDTH_TOLERANCE = 1e-6
"""Relative difference in width up to which cells are equally wide."""


class Bandwidth(Protocol):
    """A bandwidth rule."""

    def width_in_cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        """The bandwidth of each class in cells, (k,).

        Parameters
        ----------
        counts : (k, cells) array
            Counts of each class on the ordered cells of a column.
        log_volume : (cells,) array
            Logarithms of the widths of the cells; 0 for cells that are single values.
        dimension : int
            Number of columns of the density.
        """


@dataclass(frozen=True)
class NormalReference:
    """The standard deviation times n^(-1 / (4 + dimension)): the default of scipy's ``gaussian_kde``.

    Examples
    --------
    >>> from calibayes.families import KernelDensity
    >>> KernelDensity(bandwidth=NormalReference()).bandwidth
    NormalReference()
    """

    def width_in_cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        n = counts.sum(axis=1)
        return grids.standard_deviations(counts) * grids.convergence_rate(n, dimension)


@dataclass(frozen=True)
class Silverman:
    """Silverman's rule: 0.9 min(standard deviation, interquartile range / 1.34) n^(-1 / (4 + dimension)).

    Examples
    --------
    >>> from calibayes.families import KernelDensity
    >>> KernelDensity(bandwidth=Silverman()).bandwidth
    Silverman()
    """

    def width_in_cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        n, deviation = counts.sum(axis=1), grids.standard_deviations(counts)
        robust = grids.interquartile_ranges(counts) / 1.34
        scale = np.where(robust > 0, np.minimum(deviation, robust), deviation)
        return 0.9 * scale * grids.convergence_rate(n, dimension)


@dataclass(frozen=True)
class SheatherJones:
    """The plug-in bandwidth of Sheather and Jones as improved by Botev, Grotowski and Kroese (2010), class by class.

    It adapts to several modes, where the rules of thumb smooth too much. Silverman's rule replaces it where the plug-in
    equation has no solution (very few rows, or ties). For a pair of columns the bandwidth is multiplied by
    n^(-1/6) / n^(-1/5), the ratio of the optimal rates in two dimensions and in one.

    Examples
    --------
    >>> from calibayes.families import KernelDensity
    >>> KernelDensity(bandwidth=SheatherJones()).bandwidth
    SheatherJones()
    """

    def width_in_cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        n = counts.sum(axis=1)
        plug_in = np.array([grids.improved_sheather_jones(count) for count in counts])
        rate_ratio = grids.convergence_rate(n, dimension) / grids.convergence_rate(n, 1)
        fallback = Silverman().width_in_cells(counts, log_volume, dimension)
        return np.where(np.isnan(plug_in), fallback, plug_in * rate_ratio)


@dataclass(frozen=True)
class _GivenWidth:
    """A bandwidth given as a number."""

    width: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.width) and self.width >= 0):
            raise ValueError(f"a bandwidth must be finite and must not be negative, got {self.width}")


@dataclass(frozen=True)
class FixedWidth(_GivenWidth):
    """A bandwidth in the units of the column; needs cells of equal width.

    Parameters
    ----------
    width : float
        Standard deviation of the kernel; 0 is no smoothing.

    Examples
    --------
    >>> from calibayes.families import KernelDensity
    >>> KernelDensity(bandwidth=FixedWidth(0.5)).bandwidth
    FixedWidth(width=0.5)
    """

    def width_in_cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        """Raises ValueError if the cells differ in width."""
        if self.width == 0:
            return np.zeros(len(counts))
        # The cells at both ends of a grid have half the width; cells that are single values have none.
        inner = log_volume[1:-1] if len(log_volume) > FEWEST_CELLS else log_volume
        if not log_volume.any() or np.ptp(inner) > EQUAL_WIDTH_TOLERANCE:
            raise ValueError(
                f"a bandwidth of {self.width:g} needs cells of equal width, but these differ in width or have "
                "none: use the encoder Grid(), or give a width in cells, InCells()"
            )
        return np.full(len(counts), self.width / np.exp(inner.max()))


@dataclass(frozen=True)
class InCells(_GivenWidth):
    """A bandwidth in cells, the same for all columns.

    Parameters
    ----------
    width : float
        Standard deviation of the kernel; 0 is no smoothing.

    Examples
    --------
    >>> from calibayes.families import KernelDensity
    >>> KernelDensity(bandwidth=InCells(2.0)).bandwidth
    InCells(width=2.0)
    """

    def width_in_cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        return np.full(len(counts), float(self.width))


@dataclass(frozen=True)
class OverBins:
    """``factor * bins * n^(-1/3)``, where n is the average number of rows per class.

    The bandwidth is the same for all classes. It does not use the standard deviation of the counts, since quantile bins
    have equal counts; a class with a single value is therefore smoothed as much as the others.

    Parameters
    ----------
    factor : float, default=0.56
        Multiple of the bandwidth; 0 is no smoothing.

    Examples
    --------
    >>> from calibayes.families import KernelDensity
    >>> KernelDensity(bandwidth=OverBins(factor=1.0)).bandwidth
    OverBins(factor=1.0)
    """

    factor: float = 0.56

    def __post_init__(self) -> None:
        if not (np.isfinite(self.factor) and self.factor >= 0):
            raise ValueError(f"factor must be finite and must not be negative, got {self.factor}")

    def width_in_cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        k, bins = counts.shape
        rows = counts.sum() / k
        smoothed = bins >= FEWEST_CELLS and rows > 0
        return np.full(k, self.factor * bins * max(rows, 1.0) ** (-1.0 / 3.0) if smoothed else 0.0)


def bandwidths_in_cells(
    rule: Bandwidth,
    layout: Layout,
    column_counts: Sequence[Array],
    dimension: int,
    fewest: int = FEWEST_CELLS,
) -> Array:
    """The bandwidth of each class and column in cells, (k, d); 0 for columns with fewer ordered cells than ``fewest``.

    ``dimension`` is the number of columns of a table.
    """
    widths = np.zeros((len(layout.classes), len(layout.columns)))
    first = level_counts.offsets(layout.levels)
    for j, cells in enumerate(layout.ordered):
        if cells >= fewest:
            log_volume = layout.log_volume[first[j] : first[j] + cells]
            count = np.maximum(column_counts[j][:, :cells], 0.0)
            widths[:, j] = rule.width_in_cells(count, log_volume, dimension)
    return widths


def check_bandwidth(given: Any) -> None:
    """Raises ValueError if the argument is not a bandwidth rule."""
    if isinstance(given, type) or not hasattr(given, "width_in_cells"):
        raise ValueError(f"bandwidth must be a rule such as Silverman(), got {given!r}")


BANDWIDTHS: Mapping[str, Callable[[], Bandwidth]] = {
    "normal": NormalReference,
    "silverman": Silverman,
    "sheather_jones": SheatherJones,
    "bins": OverBins,
}
"""Short name -> bandwidth rule."""


def bandwidth_named(given: Any) -> Bandwidth:
    """The bandwidth rule for a short name or a number; a rule is returned as it is.

    Raises ValueError if the argument is none of these.
    """
    if isinstance(given, int | float | np.number) and not isinstance(given, bool):
        size: Any = given
        return FixedWidth(float(size) if abs(size) < LARGEST_WIDTH else math.inf)
    example = "Silverman(), or a number"
    return resolve("bandwidth", given, BANDWIDTHS, ability="width_in_cells", example=example)

"""How wide the kernel of a density is: rules that find it in the counts of the start, after which it is fixed.

A rule is told the counts of each class on the ordered cells of one column, and answers in cells, so that it serves
points of a grid and bins alike. Over bins of different widths the kernel lies over their numbers: it is narrow where
bins are, and the rules for a spread take that of the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.levels import bandwidths

FEWEST = 3
"""Cells below which there is nothing to smooth."""
LARGEST = 10**300
"""Numbers from here on are no bandwidths, and may be no floats."""
EVEN = 1e-6
"""Relative difference in width up to which cells are equally wide."""


class Bandwidth(Protocol):
    """A rule for bandwidths."""

    def cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        """The bandwidth of each class in cells, (k,), from its counts on cells in order, (k, cells), and their widths.

        ``dimension`` is the number of columns of the density.
        """


@dataclass(frozen=True)
class NormalReference:
    """The standard deviation times n^(-1 / (4 + dimension)): the default of scipy's ``gaussian_kde``."""

    def cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        n = counts.sum(axis=1)
        return bandwidths.standard_deviations(counts) * bandwidths.convergence_rate(n, dimension)


@dataclass(frozen=True)
class Silverman:
    """0.9 min(standard deviation, interquartile range / 1.34) n^(-1/5), which heavy tails do not widen."""

    def cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        n, deviation = counts.sum(axis=1), bandwidths.standard_deviations(counts)
        quartile = bandwidths.interquartile_ranges(counts) / 1.34
        narrower = np.where(quartile > 0, np.minimum(deviation, quartile), deviation)
        return 0.9 * narrower * bandwidths.convergence_rate(n, dimension)


@dataclass(frozen=True)
class SheatherJones:
    """The plug-in of Sheather and Jones as improved by Botev, Grotowski and Kroese (2010), class by class.

    It sees several modes where the rules of thumb see one wide one. Where it finds no bandwidth (very few rows, or
    ties), Silverman's stands in. For a pair of columns it is widened by the ratio of the rates at which they shrink.
    """

    def cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        n = counts.sum(axis=1)
        found = np.array([bandwidths.improved_sheather_jones(count) for count in counts])
        wider = bandwidths.convergence_rate(n, dimension) / bandwidths.convergence_rate(n, 1)
        return np.where(np.isnan(found), Silverman().cells(counts, log_volume, dimension), found * wider)


@dataclass(frozen=True)
class _Width:
    """A bandwidth that is a number."""

    width: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.width) and self.width >= 0):
            raise ValueError(f"a bandwidth must be finite and must not be negative, got {self.width}")


@dataclass(frozen=True)
class FixedWidth(_Width):
    """A bandwidth in the column's own units, for cells of equal width alone.

    Parameters
    ----------
    width : float
    """

    def cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        if self.width == 0:
            return np.zeros(len(counts))
        # Points at the ends of a grid have half a cell; cells that are one value each have no width at all.
        inner = log_volume[1:-1] if len(log_volume) > FEWEST else log_volume
        if not log_volume.any() or np.ptp(inner) > EVEN:
            raise ValueError(
                f"a bandwidth of {self.width:g} needs cells of equal width, and these bins have none: take a Grid(), or a width in cells, InCells()"
            )
        return np.full(len(counts), self.width / np.exp(inner.max()))


@dataclass(frozen=True)
class InCells(_Width):
    """A bandwidth in cells, the same for all columns.

    Parameters
    ----------
    width : float
    """

    def cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        return np.full(len(counts), float(self.width))


@dataclass(frozen=True)
class OverBins:
    """``factor`` times the number of bins times the average number of rows a class to the power of -1/3.

    The same for all classes, and for bins of any width: quantile bins have even counts, so no spread is needed. A class
    with one value is spread over the bins beside it as the others are.

    Parameters
    ----------
    factor : float, default=0.56
    """

    factor: float = 0.56

    def __post_init__(self) -> None:
        if not (np.isfinite(self.factor) and self.factor >= 0):
            raise ValueError(f"a factor must be finite and must not be negative, got {self.factor}")

    def cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        k, bins = counts.shape
        rows = counts.sum() / k
        wide = bins >= FEWEST and rows > 0
        return np.full(k, self.factor * bins * max(rows, 1.0) ** (-1.0 / 3.0) if wide else 0.0)


def check_rule(given: Any) -> None:
    """A sentence where something is no rule for bandwidths."""
    if isinstance(given, type) or not hasattr(given, "cells"):
        raise ValueError(f"bandwidth must be a rule such as Silverman(), got {given!r}")


BANDWIDTHS: Mapping[str, Callable[[], Bandwidth]] = {
    "normal": NormalReference,
    "silverman": Silverman,
    "sheather_jones": SheatherJones,
    "bins": OverBins,
}
"""Short name -> rule."""


def bandwidth_named(given: Any) -> Bandwidth:
    """The rule that a name stands for, a given width, or the rule itself."""
    if isinstance(given, str) and given in BANDWIDTHS:
        return BANDWIDTHS[given]()
    if isinstance(given, int | float | np.number) and not isinstance(given, bool):
        size: Any = given
        return FixedWidth(float(size) if abs(size) < LARGEST else math.inf)
    if isinstance(given, str | type) or not hasattr(given, "cells"):
        names = ", ".join(repr(known) for known in BANDWIDTHS)
        raise ValueError(
            f"bandwidth must be one of {names}, a number or a rule such as Silverman(), got {given!r}"
        )
    rule: Bandwidth = given
    return rule

"""Unknown cells of rows under a fitted model: log p(known cells, value, class) for each value that such a cell may have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from calibayes.analysis.sample import known_table, learned, open_encoder
from calibayes.core.protocols import Array, Layout
from calibayes.encoders import Leaves, PrincipalComponents
from calibayes.encoders.encoder import Derived
from calibayes.families.joint_model import PRIOR
from calibayes.model.checked_rows import new_table
from calibayes.model.fitted import Fitted
from calibayes.tables.table import Table

# -- The values that an unknown cell may have: levels, whole numbers, or nodes of a quadrature over numbers
#
# Values are in the encoding that a family reads. ``log_width`` is the log of what the density at a value is multiplied by to
# give its probability: 0 for a level, the width of a bin, the weight of a quadrature node.

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


def _log_volume(layout: Layout, place: int) -> Array:
    """log of the width of each cell of a column, (levels,)."""
    if not np.size(layout.log_volume):
        return np.zeros(layout.levels[place])
    first = sum(layout.levels[:place])
    return np.asarray(layout.log_volume[first : first + layout.levels[place]])


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
    with np.errstate(invalid="ignore"):  # -inf where a number has no density
        curvature, slope = left - 2.0 * middle + right, (right - left) / 2.0
        expected = middle + 2.0 * slope + 2.0 * curvature
        error = CURVATURE_ERROR * (1.0 + np.abs(further) + np.abs(curvature))
        is_normal = (curvature < 0) & (np.abs(further - expected) <= error)
    if not is_normal.all():
        return None
    return center - scale * slope / curvature, scale / np.sqrt(-curvature)


def intervals(ends: Array) -> CellValues:
    """Gauss-Legendre nodes in the intervals between ascending ends (m, e)."""
    middle, half = (ends[:, 1:] + ends[:, :-1]) / 2.0, np.diff(ends, axis=1) / 2.0
    values = middle[:, :, None] + half[:, :, None] * NODES
    with np.errstate(divide="ignore"):
        log_width = np.log(half)[:, :, None] + np.log(WEIGHTS)
    return CellValues(values.reshape(len(ends), -1), log_width.reshape(len(ends), -1))


# -- Unknown cells of rows under a fitted model: log p(known cells, value, class) for each value that such a cell may have

NUMBERS_AT_ONCE = 2**21
"""Numbers of a block of rows, times values, times classes, that are computed at once."""
ROWS_AT_ONCE = 256
LEAST_PROBABILITY = 0.99
"""Least total probability of the values of a number; a density that is too narrow for the quadrature has less."""


@dataclass(frozen=True)
class FittedCells:
    """The rows of a table under a fitted model; see `calibayes.analysis.questions`."""

    fitted: Fitted
    table: Table

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the d columns of the table."""
        return self.table.source_names

    @cached_property
    def known(self) -> Array:
        """Whether each cell is known, (n, d) booleans."""
        return np.stack([~self.table.missing_mask(j) for j in range(len(self.names))], axis=1)

    @cached_property
    def _encoded(self) -> Mapping[str, Array]:
        """The encoded columns of each family; a missing value is unknown, not a value of its own."""
        binding = self.fitted.binding
        opened = {name: open_encoder(self.fitted, name) for name in binding.encoders}
        return replace(binding, encoders=opened).encode(self.table)

    @cached_property
    def _log_densities(self) -> Mapping[str, Array]:
        """log p(known columns of the family | class), (n, k) each."""
        parameters = self.fitted.learned()
        return {
            name: family.log_density(self._encoded[name], parameters[name])
            for name, family in self.fitted.model.families.items()
        }

    @cached_property
    def log_joint(self) -> Array:
        """log p(known cells, class), (n, k): unknown cells are integrated out."""
        prior = self.fitted.learned()[PRIOR]["log_probability"]
        return np.asarray(prior + sum(self._log_densities.values()))

    @cached_property
    def left_out(self) -> Mapping[str, str]:
        """Column that has unknown cells and cannot be asked for -> why."""
        unknown = [j for j in range(len(self.names)) if not self.known[:, j].all()]
        return {self.names[j]: why for j in unknown if (why := self._reason(j))}

    @cached_property
    def _owner(self) -> Mapping[int, tuple[str, int]]:
        """Position of a column -> name of its family, and its place among the columns of the family."""
        chosen = self.fitted.binding.chosen
        return {j: (name, place) for name, columns in chosen.items() for place, j in enumerate(columns)}

    def _reason(self, column: int) -> str:
        """Why a column cannot be asked for; empty if it can."""
        if self.names[column] in self.fitted.binding.conversion.sources.values():
            return "the model reads it as several columns"
        if column not in self._owner:
            return ""
        name, place = self._owner[column]
        encoder = self.fitted.binding.encoders[name]
        if isinstance(encoder, PrincipalComponents | Leaves):
            return "its encoding depends on other columns"
        if isinstance(encoder, Derived):
            is_number = self.table.is_numeric(column) and encoder.sources.count(place) == 1
            return "" if is_number else "its levels are modeled as numbers, which have no probabilities"
        return ""

    def answers(self, column: int) -> Iterator[tuple[Array, Array]]:
        """Positions of rows with this cell unknown, (m,), and log p(known cells, value, class) of each value, (m, v, k).

        The probability of an interval of numbers is part of it, so that the sum over values is p(known cells, class). Raises
        ValueError if a density is too narrow for the quadrature.
        """
        rows = np.flatnonzero(~self.known[:, column])
        if not len(rows) or self.names[column] in self.left_out:
            return
        if column not in self._owner:  # no family models it: one value, which changes nothing
            yield rows, self.log_joint[rows][:, None, :]
            return
        name, place = self._owner[column]
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = rows[start : start + ROWS_AT_ONCE]
            family = _FamilyRows(self.fitted, name, self._place(name, place), self._encoded[name][part])
            others = self.log_joint[part] - self._log_densities[name][part]
            for rows_of_part, log_density in family.by_value(self._log_densities[name][part]):
                self._refuse_lost(column, log_density, self._log_densities[name][part][rows_of_part])
                yield part[rows_of_part], others[rows_of_part][:, None, :] + log_density

    def _place(self, name: str, place: int) -> int:
        """The encoded column of a column of a family."""
        encoder = self.fitted.binding.encoders[name]
        return encoder.sources.index(place) if isinstance(encoder, Derived) else place

    def _refuse_lost(self, column: int, log_density: Array, log_missing: Array) -> None:
        """Raises ValueError if the values of a number have not nearly all the probability."""
        if self.fitted.model.families[self._owner[column][0]].reads not in ("numbers", "clusters"):
            return
        share = np.exp(np.logaddexp.reduce(log_density, axis=1) - log_missing)
        if not (share >= LEAST_PROBABILITY).all():
            raise ValueError(
                f"the density of column {self.names[column]!r} given the known cells is too narrow to be integrated: its "
                f"values have a total probability of {np.nanmin(share):.3g}. Leave out columns that are nearly functions "
                "of others, or use a model of independent columns such as NaiveBayes"
            )


@dataclass(frozen=True)
class _FamilyRows:
    """Rows of a family in which one column is unknown."""

    fitted: Fitted
    name: str
    place: int
    encoded: Array

    def by_value(self, log_missing: Array) -> Iterator[tuple[Array, Array]]:
        """Positions of rows, and log densities by value and class, width included, (m, v, k)."""
        cells = self._values(log_missing)
        m, v = len(self.encoded), cells.values.shape[1]
        size = max(NUMBERS_AT_ONCE // (v * max(log_missing.shape[1], self.encoded.shape[1])), 1)
        for start in range(0, m, size):
            rows = np.arange(start, min(start + size, m))
            own = rows if len(cells.values) > 1 else np.zeros(1, dtype=int)
            log_density = self._density(rows)(cells.values[own])
            yield rows, log_density + cells.log_width[own][:, :, None]

    def _values(self, log_missing: Array) -> CellValues:
        """The values of the cell, by what the family reads."""
        everything = self._density(np.arange(len(self.encoded)))
        family: Any = self.fitted.model.families[self.name]
        layout = family.layout
        if family.reads == "flags":
            return CellValues(np.array([[0.0, 1.0]]), np.zeros((1, 2)))
        if family.reads == "counts" or getattr(family, "has_counts", False):
            return count_values(everything, log_missing)
        if hasattr(family, "interval_ends"):
            return intervals(family.interval_ends(self.place, INTERVALS)[None])
        if layout.gridded:
            return grid_values(layout, self.place)
        if layout.levels:
            levels = np.arange(layout.levels[self.place])
            return CellValues(levels[None], _log_volume(layout, self.place)[None])
        return number_values(layout, self.place, everything)

    def _density(self, rows: Array) -> Density:
        """log density of some rows for values of the unknown cell."""
        family, parameters = self.fitted.model.families[self.name], self.fitted.learned()[self.name]

        def density(values: Array) -> Array:
            v = values.shape[1]
            filled = np.repeat(self.encoded[rows], v, axis=0)
            filled[:, self.place] = np.broadcast_to(values, (len(rows), v)).ravel()
            return np.asarray(family.log_density(filled, parameters)).reshape(len(rows), v, -1)

        return density


def cells_of(self: Any, X: Any) -> FittedCells:
    """The unknown cells of the rows of a table, or of one row that is a mapping column -> value."""
    fitted = learned(self)
    return FittedCells(fitted, known_table(fitted, X, 1) if isinstance(X, Mapping) else new_table(self, X))

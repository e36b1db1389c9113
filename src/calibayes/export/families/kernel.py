"""Kernel densities on bins, levels and grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.export.expressions import Constant, Entry, Expression, Function, Once, Where, total
from calibayes.export.families.counts import sums_of_entries
from calibayes.export.families.log_density import known, log_densities
from calibayes.families import KernelDensity


@log_densities.register
def _(family: KernelDensity, parameters: Arrays, columns: Sequence[Expression]) -> list[Expression]:
    cells, layout = parameters["log_density"], family.layout
    if not layout.gridded:
        return sums_of_entries(cells, layout.levels, columns)
    tables = np.split(cells, np.cumsum(layout.levels)[:-1], axis=1)
    places = [_place(position, points) for position, points in zip(columns, layout.ordered, strict=True)]
    pairs = list(zip(tables, places, strict=True))
    return [total([_on_grid(table, place, c) for table, place in pairs]) for c in range(len(cells))]


class _GridPlace(NamedTuple):
    """The place of a position on a grid; see `calibayes.kernels.levels.grid.corners`."""

    lower: Expression
    """Number of the grid point below, or of the cell for positions beyond the grid."""
    share: Expression
    """Weight of the grid point above in the linear interpolation."""
    log_tail: Expression
    """Change of the log density beyond the grid."""


def _place(position: Expression, points: int) -> _GridPlace:
    last = points - 1.0
    below, above = position < 0.0, Constant(last) < position
    floor = Once(Where(position < last, Function("floor", position), Constant(last - 1.0)))
    lower = Where(below, Constant(float(points)), Where(above, Constant(points + 1.0), floor))
    share = Where(below, Constant(0.0), Where(above, Constant(0.0), position - floor))
    excess = Where(below, Constant(0.0) - position, Where(above, position - last, Constant(0.0)))
    log_tail = Function("log", excess / last + 1.0) * -3.0
    return _GridPlace(Once(known_place(lower, position)), Once(share), Once(log_tail))


def known_place(lower: Expression, position: Expression) -> Expression:
    """``lower``, but missing where the position is missing: a comparison with a missing position is false, not missing."""
    return lower + position * 0.0


def _on_grid(table: Array, place: _GridPlace, c: int) -> Expression:
    """The log density of class c: the density is linear between grid points, and that of a Lomax distribution beyond."""
    top = float(table.max())
    density = np.exp(table[c] - top)
    rise = np.append(np.diff(density[:-2]), [0.0, 0.0, 0.0])
    between = (
        Entry(tuple(density.tolist()), place.lower) + Entry(tuple(rise.tolist()), place.lower) * place.share
    )
    return known(Function("log", between) + place.log_tail + top)

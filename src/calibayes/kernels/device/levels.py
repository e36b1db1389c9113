"""Columns of levels, flags and event counts on a device.

Levels are multiplied as indicators: the cells of a range of rows become a matrix of zeros and ones, (rows, cells), whose
product with a table is the sum of the table's entries, and whose transposed product with weights are weighted counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from calibayes.core.protocols import Array
from calibayes.kernels.device.array import DeviceArray
from calibayes.kernels.device.placement import Placement, row_ranges, to_numpy
from calibayes.kernels.device.posterior import RowInputs, assessed, assessment
from calibayes.kernels.dispatch import device_version
from calibayes.kernels.levels import counts, flags
from calibayes.kernels.numbers import events
from calibayes.kernels.posterior import fused
from calibayes.kernels.posterior.logspace import FusedSums


class Indicators:
    """Indicators of the cells of codes (n, d), range by range of rows."""

    def __init__(self, codes: DeviceArray, first: Array) -> None:
        levels = np.diff(first)
        self.codes, self.place, self.cells = codes.values, codes.placement, int(first[-1])
        cell = np.arange(self.cells)
        column = np.repeat(np.arange(len(levels)), levels)
        self.column = self.place.array(column, "int64")
        self.level = self.place.array(cell - first[column], codes.dtype.name)

    def ranges(self) -> list[slice]:
        return row_ranges(self.codes.shape[0], 10 * self.cells)

    def of(self, rows: slice) -> Any:
        """(rows, cells): 1 where a row has the level; a code that is no level has no cell."""
        xp = self.place.xp
        by_cell = xp.take(self.codes[rows, :], self.column, axis=1)
        return self.place.float64(by_cell == self.level)


@device_version(counts.look_up)
def look_up(codes: DeviceArray, table: Any, first: Array) -> DeviceArray:
    indicators, values = Indicators(codes, first), codes.raw(table).T
    return codes.wrap(codes.placement.xp.concat([indicators.of(r) @ values for r in indicators.ranges()]))


@device_version(counts.weighted_counts)
def weighted_counts(codes: DeviceArray, weights: Any, first: Array) -> DeviceArray:
    indicators, values = Indicators(codes, first), codes.raw(weights)
    total = codes.placement.zeros((values.shape[1], indicators.cells))
    for rows in indicators.ranges():
        total = total + values[rows, :].T @ indicators.of(rows)
    return codes.wrap(total)


@device_version(fused.fused_pass)
def fused_pass(
    codes: DeviceArray,
    table: Any,
    first: Array,
    log_prior: Any,
    labels: Any,
    weight: Any,
    held_out: Any,
    generative: float,
    decided: float,
) -> FusedSums:
    """Both products of a range of rows with the same indicators."""
    place, indicators, values = codes.placement, Indicators(codes, first), codes.raw(table).T
    xp, k = place.xp, values.shape[1]
    log_prior, *of_rows = (codes.raw(array) for array in (log_prior, labels, weight, held_out))
    sums, totals, classes = place.zeros((9,)), place.zeros((k, indicators.cells)), place.zeros((k,))
    for rows in indicators.ranges():
        cells = indicators.of(rows)
        inputs = RowInputs(*(array[rows] for array in of_rows))
        found, weights = assessed(place, cells @ values + log_prior, inputs, generative, decided)
        sums, totals, classes = sums + found, totals + weights.T @ cells, classes + xp.sum(weights, axis=0)
    return FusedSums(assessment(codes.wrap(sums), None), codes.wrap(totals), codes.wrap(classes))


@device_version(counts.sums_by_column)
def sums_by_column(table: DeviceArray, first: Array) -> DeviceArray:
    """Cells are gathered into a table of equally many for each column, filled up with zeros."""
    place, xp, levels = table.placement, table.placement.xp, np.diff(first)
    places = np.arange(levels.max(initial=0))
    cells = np.where(places < levels[:, None], first[:-1, None] + places, first[-1])
    values = xp.concat([table.values, place.zeros((table.shape[0], 1))], axis=1)
    gathered = xp.take(values, place.array(cells.ravel(), "int64"), axis=1)
    sums = xp.sum(xp.reshape(gathered, (table.shape[0], *cells.shape)), axis=2)
    column = place.array(np.repeat(np.arange(len(levels)), levels), "int64")
    return table.wrap(xp.take(sums, column, axis=1))


# -- flags and event counts ----------------------------------------------------------------------------------------


def _product(place: Placement, x: Any, table: Any) -> Any:
    """x @ table.T in float64, range by range of rows."""
    ranges = row_ranges(x.shape[0], 8 * x.shape[1])
    return place.xp.concat([place.float64(x[rows, :]) @ table.T for rows in ranges])


@device_version(events.scores)
def scores(x: DeviceArray, table: Any) -> DeviceArray:
    return x.wrap(_product(x.placement, x.values, x.raw(table)))


@device_version(events.totals)
def totals(x: DeviceArray, weights: Any) -> DeviceArray:
    place, values = x.placement, x.raw(weights)
    total = place.zeros((values.shape[1], x.shape[1]))
    for rows in row_ranges(x.shape[0], 8 * x.shape[1]):
        total = total + values[rows, :].T @ place.float64(x.values[rows, :])
    return x.wrap(total)


@device_version(events.log_multinomial_coefficients)
def log_multinomial_coefficients(x: DeviceArray) -> DeviceArray:
    place, xp, parts = x.placement, x.placement.xp, []
    for rows in row_ranges(x.shape[0], 24 * x.shape[1]):
        block = place.float64(x.values[rows, :])
        log_factorials = xp.sum(_log_gamma(place, block + 1.0), axis=1)
        parts.append(_log_gamma(place, xp.sum(block, axis=1) + 1.0) - log_factorials)
    return x.wrap(xp.concat(parts))


def _log_gamma(place: Placement, x: Any) -> Any:
    """By the library if it has the function, which the array API has not, else by SciPy."""
    return place.xp.lgamma(x) if hasattr(place.xp, "lgamma") else place.array(gammaln(to_numpy(x)))


@device_version(events.log_in_place)
def log_in_place(table: DeviceArray) -> DeviceArray:
    return table.wrap(table.placement.xp.log(table.values))


@device_version(events.fortran_order)
def fortran_order(table: DeviceArray) -> DeviceArray:
    return table


@device_version(flags.flag_counts)
def flag_counts(x: DeviceArray, weights: Any) -> tuple[DeviceArray, DeviceArray]:
    place, values = x.placement, x.raw(weights)
    zeros = place.zeros((values.shape[1], x.shape[1]))
    for rows in row_ranges(x.shape[0], 16 * x.shape[1]):
        zeros = zeros + values[rows, :].T @ (1.0 - place.float64(x.values[rows, :]))
    return x.wrap(zeros), totals(x, weights)


@device_version(flags.flag_scores)
def flag_scores(x: DeviceArray, zero: Any, one: Any) -> DeviceArray:
    difference, base = x.raw(one) - x.raw(zero), x.placement.xp.sum(x.raw(zero), axis=1)
    return x.wrap(_product(x.placement, x.values, difference) + base)

"""Columns of levels, flags and event counts on a device.

Levels are multiplied as indicators: the cells of a range of rows become a matrix of zeros and ones, (rows, cells), whose
product with a table is the sum of the table's entries, and whose transposed product with weights are weighted counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln

from calibayes.backends.device.array import DeviceArray, Placement, row_ranges, sums_over_rows, to_numpy
from calibayes.core.protocols import Array
from calibayes.kernels import event_counts, level_counts, posterior
from calibayes.kernels.dispatch import device_version
from calibayes.kernels.posterior import Assessment, FusedSums, Scores

# -- Posteriors, scores and class weights on a device --------------------------------------------------------


@device_version(posterior.label_weights)
def label_weights(labels: DeviceArray, weight: DeviceArray, k: int) -> DeviceArray:
    return labels.wrap(labels.raw(weight)[:, None] * indicators(labels, k).values)


@device_version(posterior.indicators)
def indicators(labels: DeviceArray, k: int) -> DeviceArray:
    place = labels.placement
    return labels.wrap(place.float64(_is_label(place, labels.values, k)))


@device_version(posterior.log_normalize)
def log_normalize(log_joint: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    log_posterior, evidence = _normalized(log_joint.placement, log_joint.values)
    return log_joint.wrap(log_posterior), log_joint.wrap(evidence)


@device_version(posterior.first_largest)
def first_largest(rows: DeviceArray) -> DeviceArray:
    return rows.wrap(rows.placement.xp.argmax(rows.values, axis=1))


@device_version(posterior.assess)
def assess(
    log_joint: DeviceArray,
    labels: Any,
    weight: Any,
    held_out: Any,
    generative: float,
    decided: float = 0.0,
    *,
    weights: bool = True,
) -> Assessment:
    place, rows = log_joint.placement, [log_joint.raw(array) for array in (labels, weight, held_out)]
    sums, moved = assessed(place, log_joint.values, rows, generative, decided, weights=weights)
    return assessment(log_joint.wrap(sums), None if moved is None else log_joint.wrap(moved))


def assessment(sums: DeviceArray, weights: DeviceArray | None) -> Assessment:
    """The result of `assess` from the sums of `assessed`: the one copy to the host in a pass."""
    objective, *scores = sums.tolist()
    return Assessment(objective, Scores(*scores[:4]), Scores(*scores[4:]), weights)


def assessed(
    place: Placement,
    log_joint: Any,
    rows: Sequence[Any],
    generative: float,
    decided: float,
    *,
    weights: bool = True,
) -> tuple[Any, Any]:
    """Objective, training scores and held-out scores, (9,), and class weights (n, k) or None; see `posterior.assess`.

    ``rows`` are the labels, weights and held-out weights.
    """
    xp, (labels, weight, held_out) = place.xp, rows
    log_posterior, _ = _normalized(place, log_joint)
    is_true = _is_label(place, labels, log_joint.shape[1])
    zero = xp.zeros_like(log_posterior)
    log_true = xp.sum(xp.where(is_true, log_posterior, zero), axis=1)
    gain = (1.0 - generative) * log_true
    if generative != 0.0:
        gain = gain + generative * xp.sum(xp.where(is_true, log_joint, zero), axis=1)
    wrong = place.float64(xp.argmax(log_posterior, axis=1) != labels)
    values = xp.stack([xp.ones_like(log_true), wrong, -xp.expm1(log_true), -log_true, gain], axis=1)
    is_labeled = (labels >= 0)[:, None]
    train, held = (_weighted_sums(place, part, values, is_labeled) for part in (weight, held_out))
    sums = xp.concat([train[4:], train[:4], held[:4]])
    if not weights:
        return sums, None
    next_weights = place.float64(is_true) - (1.0 - generative) * xp.exp(log_posterior)
    next_weights = xp.where(xp.abs(next_weights) <= decided, zero, next_weights)
    return sums, next_weights * weight[:, None]


@device_version(posterior.scores)
def posterior_scores(log_posterior: DeviceArray, onehot: Any, weight: Any) -> Mapping[str, float]:
    place, xp, is_true = log_posterior.placement, log_posterior.placement.xp, log_posterior.raw(onehot) != 0
    found = log_posterior.values
    log_true = xp.sum(xp.where(is_true, found, xp.zeros_like(found)), axis=1)
    labels = xp.argmax(place.float64(is_true), axis=1)
    wrong = place.float64(xp.argmax(found, axis=1) != labels)
    values = xp.stack([xp.ones_like(log_true), wrong, -xp.expm1(log_true), -log_true], axis=1)
    is_labeled = xp.any(is_true, axis=1, keepdims=True)
    sums = log_posterior.wrap(_weighted_sums(place, log_posterior.raw(weight), values, is_labeled))
    return Scores(*sums.tolist())._asdict()


@device_version(posterior.without_negligible)
def without_negligible(weights: DeviceArray) -> DeviceArray:
    kept = weights.copy()
    kept[abs(weights) <= posterior.NEGLIGIBLE] = 0.0
    return kept


def _is_label(place: Placement, labels: Any, k: int) -> Any:
    """Labels as indicators, (n, k) booleans."""
    return labels[:, None] == place.arange(k)[None, :]


def _normalized(place: Placement, log_joint: Any) -> tuple[Any, Any]:
    """log p(class | x), (n, k), and log p(x), (n,)."""
    xp = place.xp
    top = xp.max(log_joint, axis=1, keepdims=True)
    zero = xp.zeros_like(top)
    is_finite = xp.isfinite(top)
    shifted = xp.where(is_finite, log_joint - xp.where(is_finite, top, zero), zero)
    log_sum = xp.log(xp.sum(xp.exp(shifted), axis=1, keepdims=True))
    return shifted - log_sum, (top + log_sum)[:, 0]


def _weighted_sums(place: Placement, weight: Any, values: Any, is_labeled: Any) -> Any:
    """Sums of weight times value over labeled rows of nonzero weight; a value of weight 0 may be infinite or NaN."""
    xp = place.xp
    counts = is_labeled & (weight != 0.0)[:, None]
    return xp.sum(xp.where(counts, weight[:, None] * values, xp.zeros_like(values)), axis=0)


# -- Columns of levels, flags and event counts on a device ---------------------------------------------------
#
# Levels are multiplied as indicators: the cells of a range of rows become a matrix of zeros and ones, (rows, cells), whose
# product with a table is the sum of the table's entries, and whose transposed product with weights are weighted counts.


class LevelIndicators:
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
        by_cell = self.place.xp.take(self.codes[rows, :], self.column, axis=1)
        return self.place.float64(by_cell == self.level)


@device_version(level_counts.look_up)
def look_up(codes: DeviceArray, table: Any, first: Array) -> DeviceArray:
    indicators, values = LevelIndicators(codes, first), codes.raw(table).T
    return codes.wrap(codes.placement.xp.concat([indicators.of(r) @ values for r in indicators.ranges()]))


@device_version(level_counts.weighted_counts)
def weighted_counts(codes: DeviceArray, weights: Any, first: Array) -> DeviceArray:
    indicators, values = LevelIndicators(codes, first), codes.raw(weights)
    cells = indicators.cells
    return codes.wrap(sums_over_rows(codes.placement, values, cells, 10 * cells, indicators.of))


@device_version(posterior.fused_pass)
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
    place, indicators, values = codes.placement, LevelIndicators(codes, first), codes.raw(table).T
    xp, k = place.xp, values.shape[1]
    log_prior, *of_rows = (codes.raw(array) for array in (log_prior, labels, weight, held_out))
    sums, totals, classes = place.zeros((9,)), place.zeros((k, indicators.cells)), place.zeros((k,))
    for rows in indicators.ranges():
        cells = indicators.of(rows)
        inputs = [array[rows] for array in of_rows]
        found, weights = assessed(place, cells @ values + log_prior, inputs, generative, decided)
        sums, totals, classes = sums + found, totals + weights.T @ cells, classes + xp.sum(weights, axis=0)
    return FusedSums(assessment(codes.wrap(sums), None), codes.wrap(totals), codes.wrap(classes))


@device_version(level_counts.sums_by_column)
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


@device_version(event_counts.scores)
def scores(x: DeviceArray, table: Any) -> DeviceArray:
    return x.wrap(_product(x.placement, x.values, x.raw(table)))


@device_version(event_counts.totals)
def totals(x: DeviceArray, weights: Any) -> DeviceArray:
    place, d = x.placement, x.shape[1]
    block = lambda rows: place.float64(x.values[rows, :])
    return x.wrap(sums_over_rows(place, x.raw(weights), d, 8 * d, block))


@device_version(event_counts.log_multinomial_coefficients)
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


@device_version(event_counts.log_in_place)
def log_in_place(table: DeviceArray) -> DeviceArray:
    return table.wrap(table.placement.xp.log(table.values))


@device_version(event_counts.fortran_order)
def fortran_order(table: DeviceArray) -> DeviceArray:
    return table


@device_version(level_counts.flag_counts)
def flag_counts(x: DeviceArray, weights: Any) -> tuple[DeviceArray, DeviceArray]:
    place, d = x.placement, x.shape[1]
    block = lambda rows: 1.0 - place.float64(x.values[rows, :])
    return x.wrap(sums_over_rows(place, x.raw(weights), d, 16 * d, block)), totals(x, weights)


@device_version(level_counts.flag_scores)
def flag_scores(x: DeviceArray, zero: Any, one: Any) -> DeviceArray:
    difference, base = x.raw(one) - x.raw(zero), x.placement.xp.sum(x.raw(zero), axis=1)
    return x.wrap(_product(x.placement, x.values, difference) + base)

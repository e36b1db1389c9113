"""Columns of numbers and of levels, with missing values, as one matrix; and their dependence within each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.notices import listed, warn
from calibayes.core.protocols import Array
from calibayes.dependence import Dependence, Measure, PairStatistics
from calibayes.encoders import Levels
from calibayes.kernels.cut_points import standard_deviation
from calibayes.kernels.joint_density import NormalScores, learn_normal_scores
from calibayes.model.checked_rows import Rows, convert, read_table, read_weight
from calibayes.model.table_inputs import TableInput
from calibayes.tables.dates import ColumnWarning
from calibayes.tables.table import Table, holds_booleans, numeric_matrix

Report = Callable[[str, int, int], None]
"""Reports progress: text, number of items done, number of all items."""

LEAST_OF_LEVEL = 5.0
"""Levels of fewer rows are pooled."""

# -- Columns of numbers and of levels as one matrix ----------------------------------------------------------


class LabeledNumbers(NamedTuple):
    """Training rows as numbers."""

    columns: Array
    """(n, d), NaN for missing values; levels are codes."""
    codes: Array
    weights: Array
    k: int
    """Number of classes."""
    sizes: Array
    """Number of levels of each column, 0 for numbers, (d,)."""
    levels: Levels | None = None
    """The encoder of the columns of levels, if there are any."""

    def only(self, keep: Array) -> LabeledNumbers:
        """The rows where ``keep`` is true, or at these positions."""
        return self._replace(columns=self.columns[keep], codes=self.codes[keep], weights=self.weights[keep])


def varying_columns(columns: Array) -> Array:
    """Positions of the columns (n, d) with two different known values."""
    low, high = np.fmin.reduce(columns, axis=0), np.fmax.reduce(columns, axis=0)
    return np.flatnonzero(high > low)


def each_known(function: Callable[[Array, Array], Array], columns: Array, weights: Array) -> Array:
    """A function of columns (n, d) and weights, (d,), each column on the rows where it is known; 0 if there are none."""
    missing = np.isnan(columns)
    if not missing.any():
        return function(columns, weights)
    values = np.zeros(columns.shape[1])
    for j in np.flatnonzero(~missing.all(axis=0)):
        known = ~missing[:, j]
        values[j] = function(columns[known, j : j + 1], weights[known])[0]
    return values


def known_means(values: Array, weights: Array) -> Array:
    """Weighted means of the known values of columns (n, p), (p,); 0 if there are none."""
    missing = np.isnan(values)
    if not missing.any():
        return np.asarray(weights @ values / weights.sum())
    total = weights @ ~missing
    return np.asarray(weights @ np.where(missing, 0.0, values) / np.where(total > 0, total, 1.0))


def normal_scores(columns: Array, weights: Array, sizes: Array) -> NormalScores:
    """Normal scores of the columns of numbers; codes of levels stay as they are."""
    if not (sizes.any() or np.isnan(columns).any()):
        return learn_normal_scores(columns, weights)
    knots = []
    for column, size in zip(columns.T, sizes, strict=True):
        known, codes = ~np.isnan(column), np.arange(float(size))
        learned = None if size else learn_normal_scores(column[known, None], weights[known]).knots[0]
        knots.append(learned or (codes, codes))
    return NormalScores(tuple(knots))


def center_and_scale(columns: Array, weights: Array, sizes: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each column, (d,); 0 and 1 for levels."""
    center, scale = known_means(columns, weights), each_known(standard_deviation, columns, weights)
    scale = np.where(scale > 0, scale, 1.0)  # zero for values that differ by less than rounding errors
    return np.where(sizes > 0, 0.0, center), np.where(sizes > 0, 1.0, scale)


def labeled_numbers(estimator: Any, given: TableInput) -> tuple[Array, LabeledNumbers, Rows]:
    """Classes, the rows of positive weight as numbers, and the same as they were read."""
    classes, rows = given.in_memory().rows(estimator)
    counts = np.bincount(rows.codes, minlength=len(classes))
    if not counts.all():
        raise ValueError(f"class {classes[int(np.argmin(counts))]!r} has no row with a positive weight")
    known = [j for j in rows.table.used if not rows.table.missing_mask(j).all()]
    if not known:
        raise ValueError("no column has a known value")
    if empty := [rows.table.names[j] for j in rows.table.used if j not in known]:
        warn(f"{listed(empty)}: left out, since no value is known", ColumnWarning)
    categorical, sizes = (
        [j for j in known if is_of_levels(rows.table, j)],
        np.zeros(len(rows.table.names), int),
    )
    levels = Levels(rare=LEAST_OF_LEVEL).fit(rows.summary, categorical) if categorical else None
    matrix = numbers_and_codes(rows.table, known, levels)
    sizes[categorical] = () if levels is None else levels.layout()["levels"]
    return classes, LabeledNumbers(matrix, rows.codes, rows.weight, len(classes), sizes, levels), rows


def unlabeled_numbers(estimator: Any, X: Any, sample_weight: Any) -> tuple[Sequence[str], LabeledNumbers]:
    """Names of the columns and the rows of positive weight, all of one class; every column must have numbers."""
    table = convert(estimator, read_table(estimator, X, reset=True))
    matrix = numbers_and_codes(table, range(len(table.names)), None)
    weight = read_weight(sample_weight, table.n)
    positive = weight > 0
    codes, sizes = np.zeros(int(positive.sum()), dtype=np.int64), np.zeros(len(table.names), dtype=np.int64)
    return table.names, LabeledNumbers(matrix[positive], codes, weight[positive], 1, sizes)


def is_of_levels(table: Table, j: int) -> bool:
    """Whether a column holds neither numbers nor booleans."""
    is_boolean = table.dtype_kind(j) == "b" or holds_booleans(table.stored_column(j))
    return not (table.is_numeric(j) or is_boolean)


def numbers_and_codes(table: Table, columns: Sequence[int], levels: Levels | None) -> Array:
    """These columns as numbers, (n, d): codes of levels, NaN for missing values and levels that training did not have.

    All other columns of the table are 0.
    """
    coded = () if levels is None else levels.indices
    numeric = [j for j in columns if j not in coded]
    matrix = np.zeros((table.n, len(table.names)))
    if numeric:
        matrix[:, numeric] = numeric_matrix(table, numeric, booleans=True)
    if levels is not None:
        codes = levels.encode(table)
        matrix[:, list(coded)] = np.where(codes < 0, np.nan, codes)
    return matrix


# -- Dependence of all pairs of columns within each class ----------------------------------------------------


def class_dependence(
    measure: Measure, rows: LabeledNumbers, names: Sequence[str], classes: Sequence[Any], report: Report
) -> Dependence:
    """Dependence of all pairs of columns within each class.

    A pair is measured on the rows where both values are known. A column of levels counts by its most dependent level.
    """
    measured = []
    for c in range(rows.k):
        class_rows = rows.codes == c
        measured.append(_measured(measure, rows.columns[class_rows], rows.weights[class_rows], rows.sizes))
        report(f"{measure.name} of classes", c + 1, rows.k)
    statistics, p_values = (np.stack(part) for part in zip(*measured, strict=True))
    return Dependence(measure.name, tuple(names), tuple(classes), statistics, p_values)


def _measured(measure: Measure, columns: Array, weights: Array, sizes: Array) -> PairStatistics:
    """Statistics of all pairs; p-values of levels are Bonferroni-adjusted for the number of pairs of levels."""
    if not (sizes > 2).any():  # the codes of two levels are an indicator
        return _of_known_rows(measure, columns, weights)
    parts = [
        np.where(np.isnan(column)[:, None], np.nan, column[:, None] == np.arange(size))
        if size > 2
        else column[:, None]
        for column, size in zip(columns.T, sizes, strict=True)
    ]
    statistic, p_value = _of_known_rows(measure, np.concatenate(parts, axis=1), weights)
    widths = [part.shape[1] for part in parts]
    starts, d = np.concatenate([[0], np.cumsum(widths)[:-1]]), len(parts)
    largest, smallest = np.empty((d, d)), np.empty((d, d))
    for i in range(d):
        lines = slice(starts[i], starts[i] + widths[i])
        largest[i] = np.maximum.reduceat(np.abs(statistic[lines]).max(axis=0), starts)
        smallest[i] = np.minimum.reduceat(p_value[lines].min(axis=0), starts)
    plain = np.maximum.outer(widths, widths) == 1
    own = statistic[np.ix_(starts, starts)]  # keeps the sign between numbers
    tests = np.outer(widths, widths)
    return PairStatistics(np.where(plain, own, largest), np.minimum(smallest * tests, 1.0))


def _of_known_rows(measure: Measure, columns: Array, weights: Array) -> PairStatistics:
    """Statistics of all pairs, each on the rows where both values are known; 0 where there are fewer than two."""
    missing = np.isnan(columns)
    if not missing.any():
        return measure.measure(columns, weights)
    masks, group = np.unique(missing.T, axis=0, return_inverse=True)
    d = columns.shape[1]
    statistic, p_value = np.zeros((d, d)), np.ones((d, d))
    for a in range(len(masks)):
        for b in range(a, len(masks)):
            known, pair = ~(masks[a] | masks[b]), np.flatnonzero((group == a) | (group == b))
            if known.sum() < 2:
                continue
            found = measure.measure(columns[np.ix_(known, pair)], weights[known])
            crossing = (group[pair][:, None] == a) & (group[pair] == b)
            inside = crossing | crossing.T
            places = np.ix_(pair, pair)
            statistic[places] = np.where(inside, found.statistic, statistic[places])
            p_value[places] = np.where(inside, found.p_value, p_value[places])
    return PairStatistics(statistic, p_value)

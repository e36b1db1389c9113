"""Rows in groups, with held-out predictions: rates of decisions in each group, their uncertainty and their loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_consistent_length

from calibayes.analysis.held_out import held_out_of
from calibayes.core.protocols import Array
from calibayes.model.attributes import numpy_classes
from calibayes.model.decision import log_odds
from calibayes.model.door import on_numpy
from calibayes.model.labels import read_target, read_weight
from calibayes.tables.table import missing_mask

LEAST_ROWS = 20
"""Rows from which the rate of a group is computed, at least."""
QUANTILE = 1.959963984540054
"""Of the normal distribution, for intervals of 95 %."""


class GroupedRows(NamedTuple):
    """Rows that thresholds are found on."""

    log_posterior: Array
    is_positive: Array
    weight: Array
    group: Array
    """Code of the group, (n,)."""
    groups: tuple[Any, ...]


def grouped_rows(model: Any, X: Any, y: Any, groups: Any, sample_weight: Any, code: int) -> GroupedRows:
    """The given rows, or the held-out predictions of the training rows."""
    if (X is None) != (y is None):
        raise ValueError("give both X and y, or neither to use the held-out predictions of the training rows")
    if X is None:
        record = held_out_of(model, "fair_thresholds without X and y")
        labels = group_labels(None, groups, None)
        if len(labels) <= record.rows.max():
            raise ValueError(f"groups has {len(labels)} entries: give the group of each training row")
        labels = [labels[i] for i in record.rows.tolist()]
        log_posterior, codes, weight = record.log_posterior, record.codes, record.weight
    else:
        log_posterior = np.asarray(on_numpy(model.predict_log_proba(X)))
        codes = read_target(y, unlabeled=False, classes=numpy_classes(model)).codes
        check_consistent_length(codes, log_posterior)
        weight = read_weight(sample_weight, len(codes))
        labels = group_labels(X, groups, len(codes))
    distinct = tuple(sorted(set(labels), key=lambda label: (str(type(label)), label)))
    place = {label: i for i, label in enumerate(distinct)}
    group = np.array([place[label] for label in labels])
    return GroupedRows(log_posterior, codes == code, weight, group, distinct)


def group_labels(X: Any, groups: Any, n: int | None) -> list[Any]:
    """The group of each row. Raises ValueError if one is missing or the number is another one."""
    given = groups
    if isinstance(groups, str):
        if X is None or groups not in getattr(X, "columns", ()):
            raise ValueError(
                f"groups must be labels, or the name of a column of X: there is no column {groups!r}"
            )
        given = X[groups]
    labels = np.asarray(given)
    if labels.ndim != 1 or (n is not None and len(labels) != n):
        expected = "labels" if n is None else f"{n} labels"
        raise ValueError(f"groups must be {expected}, one for each row, got shape {labels.shape}")
    if missing_mask(labels).any():
        raise ValueError(
            "the group of some rows is missing: leave these rows out, or give them a group of their own"
        )
    return list(labels.tolist())


def scores(log_posterior: Array, code: int) -> Array:
    """Log odds of the positive class, (n,)."""
    odds = log_odds(log_posterior)
    return np.asarray(odds if code == 1 else -odds)


def counted_weight(rows: GroupedRows, *, positives_only: bool) -> Array:
    """The weight of each row in the rate of its group, (n,). Raises ValueError if a group has too few rows."""
    counted = rows.weight * rows.is_positive if positives_only else rows.weight
    number_of_rows = np.bincount(rows.group[counted > 0], minlength=len(rows.groups))
    if len(rows.groups) < 2:
        raise ValueError(f"there is one group only: {rows.groups[0]!r}")
    if (number_of_rows < LEAST_ROWS).any():
        few = int(np.argmin(number_of_rows))
        kind = "rows of the positive class" if positives_only else "rows"
        raise ValueError(
            f"group {rows.groups[few]!r} has {number_of_rows[few]} {kind}, fewer than {LEAST_ROWS}: its rate is not known. "
            "Give more rows, or join small groups"
        )
    return np.asarray(counted, dtype=np.float64)


def rates(rows: GroupedRows, counted: Array, accepted: Array) -> Array:
    """Share of the counted weight of each group that is accepted, (g,)."""
    size = len(rows.groups)
    return np.bincount(rows.group, counted * accepted, size) / np.bincount(rows.group, counted, size)


def effective_rows(rows: GroupedRows, counted: Array) -> Array:
    """Number of rows of equal weight that would be as informative (Kish 1965), (g,)."""
    size = len(rows.groups)
    return np.bincount(rows.group, counted, size) ** 2 / np.bincount(rows.group, counted**2, size)


def wilson_interval(rate: Array, n: Array) -> Array:
    """Interval of 95 % for rates of n rows (Wilson 1927), (g, 2)."""
    square = QUANTILE**2
    middle = (rate + square / (2 * n)) / (1 + square / n)
    half = QUANTILE / (1 + square / n) * np.sqrt(rate * (1 - rate) / n + square / (4 * n**2))
    return np.stack([np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)], axis=1)


def mean_loss(rows: GroupedRows, accepted: Array, costs: Array, code: int) -> float:
    """Error or mean cost of decisions."""
    true = np.where(rows.is_positive, code, 1 - code)
    return float(np.average(costs[true, np.where(accepted, code, 1 - code)], weights=rows.weight))

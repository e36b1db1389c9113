"""Decision thresholds by group under a stated criterion of fairness, and what they cost in error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from calibayes.analysis.held_out import held_out_of
from calibayes.core.notices import listed, text_table, warn
from calibayes.core.protocols import Array
from calibayes.model.attributes import numpy_classes
from calibayes.model.checked_rows import read_target, read_weight
from calibayes.model.decision import checked_costs, least_cost, log_odds, most_probable
from calibayes.model.parameters import number, one_of
from calibayes.model.table_inputs import on_numpy
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
    if isinstance(groups, str):
        if X is None or groups not in getattr(X, "columns", ()):
            raise ValueError(
                f"groups must be labels, or the name of a column of X: there is no column {groups!r}"
            )
        groups = X[groups]
    labels = np.asarray(groups)
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
    sizes = number_of_rows(rows, counted)
    if len(rows.groups) < 2:
        raise ValueError(f"there is one group only: {rows.groups[0]!r}")
    if (sizes < LEAST_ROWS).any():
        few = int(np.argmin(sizes))
        kind = "rows of the positive class" if positives_only else "rows"
        raise ValueError(
            f"group {rows.groups[few]!r} has {sizes[few]} {kind}, fewer than {LEAST_ROWS}: its rate is not known. "
            "Give more rows, or join small groups"
        )
    return np.asarray(counted, dtype=np.float64)


def number_of_rows(rows: GroupedRows, counted: Array) -> Array:
    """Rows of each group that have a part in its rate, (g,)."""
    return np.bincount(rows.group[counted > 0], minlength=len(rows.groups))


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


# -- The thresholds by group of least loss whose rates differ by no more than a tolerance: an exact search ---
#
# A threshold divides the rows of a group, sorted by score, into accepted and rejected ones. Each division is a point: a rate
# (of acceptance) and a loss. The rates of all groups must lie in a window as wide as the tolerance. The lowest rate of the best
# solution is the rate of some point, so that all windows that begin at a point are tried, and in each window every group takes
# its point of least loss.

ROUNDING = 1e-12
"""Difference of rates, sums of weights, that counts as none."""


class Points(NamedTuple):
    """The divisions of a group, from none accepted to all; rates ascend."""

    threshold: Array
    """Least score that is accepted, (p,); inf accepts none, -inf all."""
    rate: Array
    loss: Array
    """Sum over the rows of the group."""


def points_of(score: Array, counted: Array, loss_accepted: Array, loss_rejected: Array) -> Points:
    """The divisions of the rows of a group; ``counted`` is each row's share in the rate, (n,), sum 1."""
    order = np.argsort(-score, kind="stable")
    ordered = score[order]
    is_last = np.append(ordered[1:] != ordered[:-1], True)  # of rows with the same score
    ends = np.concatenate([[0], np.flatnonzero(is_last) + 1])
    rate = np.concatenate([[0.0], np.cumsum(counted[order])])[ends]
    change = np.concatenate([[0.0], np.cumsum((loss_accepted - loss_rejected)[order])])[ends]
    return Points(_searched_thresholds(ordered[is_last]), rate, loss_rejected.sum() + change)


def _searched_thresholds(distinct: Array) -> Array:
    """Thresholds that accept none, the highest score, the two highest, ..., all, of distinct scores in descending order."""
    upper, lower = distinct[:-1], distinct[1:]
    with np.errstate(invalid="ignore"):
        middle = (upper + lower) / 2.0
    is_between = np.isfinite(middle) & (middle > lower) & (middle <= upper)
    return np.concatenate([[np.inf], np.where(is_between, middle, upper), [-np.inf]])


def best_points(groups: Sequence[Points], tolerance: float) -> list[int]:
    """The point of each group in the best solution. One exists always: accept none, or all."""
    lowest = np.unique(np.concatenate([points.rate for points in groups]))
    found = [_least_in_windows(points, lowest, lowest + tolerance + ROUNDING) for points in groups]
    total = np.sum([loss for _, loss in found], axis=0)
    best = int(np.argmin(total))
    return [int(places[best]) for places, _ in found]


def _least_in_windows(points: Points, low: Array, high: Array) -> tuple[Array, Array]:
    """Place and loss of the point of least loss whose rate lies in each window; loss inf if there is none."""
    first = np.searchsorted(points.rate, low - ROUNDING, side="left")
    last = np.searchsorted(points.rate, high, side="right") - 1
    is_empty = last < first
    places = _range_argmin(points.loss, np.where(is_empty, 0, first), np.where(is_empty, 0, last))
    return places, np.where(is_empty, np.inf, points.loss[places])


def _range_argmin(values: Array, first: Array, last: Array) -> Array:
    """Position of the least value between first and last, both included, of each range: by a sparse table."""
    table = [np.arange(len(values))]
    while 2 ** len(table) <= len(values):
        before, half = table[-1], 2 ** (len(table) - 1)
        left, right = before[:-half], before[half:]
        table.append(np.where(values[left] <= values[right], left, right))
    level = np.floor(np.log2(last - first + 1)).astype(int)
    left = np.array([table[k][a] for k, a in zip(level.tolist(), first.tolist(), strict=True)], dtype=int)
    ends = (last - 2**level + 1).tolist()
    right = np.array([table[k][b] for k, b in zip(level.tolist(), ends, strict=True)], dtype=int)
    return np.where(values[left] <= values[right], left, right)


# -- Decision thresholds by group under a stated criterion of fairness, and what they cost in error ----------

OPPORTUNITY, PARITY = "equal_opportunity", "demographic_parity"
CRITERIA = {
    OPPORTUNITY: "true positive rate: rows of the positive class that are decided positive",
    PARITY: "selection rate: rows that are decided positive",
}
"""Criterion -> the rate that must not differ between groups."""


class UncertainRatesWarning(UserWarning):
    """The rates of groups are less certain than the tolerance that was asked for.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", UncertainRatesWarning)  # an error instead of a warning
    """


@dataclass(frozen=True)
class FairDecisions:
    """Decision thresholds by group, and rates and losses before and after.

    Attributes
    ----------
    criterion : str
    tolerance : float
    positive, negative : labels
    groups : tuple
        The g groups.
    log_odds : (g,) array
        A row is decided positive if log p(positive | x) - log p(negative | x) is at least this.
    rows : (g,) integers
        Rows from which the rate of each group was computed.
    rate_before, rate_after : (g,) arrays
        The rate of the criterion under the model's decisions, and under the thresholds.
    interval_after : (g, 2) array
        Interval of 95 % for the rate after (Wilson 1927).
    loss_before, loss_after : float
        Error, or mean cost, of all rows.
    unit : str
        "error" or "cost".

    Examples
    --------
    >>> import numpy as np
    >>> from calibayes import GaussianNB
    >>> from calibayes.trust import fair_thresholds
    >>> X, y, group = np.arange(400)[:, None] % 20 / 10, np.arange(400) % 20 // 10, np.arange(400) % 2
    >>> model = GaussianNB(rule="ml").fit(X, y)
    >>> fair_thresholds(model, X, y, group, criterion="demographic_parity", positive=1, tolerance=0.2).groups
    (0, 1)
    """

    criterion: str
    tolerance: float
    positive: Any
    negative: Any
    groups: tuple[Any, ...]
    log_odds: Array
    rows: Array
    rate_before: Array
    rate_after: Array
    interval_after: Array
    loss_before: float
    loss_after: float
    unit: str = "error"

    @property
    def thresholds(self) -> dict[Any, float]:
        """Group -> least p(positive | x) that is decided positive: 0 accepts all rows; 1 and more only certain ones or none."""
        with np.errstate(over="ignore"):
            return dict(zip(self.groups, (1.0 / (1.0 + np.exp(-self.log_odds))).tolist(), strict=True))

    @property
    def cost_ratios(self) -> dict[Any, float]:
        """Group -> cost of a missed positive, in costs of a false one, for which the threshold is that of least cost."""
        with np.errstate(over="ignore"):
            return dict(zip(self.groups, np.exp(-self.log_odds).tolist(), strict=True))

    @property
    def gap_before(self) -> float:
        """Largest difference between the rates of two groups before."""
        return float(np.ptp(self.rate_before))

    @property
    def gap_after(self) -> float:
        """Largest difference between the rates of two groups after."""
        return float(np.ptp(self.rate_after))

    def decide(self, model: Any, X: Any, groups: Any) -> Array:
        """The decision for each row, (n,) labels, by the threshold of its group. The model is not changed.

        Raises ValueError for a group without a threshold, a missing one, or a model of other classes.
        """
        check_is_fitted(model)
        classes = numpy_classes(model).tolist()
        if set(classes) != {self.positive, self.negative}:
            raise ValueError(
                f"the thresholds are for the classes {self.negative!r} and {self.positive!r}, the model has {classes}"
            )
        score = scores(np.asarray(on_numpy(model.predict_log_proba(X))), classes.index(self.positive))
        codes = self._codes(group_labels(X, groups, len(score)))
        accepted = score >= self.log_odds[codes]
        return np.where(accepted, *(np.array([label]) for label in (self.positive, self.negative)))

    def _codes(self, labels: list[Any]) -> Array:
        place = {group: i for i, group in enumerate(self.groups)}
        unknown = sorted({str(label) for label in labels if label not in place})
        if unknown:
            raise ValueError(
                f"no threshold was found for group {listed(unknown)}: the groups are {listed(list(map(str, self.groups)))}. "
                "Find thresholds with rows of all groups, or decide these rows by model.predict"
            )
        return np.array([place[label] for label in labels], dtype=int)

    def __str__(self) -> str:
        lines = [("group", "rows", "threshold", "rate before", "rate after", "95 % interval")]
        for i, (group, threshold) in enumerate(self.thresholds.items()):
            low, high = self.interval_after[i]
            rates = f"{self.rate_before[i]:.3f}", f"{self.rate_after[i]:.3f}", f"{low:.3f} to {high:.3f}"
            shown = "none accepted" if np.isposinf(self.log_odds[i]) else f"{threshold:.3f}"
            lines.append((str(group), str(self.rows[i]), shown, *rates))
        return (
            f"{self.criterion} for {self.positive!r}, tolerance {self.tolerance:g}\n{text_table(lines)}\n"
            f"gap {self.gap_before:.3f} before, {self.gap_after:.3f} after\n"
            f"{self.unit} {self.loss_before:.4f} before, {self.loss_after:.4f} after"
        )


def fair_thresholds(
    model: Any,
    X: Any,
    y: Any,
    groups: Any,
    *,
    criterion: str,
    positive: Any,
    costs: Array | None = None,
    tolerance: float = 0.02,
    sample_weight: Any = None,
) -> FairDecisions:
    """Thresholds by group that fulfill a criterion of fairness with the least error or cost on given rows.

    Thresholds are not random, and the solution is exact: of all thresholds whose rates differ by at most ``tolerance``, those
    of the smallest error (or cost) are found (post-processing as in Hardt, Price and Srebro 2016, without randomization).
    Nothing is applied to the model: decisions are made by ``FairDecisions.decide``.

    Parameters
    ----------
    model : fitted classifier of two classes
    X, y : rows that were not used in training, and their labels
        None for both takes the held-out predictions of the training rows (``held_out_``); ``groups`` are then those of the
        training rows.
    groups : (n,) labels, or the name of a column of X
    criterion : {"equal_opportunity", "demographic_parity"}
        The rate that must be equal in all groups: that of positive decisions among rows of the positive class, or among all
        rows.
    positive : label
        The class whose decision is the favorable one.
    costs : (2, 2) array, optional
        ``costs[i, j]`` is the cost of deciding class j when i is true; by default the estimator's ``costs``. Without any, the
        error is minimized.
    tolerance : float, default=0.02
        Largest difference between the rates of two groups. Rates of n rows are multiples of 1 / n, so that with 0 often only
        "all" or "none" is left.
    sample_weight : (n,) floats, optional

    Returns
    -------
    FairDecisions
        It prints as a table.

    Raises
    ------
    ValueError
        If the model has not two classes, a group label is missing, or a group has fewer than 20 rows for its rate.

    Examples
    --------
    >>> import numpy as np
    >>> from calibayes import GaussianNB
    >>> X, y, group = np.arange(400)[:, None] % 20 / 10, np.arange(400) % 20 // 10, np.arange(400) % 2
    >>> model = GaussianNB(rule="ml").fit(X, y)
    >>> fair_thresholds(model, X, y, group, criterion="demographic_parity", positive=1, tolerance=0.2).groups
    (0, 1)
    """
    check_is_fitted(model)
    one_of("criterion", criterion, tuple(CRITERIA))
    number("tolerance", tolerance, 0.0, 1.0)
    classes = numpy_classes(model).tolist()
    code = _positive_code(classes, positive)
    rows = grouped_rows(model, X, y, groups, sample_weight, code)
    costs = model.costs if costs is None else costs
    matrix = 1.0 - np.eye(2) if costs is None else checked_costs(costs, 2)
    counted = counted_weight(rows, positives_only=criterion == OPPORTUNITY)
    chosen = _thresholds(rows, counted, matrix, code, tolerance)
    posterior, unit = rows.log_posterior, "error" if costs is None else "cost"
    decided = most_probable(posterior) if costs is None else least_cost(np.exp(posterior), matrix)
    accepted = scores(posterior, code) >= chosen[rows.group]
    shares = rates(rows, counted, decided == code), rates(rows, counted, accepted)
    losses = mean_loss(rows, decided == code, matrix, code), mean_loss(rows, accepted, matrix, code)
    interval = wilson_interval(shares[1], effective_rows(rows, counted))
    _warn_of_uncertain(rows, interval, tolerance)
    labels, size = (classes[code], classes[1 - code]), number_of_rows(rows, counted)
    return FairDecisions(
        criterion, float(tolerance), *labels, rows.groups, chosen, size, *shares, interval, *losses, unit
    )


def _positive_code(classes: list[Any], positive: Any) -> int:
    if len(classes) != 2:
        raise ValueError(
            f"thresholds by group are for two classes, the model has {len(classes)}: {listed(list(map(str, classes)))}. "
            "Fit a model of the favorable class against all others"
        )
    if positive not in classes:
        raise ValueError(f"positive must be one of the classes {classes}, got {positive!r}")
    return classes.index(positive)


def _thresholds(rows: GroupedRows, counted: Array, costs: Array, code: int, tolerance: float) -> Array:
    """The least log odds that is accepted in each group, (g,)."""
    score, true = scores(rows.log_posterior, code), np.where(rows.is_positive, code, 1 - code)
    accepted, rejected = rows.weight * costs[true, code], rows.weight * costs[true, 1 - code]
    points = []
    for i in range(len(rows.groups)):
        members = rows.group == i
        share = counted[members] / counted[members].sum()
        points.append(points_of(score[members], share, accepted[members], rejected[members]))
    chosen = best_points(points, tolerance)
    return np.array([group.threshold[place] for group, place in zip(points, chosen, strict=True)])


def _warn_of_uncertain(rows: GroupedRows, interval: Array, tolerance: float) -> None:
    """Warn if the rate of a group is known less well than the tolerance."""
    half = np.diff(interval, axis=1)[:, 0] / 2.0
    widest = int(np.argmax(half))
    if half[widest] > max(tolerance, 0.05):
        warn(
            f"the rate of group {rows.groups[widest]!r} is known to ±{half[widest]:.2f} only (95 % interval), the tolerance is "
            f"{tolerance:g}: on new rows the groups may differ by more. Give more rows of this group",
            UncertainRatesWarning,
        )

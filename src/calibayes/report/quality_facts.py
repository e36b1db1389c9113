"""Quality of the predictions for held-out rows: errors, reliability, ROC and gain curves, and the threshold of least cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.model.decision import checked_costs, least_cost, most_probable
from calibayes.model.training_rows import HeldOut
from calibayes.report.values import ProbabilityBin, QualityFacts, Threshold, Tradeoff

BINS = 10
POINTS = 100
"""Number of intervals between the points of a curve."""
SHOWN_CLASSES = 12
"""Most classes of a confusion matrix; the rarest are pooled."""
CURVES = 6
"""Most classes with a ROC curve."""
NORMAL = 1.959964
"""Quantile of the normal distribution for intervals of 95 %."""
OTHERS = "other classes"


def quality_facts(record: HeldOut, classes: Array, costs: Array | None = None) -> QualityFacts:
    """Scores on held-out rows; ``costs[i, j]`` is the cost of predicting class j if class i is true."""
    posterior, codes, weight = np.exp(record.log_posterior), record.codes, record.weight
    matrix = None if costs is None else checked_costs(costs, len(classes))
    decided = most_probable(record.log_posterior)
    error = float(np.average(decided != codes, weights=weight))
    low, high = wilson(error, len(codes))
    frequencies = np.bincount(codes, weight, minlength=len(classes)) / weight.sum()
    present, names = frequencies[frequencies > 0], tuple(map(str, classes))
    bins, about = _bins(posterior, codes, names)
    has_threshold = len(classes) == 2 and bool(np.ptp(codes))
    return QualityFacts(
        how=record.how,
        rows=len(codes),
        error=error,
        error_low=low,
        error_high=high,
        log_loss=float(-np.average(record.log_posterior[np.arange(len(codes)), codes], weights=weight)),
        brier=float(np.average(((posterior - np.eye(len(classes))[codes]) ** 2).sum(axis=1), weights=weight)),
        majority_error=float(1.0 - frequencies.max()),
        prior_log_loss=float(-(present * np.log(present)).sum()),
        **_confusion(codes, decided, names),
        bins=bins,
        calibrated=about,
        calibration_error=_calibration_error(bins),
        tradeoffs=_tradeoffs(posterior, codes, names),
        threshold=_threshold(posterior, codes, names, matrix) if has_threshold else None,
        costs=matrix,
        cost=None if matrix is None else float(np.mean(matrix[codes, least_cost(posterior, matrix)])),
        cost_of_likely=None if matrix is None else float(np.mean(matrix[codes, decided])),
    )


def wilson(share: float, n: float) -> tuple[float, float]:
    """The 95 % Wilson interval of a share of n rows.

    >>> [round(end, 3) for end in wilson(0.0, 100)]
    [0.0, 0.037]
    """
    if n <= 0:
        return float("nan"), float("nan")
    z = NORMAL**2 / n
    middle, half = share + z / 2, NORMAL * np.sqrt(share * (1 - share) / n + z / (4 * n))
    return float(max((middle - half) / (1 + z), 0.0)), float(min((middle + half) / (1 + z), 1.0))


def rarer(codes: Array) -> int:
    """The rarer of two classes, the second one if they are equally frequent."""
    sizes = np.bincount(codes, minlength=2)
    return int(sizes[1] <= sizes[0])


def _bins(posterior: Array, codes: Array, names: tuple[str, ...]) -> tuple[tuple[ProbabilityBin, ...], str]:
    """Ten groups of rows by probability: that of the rarer of two classes, or of the predicted class."""
    if len(names) == 2:
        event = rarer(codes)
        probability, is_true, about = posterior[:, event], codes == event, names[event]
    else:
        decided = np.argmax(posterior, axis=1)
        probability, is_true, about = posterior.max(axis=1), codes == decided, "the predicted class"
    parts = np.array_split(np.argsort(probability, kind="stable"), min(BINS, len(codes)))
    shares = ((float(probability[part].mean()), float(is_true[part].mean()), len(part)) for part in parts)
    return tuple(ProbabilityBin(mean, share, *wilson(share, n), n) for mean, share, n in shares), about


def _calibration_error(bins: tuple[ProbabilityBin, ...]) -> float:
    """Mean absolute difference between predicted and observed shares (expected calibration error)."""
    rows = sum(each.rows for each in bins)
    return sum(each.rows * abs(each.predicted - each.observed) for each in bins) / rows


def _confusion(codes: Array, decided: Array, names: tuple[str, ...]) -> dict[str, Any]:
    """Number of rows by true and predicted class; if there are many classes, the rarest are pooled."""
    k = len(names)
    counts = np.bincount(codes * k + decided, minlength=k * k).reshape(k, k)
    if k <= SHOWN_CLASSES:
        return {"classes": names, "confusion": counts}
    frequent = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[: SHOWN_CLASSES - 1])
    place = np.full(k, SHOWN_CLASSES - 1)
    place[frequent] = np.arange(len(frequent))
    pooled = np.zeros((SHOWN_CLASSES, SHOWN_CLASSES), dtype=int)
    np.add.at(pooled, (place[:, None], place[None, :]), counts)
    return {"classes": (*(names[j] for j in frequent), OTHERS), "confusion": pooled}


def _tradeoffs(posterior: Array, codes: Array, names: tuple[str, ...]) -> tuple[Tradeoff, ...]:
    """One curve for the rarer of two classes, or one for each of the most frequent classes against the others."""
    sizes = np.bincount(codes, minlength=len(names))
    order = [rarer(codes)] if len(names) == 2 else np.argsort(-sizes, kind="stable")[:CURVES].tolist()
    chosen = [j for j in order if 0 < sizes[j] < len(codes)]
    return tuple(_tradeoff(posterior[:, j], codes == j, names[j]) for j in chosen)


def _tradeoff(probability: Array, is_class: Array, name: str) -> Tradeoff:
    order = np.argsort(-probability, kind="stable")
    # Rows of equal probability are taken together.
    ends = np.append(np.flatnonzero(np.diff(probability[order]) != 0), len(order) - 1)
    found, taken = np.cumsum(is_class[order])[ends], ends + 1.0
    positives, n = int(is_class.sum()), len(order)
    true_rate = np.concatenate([[0.0], found / positives])
    false_rate = np.concatenate([[0.0], (taken - found) / (n - positives)])
    share = np.concatenate([[0.0], taken / n])
    grid = np.linspace(0.0, 1.0, POINTS + 1)
    area = float(((true_rate[1:] + true_rate[:-1]) / 2 * np.diff(false_rate)).sum())
    return Tradeoff(
        name,
        area,
        np.concatenate([[0.0], grid]),
        np.concatenate([[0.0], np.interp(grid, false_rate, true_rate)]),
        grid,
        np.interp(grid, share, true_rate),
        float(is_class.mean()),
    )


def _threshold(posterior: Array, codes: Array, names: tuple[str, ...], costs: Array | None) -> Threshold:
    """The threshold on the probability of the rarer class at which the average cost is lowest."""
    event = rarer(codes)
    matrix = 1.0 - np.eye(2) if costs is None else costs
    probability, is_event = posterior[:, event], codes == event
    miss, hit = matrix[event, 1 - event], matrix[event, event]
    alarm, right = matrix[1 - event, event], matrix[1 - event, 1 - event]
    prices = np.where(is_event, hit, alarm), np.where(is_event, miss, right)
    grid = np.linspace(0.0, 1.0, POINTS + 1)
    costs_at = np.array([_cost(probability, prices, threshold) for threshold in grid])
    gain = (miss - hit) + (alarm - right)
    usual = float((alarm - right) / gain) if gain > 0 else 0.5
    return Threshold(
        names[event],
        names[1 - event],
        grid,
        costs_at,
        best=float(_best(probability, prices)),
        honest_cost=_honest_cost(probability, prices),
        usual_cost=_cost(probability, prices, usual),
        usual=usual,
    )


def _cost(probability: Array, prices: tuple[Array, Array], threshold: float) -> float:
    """Average cost if the class is predicted for rows whose probability is at least the threshold."""
    return float(np.mean(np.where(probability >= threshold, prices[0], prices[1])))


def _best(probability: Array, prices: tuple[Array, Array]) -> float:
    """The threshold of least cost: the midpoint of two neighboring probabilities, or 0 or 1."""
    order = np.argsort(probability, kind="stable")
    values = probability[order]
    # totals[j]: the class is predicted for all rows but the first j.
    totals = np.concatenate([[0.0], np.cumsum(prices[1][order])]) + np.concatenate(
        [np.cumsum(prices[0][order][::-1])[::-1], [0.0]]
    )
    is_border = np.concatenate([[True], np.diff(values) > 0, [True]])
    place = int(np.argmin(np.where(is_border, totals, np.inf)))
    if place in (0, len(values)):
        return 0.0 if place == 0 else 1.0
    return float((values[place - 1] + values[place]) / 2)


def _honest_cost(probability: Array, prices: tuple[Array, Array]) -> float:
    """Average cost of each half of the rows at the threshold that was chosen on the other half."""
    half = np.random.default_rng(0).permutation(len(probability)) % 2 == 0
    if half.all() or not half.any():
        return float("nan")

    def part(rows: Array) -> tuple[Array, tuple[Array, Array]]:
        return probability[rows], (prices[0][rows], prices[1][rows])

    return float(np.mean([_cost(*part(rows), _best(*part(~rows))) for rows in (half, ~half)]))

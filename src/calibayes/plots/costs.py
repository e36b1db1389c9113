"""Mean cost of decisions between two classes as a function of the threshold."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.model.decision import checked_costs
from calibayes.plots.figures import MAIN, REFERENCE, Display, legend_label, literal
from calibayes.plots.probabilities import ScoredRows, rows_of_estimator, rows_of_predictions

ERRORS = ((0.0, 1.0), (1.0, 0.0))
"""Default costs, 1 for a wrong decision: the mean cost is the error rate."""


@dataclass(eq=False, repr=False)
class CostDisplay(Display):
    """Mean cost by decision threshold: ``pos_label`` is decided if its probability is at least the threshold.

    Make it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    thresholds : (m,) array
        Ascending; the last is infinite: ``pos_label`` is decided for no row.
    cost : (m,) array
        Mean cost of a row at each threshold.
    bayes_threshold : float
        The threshold of least expected cost if the probabilities are calibrated.
    pos_label : label
        The class that is decided above the threshold.
    name : str, optional

    Attributes
    ----------
    best_threshold, least_cost : float
        The threshold of least mean cost on these rows, and that cost. Since the threshold is chosen on the same rows, the mean
        cost of new rows tends to be higher.
    line_, best_, bayes_ : matplotlib artists
        The curve, the point of least cost and the line at the Bayes threshold.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes.plots import CostDisplay
    >>> display = CostDisplay.from_predictions(
    ...     ["no", "no", "yes", "yes"], [0.1, 0.4, 0.3, 0.9], costs=[[0, 1], [5, 0]]
    ... )
    >>> display.best_threshold, display.least_cost, round(display.bayes_threshold, 3)
    (0.3, 0.25, 0.167)
    """

    thresholds: Array
    cost: Array
    _: KW_ONLY
    bayes_threshold: float
    pos_label: Any
    name: str | None = None

    @property
    def best_threshold(self) -> float:
        """The threshold of least mean cost."""
        return float(self.thresholds[np.argmin(self.cost)])

    @property
    def least_cost(self) -> float:
        """The least mean cost."""
        return float(self.cost.min())

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        costs: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> CostDisplay:
        """Draw the mean cost of a classifier of two classes on labeled rows that it was not trained on.

        Parameters
        ----------
        estimator : fitted classifier with `predict_proba`
        X, y : rows and labels, optional
            Without them, the held-out rows of a classifier of this package (``held_out_``).
        costs : (2, 2) array, optional
            ``costs[i, j]`` is the cost of deciding class j if class i is true; by default the costs of the estimator if it has
            any, else 1 for a wrong decision.
        sample_weight : (n,) array, optional
        pos_label : label, optional
            The class that is decided above the threshold; by default the second one.
        name, ax, **kwargs
            As in `ReliabilityDisplay.from_estimator`.

        Returns
        -------
        CostDisplay
        """
        rows = rows_of_estimator(estimator, X, y, sample_weight)
        costs = getattr(estimator, "costs", None) if costs is None else costs
        label = type(estimator).__name__ if name is None else name
        return cls._of(rows, costs, pos_label, label).plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        costs: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> CostDisplay:
        """Draw the mean cost of given probabilities, (n, 2), or (n,) for ``pos_label``.

        ``classes`` are the classes of the columns, by default the sorted labels. The other parameters are those of
        `from_estimator`.
        """
        rows = rows_of_predictions(y_true, y_prob, classes, sample_weight, pos_label)
        return cls._of(rows, costs, pos_label, name).plot(ax=ax, **kwargs)

    @classmethod
    def _of(cls, rows: ScoredRows, costs: Any, pos_label: Any, name: str | None) -> CostDisplay:
        if (k := len(rows.classes)) != 2:
            raise ValueError(f"a threshold needs two classes, got {k}: {rows.classes.tolist()}")
        positive = rows.position(pos_label)
        order = [1 - positive, positive]
        matrix = checked_costs(ERRORS if costs is None else costs, 2)[np.ix_(order, order)]
        thresholds, cost = _mean_costs(rows, positive, matrix)
        false_alarm, miss = matrix[0, 1] - matrix[0, 0], matrix[1, 0] - matrix[1, 1]
        total = false_alarm + miss
        bayes = float(false_alarm / total) if total > 0 else 0.5
        return cls(thresholds, cost, bayes_threshold=bayes, pos_label=rows.classes[positive], name=name)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> CostDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        axes, name = self.draw_on(ax, 4.5), self.name if name is None else name
        best, x = min(self.best_threshold, 1.0), np.minimum(self.thresholds, 1.0)
        least = f"least cost {self.least_cost:.3g} at {best:.3g}"
        options = {"color": MAIN, "label": legend_label(least if name is None else f"{name}: {least}")}
        x, y = np.append(0.0, x), np.append(self.cost[0], self.cost)
        (self.line_,) = axes.step(x, y, where="pre", **{**options, **kwargs})
        (self.best_,) = axes.plot([best], [self.least_cost], marker="o", color=self.line_.get_color())
        calibrated = f"best if the probabilities are calibrated ({self.bayes_threshold:.3g})"
        self.bayes_ = axes.axvline(self.bayes_threshold, linestyle="--", label=calibrated, **REFERENCE)
        axes.set_ylim(bottom=0.0)
        label = literal(f"threshold of the probability of class {self.pos_label}")
        axes.set(xlim=(0.0, 1.0), xlabel=label, ylabel="mean cost of a row")
        axes.legend(frameon=False)
        return self


def _mean_costs(rows: ScoredRows, positive: int, costs: Array) -> tuple[Array, Array]:
    """Thresholds, (m,), and mean costs, (m,), of deciding class number ``positive`` at and above each threshold."""
    is_positive = rows.codes == positive
    values, places = np.unique(rows.probabilities[:, positive], return_inverse=True)
    weight = rows.weight / rows.weight.sum()
    by_value = [
        np.bincount(places.reshape(-1), weight * (is_positive == true), minlength=len(values))
        for true in (False, True)
    ]
    cost = np.zeros(len(values) + 1)
    for true, share in enumerate(by_value):
        below = np.append(0.0, np.cumsum(share))
        cost += costs[true, 0] * below + costs[true, 1] * (share.sum() - below)
    return np.append(values, np.inf), cost


# -- Gain and lift: how many rows of a class are found among the rows of highest probability -----------------


@dataclass(eq=False, repr=False)
class LiftDisplay(Display):
    """Gain and lift of a class among the rows of highest predicted probability.

    The gain is the share of the rows of the class that are among them. The lift is the gain divided by that of rows in random
    order.

    Make it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    share : (m,) array
        Share of all rows that are selected, those of highest probability first.
    gain : (m,) array
        Share of the rows of the class that are among the selected rows.
    frequency : float
        Share of the class among all rows.
    pos_label : label
    kind : {"gain", "lift"}
    name : str, optional

    Attributes
    ----------
    lift : (m,) array
        Ratio ``gain / share``.
    line_, chance_ : matplotlib artists
        The curve, and that of rows in random order.
    best_ : matplotlib artist or None
        The gain if all rows of the class came first; None for the lift.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes.plots import LiftDisplay
    >>> display = LiftDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.9, 0.6, 0.7])
    >>> display.gain.tolist(), display.lift.tolist()
    ([0.5, 1.0, 1.0, 1.0], [2.0, 2.0, 1.3333333333333333, 1.0])
    """

    share: Array
    gain: Array
    _: KW_ONLY
    frequency: float
    pos_label: Any
    kind: str = "gain"
    name: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("gain", "lift"):
            raise ValueError(f"kind must be 'gain' or 'lift', got {self.kind!r}")

    @property
    def lift(self) -> Array:
        """Frequency of the class among the selected rows, divided by its frequency among all rows, (m,)."""
        return self.gain / self.share

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        kind: str = "gain",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> LiftDisplay:
        """Draw gain or lift of a classifier on labeled rows that it was not trained on.

        Parameters
        ----------
        estimator : fitted classifier with `predict_proba`
        X, y : rows and labels, optional
            Without them, the held-out rows of a classifier of this package (``held_out_``).
        sample_weight : (n,) array, optional
        pos_label : label, optional
            The class whose rows are counted; by default the second of two.
        kind : {"gain", "lift"}
        name, ax, **kwargs
            As in `ReliabilityDisplay.from_estimator`.

        Returns
        -------
        LiftDisplay
        """
        rows = rows_of_estimator(estimator, X, y, sample_weight)
        label = type(estimator).__name__ if name is None else name
        return cls._of(rows, pos_label, kind, label).plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        kind: str = "gain",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> LiftDisplay:
        """Draw gain or lift of given probabilities, (n, k), or (n,) for ``pos_label``.

        ``classes`` are the classes of the columns, by default the sorted labels. The other parameters are those of
        `from_estimator`.
        """
        rows = rows_of_predictions(y_true, y_prob, classes, sample_weight, pos_label)
        return cls._of(rows, pos_label, kind, name).plot(ax=ax, **kwargs)

    @classmethod
    def _of(cls, rows: ScoredRows, pos_label: Any, kind: str, name: str | None) -> LiftDisplay:
        positive = rows.position(pos_label)
        is_positive = rows.codes == positive
        if not is_positive.any():
            raise ValueError(f"no row is of class {rows.classes[positive]!r}")
        # Rows of equal probability are selected together.
        places = np.unique(-rows.probabilities[:, positive], return_inverse=True)[1].reshape(-1)
        share = np.cumsum(np.bincount(places, rows.weight))
        gain = np.cumsum(np.bincount(places, rows.weight * is_positive))
        named = {"pos_label": rows.classes[positive], "kind": kind, "name": name}
        return cls(share / share[-1], gain / gain[-1], frequency=float(gain[-1] / share[-1]), **named)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> LiftDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        axes, name = self.draw_on(ax, 4.5), self.name if name is None else name
        is_gain = self.kind == "gain"
        x = np.append(0.0, self.share) if is_gain else self.share
        y = np.append(0.0, self.gain) if is_gain else self.lift
        options = {"color": MAIN, "label": legend_label(f"class {self.pos_label}" if name is None else name)}
        self.best_ = None
        if is_gain:
            perfect = {"linestyle": "--", "label": "perfect order", **REFERENCE}
            (self.best_,) = axes.plot([0, self.frequency, 1], [0, 1, 1], **perfect)
        random = {"linestyle": ":", "label": "random order", **REFERENCE}
        (self.chance_,) = axes.plot([0, 1], [0, 1] if is_gain else [1, 1], **random)
        (self.line_,) = axes.plot(x, y, **{**options, **kwargs})
        axes.set_ylim(bottom=0.0)
        gain = f"share of the rows of class {self.pos_label} among them"
        label = literal(gain if is_gain else f"lift of class {self.pos_label}")
        axes.set(xlim=(0.0, 1.0), xlabel="share of the rows, highest probability first", ylabel=label)
        axes.legend(frameon=False)
        return self

"""Reliability diagram (calibration curve): predicted probabilities against observed frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.interface.parameters import whole_number
from calibayes.plots.display import MAIN, QUIET, Display, legend_label, literal
from calibayes.plots.scores import (
    ScoredRows,
    effective_rows,
    rows_of_estimator,
    rows_of_predictions,
    wilson_interval,
)


class ReliabilityDisplay(Display):
    """Reliability diagram: in groups of rows, the share of rows of a class against its mean predicted probability.

    Make it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    prob_true, prob_pred : (m,) arrays
        Share of the rows of each group that are of the class, and mean predicted probability of the class.
    lower, upper : (m,) arrays
        95 % intervals of ``prob_true``.
    rows : (m,) array
        Number of rows in each group, or the sum of their weights.
    label : str
        The class or classes whose probability is drawn, for the labels of the axes.
    name : str, optional
        For the legend.

    Attributes
    ----------
    calibration_error : float
        Mean absolute difference of ``prob_true`` and ``prob_pred``, weighted by ``rows`` (expected calibration error).
    line_, bars_, diagonal_ : matplotlib artists
        The curve, its intervals and the diagonal.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.datasets import load
    >>> from calibayes.plots import ReliabilityDisplay
    >>> from sklearn.model_selection import train_test_split
    >>> X, X_new, y, y_new = train_test_split(*load("penguins", return_X_y=True), random_state=0, test_size=0.5)
    >>> display = ReliabilityDisplay.from_estimator(NaiveBayes(rule="ml").fit(X, y), X_new, y_new)
    >>> bool(display.calibration_error < 0.05)
    True
    """

    def __init__(
        self,
        prob_true: Array,
        prob_pred: Array,
        *,
        lower: Array,
        upper: Array,
        rows: Array,
        label: str,
        name: str | None = None,
    ) -> None:
        self.prob_true, self.prob_pred, self.lower, self.upper = prob_true, prob_pred, lower, upper
        self.rows, self.label, self.name = rows, label, name

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: mean absolute difference of share and probability, weighted by the rows."""
        return float(np.average(np.abs(self.prob_true - self.prob_pred), weights=self.rows))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        n_bins: int = 10,
        strategy: str = "quantile",
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw the reliability of a classifier on labeled rows that it was not trained on.

        Parameters
        ----------
        estimator : fitted classifier with `predict_proba`
        X, y : rows and labels, optional
            Without them, the held-out rows of a classifier of this package (``held_out_``).
        sample_weight : (n,) array, optional
        n_bins : int, default=10
            Number of groups.
        strategy : {"quantile", "uniform"}
            Groups of equally many rows, or of equally wide ranges of the probability.
        pos_label : label, optional
            The class whose probability is drawn; by default the predicted class of each row.
        name : str, optional
            For the legend; by default the name of the class of the estimator.
        ax : matplotlib axes, optional
        **kwargs
            For the line, as in ``matplotlib.axes.Axes.plot``.

        Returns
        -------
        ReliabilityDisplay
        """
        rows = rows_of_estimator(estimator, X, y, sample_weight)
        label = type(estimator).__name__ if name is None else name
        return cls._of(rows, n_bins, strategy, pos_label, label).plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        n_bins: int = 10,
        strategy: str = "quantile",
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw the reliability of given probabilities.

        Parameters
        ----------
        y_true : (n,) labels
        y_prob : (n, k) or (n,) array
            Probabilities of all classes, or of ``pos_label``, which is then by default the second of two classes.
        classes : (k,) labels, optional
            The class of each column of ``y_prob``; by default the sorted labels.
        sample_weight, n_bins, strategy, pos_label, name, ax, **kwargs
            As in `from_estimator`; there is no default ``name``.

        Returns
        -------
        ReliabilityDisplay
        """
        rows = rows_of_predictions(
            y_true, y_prob, classes=classes, sample_weight=sample_weight, pos_label=pos_label
        )
        if np.ndim(y_prob) == 1 and pos_label is None:
            pos_label = rows.classes[1]
        return cls._of(rows, n_bins, strategy, pos_label, name).plot(ax=ax, **kwargs)

    @classmethod
    def _of(
        cls, rows: ScoredRows, n_bins: int, strategy: str, pos_label: Any, name: str | None
    ) -> ReliabilityDisplay:
        if pos_label is None:
            predicted = rows.probabilities.argmax(axis=1)
            probability, is_true = rows.probabilities.max(axis=1), predicted == rows.codes
            label = "the predicted class"
        else:
            place, label = rows.position(pos_label), f"class {pos_label}"
            probability, is_true = rows.probabilities[:, place], rows.codes == place
        groups = _groups(probability, n_bins, strategy)
        members = [groups == group for group in np.unique(groups)]
        weights = [rows.weight[rows_in] for rows_in in members]
        prob_true, prob_pred = (
            np.array([np.average(values[m], weights=w) for m, w in zip(members, weights, strict=True)])
            for values in (is_true, probability)
        )
        count = np.array([effective_rows(w) for w in weights])
        lower, upper = wilson_interval(prob_true, count)
        total = np.array([w.sum() for w in weights])
        return cls(prob_true, prob_pred, lower=lower, upper=upper, rows=total, label=label, name=name)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> ReliabilityDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        axes, name = self.draw_on(ax, 5.0), self.name if name is None else name
        error = f"calibration error {self.calibration_error:.3f}"
        options = {
            "marker": "o",
            "markersize": 4,
            "label": legend_label(error if name is None else f"{name} ({error})"),
        }
        (self.diagonal_,) = axes.plot([0, 1], [0, 1], color=QUIET, linestyle=":", linewidth=1)
        (self.line_,) = axes.plot(self.prob_pred, self.prob_true, **{"color": MAIN, **options, **kwargs})
        self.bars_ = axes.vlines(
            self.prob_pred, self.lower, self.upper, color=self.line_.get_color(), linewidth=1, alpha=0.6
        )
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel(literal(f"mean probability of {self.label}"))
        axes.set_ylabel(literal(f"share of rows where {self.label} is true (bars: 95 %)"))
        axes.legend(frameon=False, loc="upper left")
        return self


def _groups(probability: Array, n_bins: int, strategy: str) -> Array:
    """The group of each row, (n,) integers."""
    count = whole_number("n_bins", n_bins, 1)
    inner = np.arange(1, count) / count
    if strategy == "quantile":
        return np.searchsorted(np.unique(np.quantile(probability, inner)), probability, side="right")
    if strategy == "uniform":
        return np.searchsorted(inner, probability, side="right")
    raise ValueError(f"strategy must be 'quantile' or 'uniform', got {strategy!r}")

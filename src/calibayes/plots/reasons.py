"""Bar plots of explanations: contributions to the log odds."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.analysis.explanation import Explanation
from calibayes.core.protocols import Array
from calibayes.plots.figures import MAIN, SECOND, Display, literal


class ReasonsDisplay(Display):
    """Contributions of the columns to the log odds of the predicted class: of one row, or the mean absolute ones of all rows.

    Make it with `from_estimator` or `from_explanation`.

    Parameters
    ----------
    explanation : Explanation
        Result of `explain`.
    row : int, optional
        Position of the row; None for mean absolute contributions over all rows.
    most : int, default=12
        Largest number of columns that are drawn, those of largest absolute contribution on top.

    Attributes
    ----------
    bars_ : matplotlib container
    errors_ : matplotlib container or None
        One standard error to either side, if the contributions were estimated from sampled orders of the columns; otherwise None.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.datasets import load
    >>> from calibayes.plots import ReasonsDisplay
    >>> X, y = load("penguins", return_X_y=True)
    >>> display = ReasonsDisplay.from_estimator(NaiveBayes(rule="ml").fit(X, y), X[:5], row=0, most=3)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()][-1]
    '5 others'
    """

    def __init__(self, explanation: Explanation, *, row: int | None = None, most: int = 12) -> None:
        n = len(explanation.chosen)
        if row is not None and not -n <= row < n:
            raise ValueError(f"row must be the position of one of the {n} rows, or None for all; got {row!r}")
        if most < 1:
            raise ValueError(f"most must be 1 or more, got {most!r}")
        self.explanation, self.row, self.most = explanation, row, most

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        row: int | None = None,
        against: Any = None,
        most: int = 12,
        ax: Any = None,
        **kwargs: Any,
    ) -> ReasonsDisplay:
        """Explain the rows of a table, and draw one of them or the mean over all.

        Parameters
        ----------
        estimator : fitted classifier of this package
        X : rows
        row : int, optional
            Position of the row; None for the mean absolute contributions over all rows.
        against : label, optional
            The class to compare with, as in `explain`.
        most : int, default=12
            Largest number of columns that are drawn.
        ax : matplotlib axes, optional
        **kwargs
            For the bars, as in ``matplotlib.axes.Axes.barh``.

        Returns
        -------
        ReasonsDisplay
        """
        return cls.from_explanation(estimator.explain(X, against), row=row, most=most, ax=ax, **kwargs)

    @classmethod
    def from_explanation(
        cls,
        explanation: Explanation,
        *,
        row: int | None = None,
        most: int = 12,
        ax: Any = None,
        **kwargs: Any,
    ) -> ReasonsDisplay:
        """Draw the result of `explain`."""
        return cls(explanation, row=row, most=most).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> ReasonsDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        self.errors_ = None
        if self.row is None:
            return self._plot_overall(ax, kwargs)
        names, contributions, errors = _largest(self.explanation, self.row, self.most)
        axes = self.draw_on(ax, 1.2 + 0.3 * len(names))
        heights = self._bars(names, contributions, kwargs)
        shown = errors > 0
        if shown.any():
            style = {"fmt": "none", "ecolor": "black", "capsize": 2}
            self.errors_ = axes.errorbar(contributions[shown], heights[shown], xerr=errors[shown], **style)
        axes.axvline(0.0, color="black", linewidth=0.8)
        explained, row = self.explanation, self.row
        note = f" (lines: standard errors, {explained.permutations} permutations)" if shown.any() else ""
        axes.set_xlabel(f"contribution to the log odds{note}")
        classes = f"{explained.chosen[row]} rather than {explained.other[row]}"
        axes.set_title(literal(f"{classes}: log odds {explained.log_odds[row]:.2f}"), loc="left")
        return self

    def _plot_overall(self, ax: Any, options: dict[str, Any]) -> ReasonsDisplay:
        sizes = dict(list(self.explanation.overall().items())[: self.most])
        axes = self.draw_on(ax, 1.2 + 0.3 * len(sizes))
        self._bars(list(sizes), np.array(list(sizes.values())), options)
        axes.set_xlabel("mean absolute contribution to the log odds")
        rows = len(self.explanation.chosen)
        axes.set_title(f"Contribution of the columns, mean over {rows} rows", loc="left")
        return self

    def _bars(self, names: list[str], sizes: Array, options: dict[str, Any]) -> Array:
        """Draw the bars, the first on top; returns their heights."""
        heights = np.arange(len(names))[::-1]
        colors = [MAIN if size >= 0 else SECOND for size in sizes]
        self.bars_ = self.ax_.barh(heights, sizes, **{"color": colors, **options})
        self.ax_.set_yticks(heights, [literal(name) for name in names])
        return heights


def _largest(explanation: Explanation, row: int, most: int) -> tuple[list[str], Array, Array]:
    """Names, contributions and standard errors of the largest contributions of a row, then of all others together."""
    values = explanation.contributions[row]
    order = np.argsort(-np.abs(values), kind="stable")
    names = [explanation.names[j] for j in order[:most]]
    contributions, errors = values[order[:most]], explanation.standard_error[row, order[:most]]
    if len(order) > most:
        names.append(f"{len(order) - most} others")
        contributions = np.append(contributions, values[order[most:]].sum())
        errors = np.append(errors, 0.0)
    return names, contributions, errors


def plot_reasons(explanation: Explanation, row: int = 0, *, most: int = 12, ax: Any = None) -> Any:
    """Draw the contributions of one row (`ReasonsDisplay`); returns the axes.

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.datasets import load_penguins
    >>> X, y = load_penguins(return_X_y=True)
    >>> axes = plot_reasons(NaiveBayes(rule="ml").fit(X, y).explain(X), row=3)
    """
    return ReasonsDisplay.from_explanation(explanation, row=row, most=most, ax=ax).ax_


def plot_overall(explanation: Explanation, *, most: int = 20, ax: Any = None) -> Any:
    """Draw the mean absolute contribution of each column (`ReasonsDisplay`); returns the axes.

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.datasets import load_penguins
    >>> X, y = load_penguins(return_X_y=True)
    >>> axes = plot_overall(NaiveBayes(rule="ml").fit(X, y).explain(X))
    """
    return ReasonsDisplay.from_explanation(explanation, most=most, ax=ax).ax_

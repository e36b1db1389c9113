"""Learning curves: errors and losses over the updates of an iterative rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array
from calibayes.plots.display import Display, legend_label


class HistoryDisplay(Display):
    """A quantity of ``history_`` over the updates of a rule, a curve for each training.

    Make it with `from_estimator` or `from_histories`.

    Parameters
    ----------
    curves : mapping
        Name -> values before the first update, after the first, and so on.
    quantity : str
        Name of the quantity, for the label of the axis.

    Attributes
    ----------
    lines_ : list of matplotlib lines
        In the order of ``curves``.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.datasets import load
    >>> from calibayes.plots import HistoryDisplay
    >>> X, y = load("penguins", return_X_y=True)
    >>> display = HistoryDisplay.from_estimator(NaiveBayes().fit(X, y), quantity="error")
    >>> values = display.curves["NaiveBayes"]
    >>> bool(values[-1] < values[0])
    True
    """

    def __init__(self, curves: Mapping[str, Array], *, quantity: str) -> None:
        self.curves, self.quantity = dict(curves), quantity

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        quantity: str = "soft_error",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> HistoryDisplay:
        """Draw the training of a fitted classifier, or of the members of an ensemble that have a history.

        Parameters
        ----------
        estimator : fitted classifier of this package
        quantity : str, default="soft_error"
            A key of ``history_``: "soft_error" (mean of 1 - p(true class)), "error", "log_loss", "objective", ...
        name : str, optional
            For the legend; by default the name of the class of the estimator. Curves of an ensemble have the names of its
            members.
        ax : matplotlib axes, optional
        **kwargs
            For the lines, as in ``matplotlib.axes.Axes.plot``.

        Returns
        -------
        HistoryDisplay
        """
        check_is_fitted(estimator)
        members = getattr(estimator, "models_", {name or type(estimator).__name__: estimator})
        histories = {key: getattr(member, "history_", {}) for key, member in members.items()}
        iterative = {key: history for key, history in histories.items() if len(history)}
        if not iterative:
            raise ValueError(
                f"{type(estimator).__name__} was trained in closed form and has no history: fit it with an iterative rule, "
                "such as rule='rc'"
            )
        return cls.from_histories(iterative, quantity=quantity, ax=ax, **kwargs)

    @classmethod
    def from_histories(
        cls,
        histories: Mapping[str, Mapping[str, Array]],
        *,
        quantity: str = "soft_error",
        ax: Any = None,
        **kwargs: Any,
    ) -> HistoryDisplay:
        """Draw several trainings: name -> ``history_`` of a fitted classifier."""
        for name, history in histories.items():
            if quantity not in history:
                raise ValueError(
                    f"the history of {name} has no {quantity!r}: give one of {', '.join(map(repr, history))}"
                )
        curves = {name: np.asarray(history[quantity]) for name, history in histories.items()}
        return cls(curves, quantity=quantity).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> HistoryDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        axes, self.lines_ = self.draw_on(ax, 4.5), []
        for number, (name, values) in enumerate(self.curves.items()):
            options = {"color": f"C{number % 10}", "label": legend_label(name), **kwargs}
            self.lines_ += axes.plot(np.arange(len(values)), values, **options)
        axes.set_xlabel("updates of the rule")
        axes.set_ylabel(f"{self.quantity.replace('_', ' ')} of the training rows")
        axes.legend(frameon=False)
        return self

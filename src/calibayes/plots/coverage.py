"""Observed coverage and mean size of prediction sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from calibayes.core.protocols import Array
from calibayes.plots.display import MAIN, QUIET, Display, legend_label
from calibayes.plots.scores import wilson_interval

COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


class CoverageDisplay(Display):
    """Share of rows whose prediction set contains the true class (observed coverage), against the nominal coverage.

    The numbers at the points are mean numbers of classes in a set. Make it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    stated, observed : (m,) arrays
        Nominal coverage, and share of the rows whose set contains their class.
    size : (m,) array
        Mean number of classes in a set.
    n_rows : int
    name : str, optional

    Attributes
    ----------
    line_, bars_, diagonal_ : matplotlib artists
        The curve, 95 % intervals, and the diagonal.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from calibayes.plots import CoverageDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X[::3], y[::3]).with_held_out(X[1::3], y[1::3])
    >>> display = CoverageDisplay.from_estimator(model, X[2::3], y[2::3], coverages=[0.8, 0.9])
    >>> display.observed.shape, bool((display.size > 0.5).all())
    ((2,), True)
    """

    def __init__(
        self, stated: Array, observed: Array, size: Array, *, n_rows: int, name: str | None = None
    ) -> None:
        self.stated, self.observed, self.size = stated, observed, size
        self.n_rows, self.name = n_rows, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        coverages: Sequence[float] = COVERAGES,
        by_class: bool = False,
        score: Any = "probability",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> CoverageDisplay:
        """Draw the coverage of `predict_set` on labeled rows that are neither training rows nor held-out rows of the model.

        Parameters
        ----------
        estimator : fitted classifier of this package
        X, y : rows and labels
        coverages : numbers between 0 and 1
        by_class, score
            As in `predict_set`.
        name : str, optional
            For the legend; by default the name of the class of the estimator.
        ax : matplotlib axes, optional
        **kwargs
            For the line, as in ``matplotlib.axes.Axes.plot``.

        Returns
        -------
        CoverageDisplay
        """
        sets = {level: estimator.predict_set(X, level, by_class=by_class, score=score) for level in coverages}
        label = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, sets, classes=estimator.classes_, name=label, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        sets: Mapping[float, Any],
        *,
        classes: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> CoverageDisplay:
        """Draw given prediction sets.

        Parameters
        ----------
        y_true : (n,) labels
        sets : mapping
            Nominal coverage -> (n, k) booleans: whether the set of a row contains a class.
        classes : (k,) labels, optional
            The class of each column of the sets; by default the sorted labels.
        name, ax, **kwargs
            As in `from_estimator`; there is no default ``name``.

        Returns
        -------
        CoverageDisplay
        """
        labels = column_or_1d(y_true)
        names = np.unique(labels) if classes is None else np.asarray(classes)
        is_class = labels[:, None] == names[None, :]
        if not is_class.any(axis=1).all():
            raise ValueError(f"y_true has labels that are not among the classes {names.tolist()}")
        if not sets:
            raise ValueError(
                "sets must be a dictionary coverage -> booleans of shape (n, k), got an empty one"
            )
        stated = np.array(sorted(sets), dtype=np.float64)
        members = [_checked_sets(sets[level], is_class) for level in stated.tolist()]
        observed = np.array([(is_member & is_class).any(axis=1).mean() for is_member in members])
        size = np.array([is_member.sum(axis=1).mean() for is_member in members])
        return cls(stated, observed, size, n_rows=len(labels), name=name).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> CoverageDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        axes, name = self.draw_on(ax, 5.0), self.name if name is None else name
        low = float(min(self.stated.min(), self.observed.min())) - 0.03
        lower, upper = wilson_interval(self.observed, np.full(len(self.observed), float(self.n_rows)))
        options = {"color": MAIN, "marker": "o", "markersize": 4}
        label = legend_label("prediction sets" if name is None else name)
        (self.diagonal_,) = axes.plot([low, 1], [low, 1], color=QUIET, linestyle=":", linewidth=1)
        (self.line_,) = axes.plot(self.stated, self.observed, **{**options, "label": label, **kwargs})
        self.bars_ = axes.vlines(
            self.stated, lower, upper, color=self.line_.get_color(), linewidth=1, alpha=0.6
        )
        for x, y, size in zip(self.stated, self.observed, self.size, strict=True):
            axes.annotate(f"{size:.2f}", (x, y), (5, -11), textcoords="offset points", fontsize="small")
        axes.set_xlim(low, 1.02)
        axes.set_xlabel("nominal coverage")
        axes.set_ylabel("observed coverage (bars: 95 %)")
        axes.set_title(f"{self.n_rows} rows; numbers: mean size of a set", loc="left")
        axes.legend(frameon=False, loc="upper left")
        return self


def _checked_sets(sets: Any, is_class: Array) -> Array:
    is_member = np.asarray(sets, dtype=bool)
    if is_member.shape != is_class.shape:
        raise ValueError(
            f"sets must be booleans of shape {is_class.shape}, rows by classes, got shape {is_member.shape}"
        )
    return is_member

"""Columns whose distribution differs between the training rows and new rows (drift)."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.analysis.drift import Drift
from calibayes.analysis.surprise import Surprise
from calibayes.plots.figures import MAIN, REFERENCE, SECOND, Display, legend_label, literal

SMALLEST = 1e-16
"""Smaller p-values are drawn as this one."""


class DriftDisplay(Display):
    """p-values of the hypothesis that the distribution of a column is unchanged, the smallest on top.

    Make it with `from_estimator` or `from_drift`.

    Parameters
    ----------
    drift : calibayes.trust.Drift
    most : int, default=20
        Largest number of columns that are drawn.

    Attributes
    ----------
    bars_, limit_ : matplotlib artists
        The bars, and the line at the false-alarm rate.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.datasets import load
    >>> from calibayes.plots import DriftDisplay
    >>> from sklearn.model_selection import train_test_split
    >>> X, X_new, y, y_new = train_test_split(*load("penguins", return_X_y=True), random_state=0, test_size=0.5)
    >>> model = NaiveBayes(rule="ml").fit(X, y)
    >>> display = DriftDisplay.from_estimator(model, X_new.assign(year=2010))
    >>> display.drift.moved_columns
    ('year',)
    """

    def __init__(self, drift: Drift, *, most: int = 20) -> None:
        if most < 1:
            raise ValueError(f"most must be 1 or more, got {most!r}")
        self.drift, self.most = drift, most

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X_new: Any,
        *,
        alpha: float = 0.05,
        most: int = 20,
        ax: Any = None,
        **kwargs: Any,
    ) -> DriftDisplay:
        """Draw the columns of new rows, compared with the training rows of a classifier by its method `drift`.

        Parameters
        ----------
        estimator : fitted classifier of this package
        X_new : rows without labels
        alpha : float, default=0.05
            The false-alarm rate.
        most : int, default=20
            Largest number of columns that are drawn.
        ax : matplotlib axes, optional
        **kwargs
            For the bars, as in ``matplotlib.axes.Axes.barh``.

        Returns
        -------
        DriftDisplay
        """
        return cls.from_drift(estimator.drift(X_new, alpha=alpha), most=most, ax=ax, **kwargs)

    @classmethod
    def from_drift(cls, drift: Drift, *, most: int = 20, ax: Any = None, **kwargs: Any) -> DriftDisplay:
        """Draw the result of `drift`."""
        return cls(drift, most=most).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> DriftDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        columns, alpha = self.drift.columns[: self.most], self.drift.alpha
        axes = self.draw_on(ax, 1.6 + 0.3 * len(columns))
        heights = np.arange(len(columns))[::-1]
        sizes = [-np.log10(max(column.p_value, SMALLEST)) for column in columns]
        colors = [SECOND if column.p_value <= alpha else MAIN for column in columns]
        self.bars_ = axes.barh(heights, sizes, **{"color": colors, **kwargs})
        limit = -np.log10(max(alpha, SMALLEST))
        self.limit_ = axes.axvline(limit, linestyle="--", label=f"p = {alpha:g}", **REFERENCE)
        beside = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "fontsize": "small"}
        for height, size, column in zip(heights, sizes, columns, strict=True):
            if column.p_value <= alpha:
                axes.annotate(literal(column.change), (size, height), **beside)
        axes.set_yticks(heights, [literal(column.name) for column in columns])
        axes.set_xlim(0.0, 1.6 * max([*sizes, 2.0]))
        axes.set_xlabel("-log10 of the p-value, adjusted for the number of columns")
        moved, shown = len(self.drift.moved_columns), len(self.drift.columns)
        axes.set_title(f"{moved} of {shown} columns moved, {self.drift.rows[1]} new rows", loc="left")
        axes.legend(frameon=False, loc="lower right")
        return self


# -- The distribution of the p-values of rows under the density p(x) of a model ------------------------------

SURPRISING = 0.01
"""The title counts the rows whose p-value is at most this."""
BINS = 20


class SurpriseDisplay(Display):
    """Histogram of the p-values of rows under p(x). They are uniform for rows of the same distribution as the training rows.

    Make it with `from_estimator` or `from_surprise`.

    Parameters
    ----------
    surprise : calibayes.trust.Surprise
    name : str, optional

    Attributes
    ----------
    counts : (20,) integers
        Number of rows in each of 20 equal ranges of the p-value.
    bars_, expected_ : matplotlib artists
        The histogram, and the line at the number of rows expected under a uniform distribution.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.datasets import load
    >>> from calibayes.plots import SurpriseDisplay
    >>> from sklearn.model_selection import train_test_split
    >>> X, X_new, y, y_new = train_test_split(*load("penguins", return_X_y=True), random_state=0, test_size=0.5)
    >>> model = NaiveBayes(rule="ml").fit(X, y)
    >>> display = SurpriseDisplay.from_estimator(model, X_new)
    >>> int(display.counts.sum())
    172
    """

    def __init__(self, surprise: Surprise, *, name: str | None = None) -> None:
        self.surprise, self.name = surprise, name
        self.counts = np.histogram(surprise.p_value, bins=BINS, range=(0.0, 1.0))[0]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, name: str | None = None, ax: Any = None, **kwargs: Any
    ) -> SurpriseDisplay:
        """Draw the p-values of rows by the method `surprise` of a generative classifier.

        Parameters
        ----------
        estimator : fitted classifier of this package with a density
        X : rows that it was not trained on
        name : str, optional
            For the legend; by default the name of the class of the estimator.
        ax : matplotlib axes, optional
        **kwargs
            For the bars, as in ``matplotlib.axes.Axes.bar``.

        Returns
        -------
        SurpriseDisplay
        """
        label = type(estimator).__name__ if name is None else name
        return cls.from_surprise(estimator.surprise(X), name=label, ax=ax, **kwargs)

    @classmethod
    def from_surprise(
        cls, surprise: Surprise, *, name: str | None = None, ax: Any = None, **kwargs: Any
    ) -> SurpriseDisplay:
        """Draw the result of `surprise`."""
        return cls(surprise, name=name).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> SurpriseDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        axes, name = self.draw_on(ax, 4.0), self.name if name is None else name
        n, width = len(self.surprise.p_value), 1 / BINS
        options = {"color": MAIN, "width": width, "align": "edge", "edgecolor": "white"}
        label = legend_label("rows" if name is None else name)
        self.bars_ = axes.bar(np.arange(BINS) * width, self.counts, **{**options, "label": label, **kwargs})
        expected = "expected for rows like the training rows"
        self.expected_ = axes.axhline(n * width, linestyle="--", label=expected, **REFERENCE)
        few = int((self.surprise.p_value <= SURPRISING).sum())
        axes.set(xlim=(0.0, 1.0), xlabel="p-value of the row under p(x)", ylabel="rows")
        axes.set_ylim(0.0, 1.3 * max(float(self.counts.max()), n * width))  # room for the legend
        axes.set_title(
            f"{few} of {n} rows have p of {SURPRISING:g} or less ({n * SURPRISING:.1f} expected)", loc="left"
        )
        axes.legend(frameon=False, loc="upper right")
        return self

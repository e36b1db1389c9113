"""Stacked bars of how much each member of an ensemble contributes to the decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.ensemble.estimator import PosteriorAverage
from calibayes.estimators.ensemble.fitted import FREQUENCIES, TREES
from calibayes.plots.display import Display, legend_label, literal


class MembersDisplay(Display):
    """For each predicted class, the mean share of each member of an ensemble in the probability of that class.

    Classes that are predicted for no row are omitted. Make it with `from_estimator`.

    Parameters
    ----------
    shares : (c, members) array
        Mean shares by predicted class.
    classes : c names
    rows : (c,) integers
        Rows that each class is predicted for.
    members : names of the members

    Attributes
    ----------
    bars_ : list of matplotlib containers
        One for each member.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes import BayesClassifier
    >>> from calibayes.plots import MembersDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> display = MembersDisplay.from_estimator(BayesClassifier().fit(X, y), X)
    >>> display.rows.sum(), display.shares.sum(axis=1).round(6).tolist()
    (np.int64(150), [1.0, 1.0, 1.0])
    """

    def __init__(
        self, shares: Array, *, classes: tuple[str, ...], rows: Array, members: tuple[str, ...]
    ) -> None:
        self.shares, self.classes, self.rows, self.members = shares, classes, rows, members

    @classmethod
    def from_estimator(
        cls, estimator: PosteriorAverage, X: Any, *, ax: Any = None, **kwargs: Any
    ) -> MembersDisplay:
        """Draw the shares of the members in the predictions for these rows; ``kwargs`` are for the bars (``barh``)."""
        shares, predicted = estimator.shares(X), np.argmax(estimator.predict_proba(X), axis=1)
        present, rows = np.unique(predicted, return_counts=True)
        means = np.stack([shares[predicted == code].mean(axis=0) for code in present])
        trees = () if estimator.fitted_.grown is None else (TREES,)
        members = (*estimator.models_, FREQUENCIES, *trees)
        classes = tuple(str(estimator.classes_[code]) for code in present)
        return cls(means, classes=classes, rows=rows, members=members).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> MembersDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        axes, self.bars_ = self.draw_on(ax, 1.5 + 0.35 * len(self.classes)), []
        heights, left = np.arange(len(self.classes))[::-1], np.zeros(len(self.classes))
        for number, name in enumerate(self.members):
            options = {"color": f"C{number % 10}", "label": legend_label(name), **kwargs}
            self.bars_.append(axes.barh(heights, self.shares[:, number], left=left, **options))
            left = left + self.shares[:, number]
        axes.set_yticks(
            heights, [literal(f"{name} ({n})") for name, n in zip(self.classes, self.rows, strict=True)]
        )
        axes.set_xlim(0.0, 1.0)
        axes.set_xlabel("share in the probability of the predicted class")
        axes.set_title(f"Contribution of the members, mean over {self.rows.sum()} rows", loc="left")
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return self


def plot_members(model: PosteriorAverage, X: Any, *, ax: Any = None) -> Any:
    """Draw the shares of the members of an ensemble (`MembersDisplay`); returns the axes.

    Examples
    --------
    >>> from calibayes import GaussianNB, LinearDiscriminantAnalysis, PosteriorMixture
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [("nb", GaussianNB(rule="ml")), ("lda", LinearDiscriminantAnalysis(rule="ml"))]
    >>> axes = plot_members(PosteriorMixture(models=members).fit(X, y), X)
    """
    return MembersDisplay.from_estimator(model, X, ax=ax).ax_

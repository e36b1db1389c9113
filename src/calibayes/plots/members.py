"""Stacked bars of how much each member of an ensemble contributes to the decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.estimators.ensemble.estimator import PosteriorAverage
from calibayes.estimators.ensemble.fitted import FREQUENCIES, TREES
from calibayes.plots.axes import axes_or_new


def plot_members(model: PosteriorAverage, X: Any, *, ax: Any = None) -> Any:
    """For each predicted class, the mean share of each member in the probability of that class.

    Classes that are predicted for no row are omitted. Returns the axes.

    Examples
    --------
    >>> from calibayes import GaussianNB, LinearDiscriminantAnalysis, PosteriorMixture
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [("nb", GaussianNB(rule="ml")), ("lda", LinearDiscriminantAnalysis(rule="ml"))]
    >>> axes = plot_members(PosteriorMixture(models=members).fit(X, y), X)
    """
    shares, predicted = model.shares(X), np.argmax(model.predict_proba(X), axis=1)
    present = np.unique(predicted)
    means = np.stack([shares[predicted == code].mean(axis=0) for code in present])
    axes = axes_or_new(ax, 1.5 + 0.35 * len(present))
    heights, left = np.arange(len(present))[::-1], np.zeros(len(present))
    trees = () if model.fitted_.grown is None else (TREES,)
    for number, name in enumerate((*model.models_, FREQUENCIES, *trees)):
        axes.barh(heights, means[:, number], left=left, color=f"C{number % 10}", label=name)
        left = left + means[:, number]
    labels = [f"{model.classes_[code]} ({np.sum(predicted == code)})" for code in present]
    axes.set_yticks(heights, labels)
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("share in the probability of the predicted class")
    axes.set_title(f"Contribution of the members, mean over {len(predicted)} rows", loc="left")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.spines[["top", "right"]].set_visible(False)
    return axes

"""Bar plots of explanations: contributions to the log odds."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.estimators.interface.explanation import Explanation
from calibayes.plots.axes import axes_or_new

FOR, AGAINST = "#2a78b5", "#c0504d"


def plot_reasons(explanation: Explanation, row: int = 0, *, most: int = 12, ax: Any = None) -> Any:
    """Bars of the contributions for and against the predicted class of one row, the ``most`` largest on top.

    If orders of the columns were sampled, lines show one standard error to either side; the bar of all other columns has
    none. Returns the axes; ``axes.figure.savefig(...)`` saves the plot.

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.datasets import load_penguins
    >>> X, y = load_penguins(return_X_y=True)
    >>> axes = plot_reasons(NaiveBayes(rule="ml").fit(X, y).explain(X), row=3)
    """
    row_contributions = explanation.contributions[row]
    order = np.argsort(-np.abs(row_contributions), kind="stable")
    names = [explanation.names[j] for j in order[:most]]
    contributions = row_contributions[order[:most]]
    errors = explanation.standard_error[row, order[:most]]
    if len(order) > most:
        names.append(f"{len(order) - most} others")
        contributions = np.append(contributions, row_contributions[order[most:]].sum())
        errors = np.append(errors, 0.0)
    axes = axes_or_new(ax, 1.2 + 0.3 * len(names))
    heights = np.arange(len(names))[::-1]
    axes.barh(heights, contributions, color=[FOR if value >= 0 else AGAINST for value in contributions])
    shown = errors > 0
    if shown.any():
        axes.errorbar(
            contributions[shown], heights[shown], xerr=errors[shown], fmt="none", ecolor="black", capsize=2
        )
    axes.set_yticks(heights, names)
    axes.axvline(0.0, color="black", linewidth=0.8)
    note = f" (lines: standard errors, {explanation.permutations} permutations)" if shown.any() else ""
    axes.set_xlabel(f"contribution to the log odds{note}")
    odds = explanation.log_odds[row]
    axes.set_title(
        f"{explanation.chosen[row]} rather than {explanation.other[row]}: log odds {odds:.2f}", loc="left"
    )
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def plot_overall(explanation: Explanation, *, most: int = 20, ax: Any = None) -> Any:
    """Bars of the mean absolute contribution of each column to the log odds, the ``most`` largest on top.

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.datasets import load_penguins
    >>> X, y = load_penguins(return_X_y=True)
    >>> axes = plot_overall(NaiveBayes(rule="ml").fit(X, y).explain(X))
    """
    sizes = dict(list(explanation.overall().items())[:most])
    axes = axes_or_new(ax, 1.2 + 0.3 * len(sizes))
    heights = np.arange(len(sizes))[::-1]
    axes.barh(heights, list(sizes.values()), color=FOR)
    axes.set_yticks(heights, list(sizes))
    axes.set_xlabel("mean absolute contribution to the log odds")
    axes.set_title(f"Contribution of the columns, mean over {len(explanation.chosen)} rows", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    return axes

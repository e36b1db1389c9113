"""Why this class, as bars."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.estimators.explaining import Explanation
from calibayes.plots.axes import axes_or_new

FOR, AGAINST = "#2a78b5", "#c0504d"


def plot_reasons(explanation: Explanation, row: int = 0, *, most: int = 12, ax: Any = None) -> Any:
    """What speaks for and against the chosen class of one row, the largest contributions on top.

    Returns the axes; ``axes.figure.savefig(...)`` writes the picture.
    """
    values = explanation.contributions[row]
    order = np.argsort(-np.abs(values), kind="stable")
    names = [explanation.names[j] for j in order[:most]]
    shown = values[order[:most]]
    if len(order) > most:
        names.append(f"{len(order) - most} others")
        shown = np.append(shown, values[order[most:]].sum())
    axes = axes_or_new(ax, 1.2 + 0.3 * len(names))
    places = np.arange(len(names))[::-1]
    axes.barh(places, shown, color=[FOR if value >= 0 else AGAINST for value in shown])
    axes.set_yticks(places, names)
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_xlabel("contribution to the log odds")
    odds = explanation.log_odds[row]
    axes.set_title(
        f"{explanation.chosen[row]} rather than {explanation.other[row]}: log odds {odds:.2f}", loc="left"
    )
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def plot_overall(explanation: Explanation, *, most: int = 20, ax: Any = None) -> Any:
    """How much each column moves the log odds on average over the rows."""
    sizes = dict(list(explanation.overall().items())[:most])
    axes = axes_or_new(ax, 1.2 + 0.3 * len(sizes))
    places = np.arange(len(sizes))[::-1]
    axes.barh(places, list(sizes.values()), color=FOR)
    axes.set_yticks(places, list(sizes))
    axes.set_xlabel("mean absolute contribution to the log odds")
    axes.set_title(f"What decides, over {len(explanation.chosen)} rows", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    return axes

"""The critical-difference diagram of average ranks (Demsar 2006)."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.plots.axes import axes_or_new
from calibayes.ranks import RankSummary

LABEL_X = 0.8
"""x of the labels left of the axis, whose first rank is 1; the labels on the right mirror it."""
LETTER_WIDTH = 0.017
"""Approximate width of a letter as a share of the axis."""


def plot_ranks(summary: RankSummary, *, ax: Any = None) -> Any:
    """Plot methods at their average ranks; bars join those within the critical difference. Returns the axes.

    Examples
    --------
    >>> from calibayes.ranks import rank_summary
    >>> errors = [[0.10, 0.12, 0.15], [0.20, 0.21, 0.22], [0.05, 0.04, 0.09], [0.30, 0.33, 0.35]]
    >>> axes = plot_ranks(rank_summary(errors, ["A", "B", "C"]))
    """
    order = np.argsort(summary.average_ranks, kind="stable")
    ranks, k = summary.average_ranks[order], len(order)
    axes = axes_or_new(ax, 1.5 + 0.3 * k)
    label_width = LETTER_WIDTH * k * max(len(name) + len(" (1.00)") for name in summary.names)
    axes.set_xlim(LABEL_X - label_width, k + 1 - LABEL_X + label_width)
    bars = indistinguishable_groups(ranks, summary.critical_difference)
    below = 0.1 * max(len(bars) - 2, 0)  # labels begin below the last bar
    axes.set_ylim(-0.6 - below - 0.5 * ((k + 1) // 2), 1.0)
    axes.hlines(0.0, 1, k, color="black", linewidth=0.8)
    axes.vlines(range(1, k + 1), -0.05, 0.05, color="black", linewidth=0.8)
    for rank in range(1, k + 1):
        axes.text(rank, 0.15, str(rank), ha="center", va="bottom")
    for number, (method, average) in enumerate(zip(order, ranks, strict=True)):
        _label(axes, summary.names[method], float(average), number, k, below)
    for height, (left, right) in enumerate(bars):
        axes.hlines(-0.12 - 0.1 * height, left - 0.03, right + 0.03, color="#2a78b5", linewidth=3)
    axes.hlines(0.75, 1, 1 + summary.critical_difference, color="#2a78b5", linewidth=1.5)
    axes.text(1, 0.8, f"critical difference {summary.critical_difference:.2f}", va="bottom")
    axes.set_axis_off()
    return axes


def _label(axes: Any, name: str, rank: float, number: int, k: int, below: float) -> None:
    """Label a method: the better half on the left, the others on the right."""
    left = number < (k + 1) // 2
    depth = -below - 0.5 * (1 + (number if left else k - 1 - number))
    side = LABEL_X if left else k + 1 - LABEL_X
    axes.plot([rank, rank, side], [0.0, depth, depth], color="black", linewidth=0.8)
    axes.text(side, depth, f"{name} ({rank:.2f}) " if left else f" {name} ({rank:.2f})", **_alignment(left))


def _alignment(left: bool) -> dict[str, str]:
    return {"ha": "right" if left else "left", "va": "center"}


def indistinguishable_groups(ranks: Any, difference: float) -> list[tuple[float, float]]:
    """First and last rank of each longest run of sorted ranks within ``difference``; runs of one rank are omitted."""
    spans = [(low, max(high for high in ranks if high - low <= difference)) for low in ranks]
    wide = [(float(low), float(high)) for low, high in spans if high > low]
    return [
        span for number, span in enumerate(wide) if not any(other[1] >= span[1] for other in wide[:number])
    ]

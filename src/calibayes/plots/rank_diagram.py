"""The critical-difference diagram of average ranks (Demsar 2006)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibayes.plots.figures import MAIN, Display, literal
from calibayes.ranks import RankSummary, rank_summary

LABEL_X = 0.8
"""x of the labels on the left, where rank 1 is at x = 1; those on the right are placed symmetrically."""
LETTER_WIDTH = 0.017
"""Approximate width of a letter as a share of the axis."""


class RankDisplay(Display):
    """Critical-difference diagram: methods at their average ranks; bars join those within the critical difference.

    Make it with `from_summary` or `from_errors`.

    Parameters
    ----------
    summary : calibayes.ranks.RankSummary

    Attributes
    ----------
    labels_ : list of matplotlib texts
        Names and average ranks, the best first.
    bars_ : list of matplotlib artists
        Bars of methods that do not differ significantly.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes.plots import RankDisplay
    >>> errors = [[0.30, 0.20, 0.25], [0.40, 0.31, 0.33], [0.10, 0.05, 0.07], [0.22, 0.20, 0.21]]
    >>> display = RankDisplay.from_errors(errors, ["ML", "RC", "GD"])
    >>> [label.get_text().strip() for label in display.labels_]
    ['RC (1.00)', 'GD (2.00)', 'ML (3.00)']
    """

    def __init__(self, summary: RankSummary) -> None:
        self.summary = summary

    @classmethod
    def from_summary(cls, summary: RankSummary, *, ax: Any = None, **kwargs: Any) -> RankDisplay:
        """Draw the result of `calibayes.ranks.rank_summary`; ``kwargs`` are for the bars, as in ``hlines``."""
        return cls(summary).plot(ax=ax, **kwargs)

    @classmethod
    def from_errors(
        cls, errors: Any, names: Sequence[str], *, level: float = 0.05, ax: Any = None, **kwargs: Any
    ) -> RankDisplay:
        """Draw the ranks of errors, (data sets, methods), of named methods; lower is better."""
        return cls.from_summary(rank_summary(errors, names, level=level), ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> RankDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        summary, k = self.summary, len(self.summary.names)
        order = np.argsort(summary.average_ranks, kind="stable")
        ranks = summary.average_ranks[order]
        axes = self.draw_on(ax, 1.5 + 0.3 * k)
        groups = indistinguishable_groups(ranks, summary.critical_difference)
        below = 0.1 * max(len(groups) - 2, 0)  # labels begin below the last bar
        _draw_scale(axes, summary, below)
        self.labels_ = [
            _label(axes, literal(summary.names[method]), float(average), number, k, below)
            for number, (method, average) in enumerate(zip(order, ranks, strict=True))
        ]
        options = {"color": MAIN, "linewidth": 3, **kwargs}
        self.bars_ = [
            axes.hlines(-0.12 - 0.1 * height, left - 0.03, right + 0.03, **options)
            for height, (left, right) in enumerate(groups)
        ]
        return self


def plot_ranks(summary: RankSummary, *, ax: Any = None) -> Any:
    """Draw average ranks and the critical difference (`RankDisplay`); returns the axes.

    Examples
    --------
    >>> from calibayes.ranks import rank_summary
    >>> errors = [[0.10, 0.12, 0.15], [0.20, 0.21, 0.22], [0.05, 0.04, 0.09], [0.30, 0.33, 0.35]]
    >>> axes = plot_ranks(rank_summary(errors, ["A", "B", "C"]))
    """
    return RankDisplay.from_summary(summary, ax=ax).ax_


def _draw_scale(axes: Any, summary: RankSummary, below: float) -> None:
    """The axis of ranks, and the length of the critical difference above it."""
    k = len(summary.names)
    label_width = LETTER_WIDTH * k * max(len(name) + len(" (1.00)") for name in summary.names)
    axes.set_xlim(LABEL_X - label_width, k + 1 - LABEL_X + label_width)
    axes.set_ylim(-0.6 - below - 0.5 * ((k + 1) // 2), 1.0)
    axes.hlines(0.0, 1, k, color="black", linewidth=0.8)
    axes.vlines(range(1, k + 1), -0.05, 0.05, color="black", linewidth=0.8)
    for rank in range(1, k + 1):
        axes.text(rank, 0.15, str(rank), ha="center", va="bottom")
    axes.hlines(0.75, 1, 1 + summary.critical_difference, color=MAIN, linewidth=1.5)
    axes.text(1, 0.8, f"critical difference {summary.critical_difference:.2f}", va="bottom")
    axes.set_axis_off()


def _label(axes: Any, name: str, rank: float, number: int, k: int, below: float) -> Any:
    """Label a method: the better half on the left, the others on the right."""
    left = number < (k + 1) // 2
    depth = -below - 0.5 * (1 + (number if left else k - 1 - number))
    side = LABEL_X if left else k + 1 - LABEL_X
    axes.plot([rank, rank, side], [0.0, depth, depth], color="black", linewidth=0.8)
    label = f"{name} ({rank:.2f}) " if left else f" {name} ({rank:.2f})"
    return axes.text(side, depth, label, ha="right" if left else "left", va="center")


def indistinguishable_groups(ranks: Any, difference: float) -> list[tuple[float, float]]:
    """First and last rank of each longest run of sorted ranks within ``difference``; runs of one rank are omitted."""
    spans = [(low, max(high for high in ranks if high - low <= difference)) for low in ranks]
    wide = [(float(low), float(high)) for low, high in spans if high > low]
    return [span for j, span in enumerate(wide) if all(other[1] < span[1] for other in wide[:j])]

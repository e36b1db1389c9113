"""Box plots in panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibayes.plots.axes import new_figure


def boxes(panels: Mapping[str, Mapping[str, Sequence[float]]], *, y: str, columns: int = 4) -> Any:
    """Box plots: a panel for each title and in it a box for each name; returns the figure."""
    grid_rows = -(-len(panels) // columns)
    figure = new_figure(3.2 * min(columns, len(panels)), 2.6 * grid_rows)
    axes = figure.subplots(grid_rows, min(columns, len(panels)), squeeze=False).ravel()
    for ax, (title, values) in zip(axes, panels.items(), strict=False):
        ax.boxplot([list(sample) for sample in values.values()], widths=0.6, medianprops={"color": "#2a78b5"})
        ax.set_xticks(range(1, len(values) + 1), list(values), rotation=60, fontsize=7)
        ax.set_title(title, loc="left", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    figure.supylabel(y, fontsize=9)
    return figure

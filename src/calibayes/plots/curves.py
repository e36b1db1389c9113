"""Curves in panels: errors over iterations, losses along a path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibayes.core.protocols import Array
from calibayes.plots.axes import new_figure

Curves = Mapping[str, tuple[Array, Array]]
"""Label -> places and values."""


def panels(content: Mapping[str, Curves], *, columns: int, x: str, y: str) -> Any:
    """A figure with a panel for each title, its curves labeled; returns the figure."""
    rows = -(-len(content) // columns)
    figure = new_figure(3.2 * columns + 0.6, 2.6 * rows + 0.4)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, (title, curves) in zip(grid.flat, content.items(), strict=False):
        for label, (places, values) in curves.items():
            axes.plot(
                places, values, label=label or None, marker="o" if len(places) < 20 else None, markersize=3
            )
        axes.set_title(title, loc="left", fontsize="medium")
        axes.spines[["top", "right"]].set_visible(False)
        if any(curves):
            axes.legend(frameon=False, fontsize="small")
    figure.supxlabel(x, fontsize="medium")
    figure.supylabel(y, fontsize="medium")
    return figure

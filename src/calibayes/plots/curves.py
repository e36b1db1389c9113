"""Line plots in panels, such as errors over iterations or losses along a path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibayes.core.protocols import Array
from calibayes.plots.axes import new_figure
from calibayes.plots.display import legend_label, literal

Curves = Mapping[str, tuple[Array, Array]]
"""Label -> x and y values."""


def panels(content: Mapping[str, Curves], *, columns: int, x: str, y: str) -> Any:
    """Line plots: a panel for each title and in it a labeled curve for each entry; returns the figure.

    Examples
    --------
    >>> figure = panels({"iris": {"RC": ([0, 1, 2], [0.06, 0.04, 0.03])}}, columns=1, x="iteration", y="error")
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['iris']
    """
    rows = -(-len(content) // columns)
    figure = new_figure(3.2 * columns + 0.6, 2.6 * rows + 0.4)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, (title, curves) in zip(grid.flat, content.items(), strict=False):
        for label, (x_values, y_values) in curves.items():
            axes.plot(
                x_values,
                y_values,
                label=legend_label(label) if label else None,
                marker="o" if len(x_values) < 20 else None,
                markersize=3,
            )
        axes.set_title(literal(title), loc="left", fontsize="medium")
        axes.spines[["top", "right"]].set_visible(False)
        if any(curves):
            axes.legend(frameon=False, fontsize="small")
    for axes in grid.flat[len(content) :]:
        axes.set_axis_off()
    figure.supxlabel(x, fontsize="medium")
    figure.supylabel(y, fontsize="medium")
    return figure

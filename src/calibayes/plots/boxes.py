"""Box plots in panels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from calibayes.plots.axes import new_figure
from calibayes.plots.display import literal

STYLE = {"widths": 0.6, "medianprops": {"color": "#2a78b5"}}
SUMMARY = ("whislo", "q1", "med", "q3", "whishi")
"""Keys of the numbers of a box in ``Axes.bxp``: lower whisker, first quartile, median, third quartile, upper whisker."""


def boxes(panels: Mapping[str, Mapping[str, Sequence[float]]], *, y: str, columns: int = 4) -> Any:
    """Box plots: a panel for each title and in it a box for each name; returns the figure.

    Examples
    --------
    >>> figure = boxes({"iris": {"NB": [0.04, 0.06, 0.05], "LDA": [0.02, 0.02, 0.04]}}, y="error")
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['iris']
    """

    def draw(ax: Any, samples: list[list[float]]) -> None:
        ax.boxplot(samples, **STYLE)

    return _in_panels(panels, draw, y, columns)


def summary_boxes(panels: Mapping[str, Mapping[str, Sequence[float]]], *, y: str, columns: int = 4) -> Any:
    """Box plots like those of `boxes`, from summaries: the five numbers of `SUMMARY` in this order, then the outliers."""

    def draw(ax: Any, summaries: list[list[float]]) -> None:
        stats = [dict(zip(SUMMARY, each[:5], strict=True)) | {"fliers": each[5:]} for each in summaries]
        ax.bxp(stats, **STYLE)

    return _in_panels(panels, draw, y, columns)


def _in_panels(
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    draw: Callable[[Any, list[list[float]]], None],
    y: str,
    columns: int,
) -> Any:
    """A panel for each title, in which ``draw`` draws the values of all names; returns the figure."""
    grid_rows = -(-len(panels) // columns)
    figure = new_figure(3.2 * min(columns, len(panels)), 2.6 * grid_rows)
    axes = figure.subplots(grid_rows, min(columns, len(panels)), squeeze=False).ravel()
    for ax, (title, values) in zip(axes, panels.items(), strict=False):
        draw(ax, [list(sample) for sample in values.values()])
        ax.set_xticks(range(1, len(values) + 1), [literal(name) for name in values], rotation=60, fontsize=7)
        ax.set_title(literal(title), loc="left", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    figure.supylabel(y, fontsize=9)
    return figure

"""Figures and axes of matplotlib, the base class of displays, and plots in panels."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from typing import Any

from calibayes.core.protocols import Array

# -- Create matplotlib figures and axes ----------------------------------------------------------------------


def new_figure(width: float, height: float) -> Any:
    """An empty figure of this size in inches. Raises ImportError if matplotlib is not installed.

    If pyplot has been imported, or in a notebook or an IPython shell, it is a figure of pyplot, which ``pyplot.show()`` and
    notebooks display. Otherwise pyplot has no reference to it: it can be saved to a file and need not be closed.
    """
    size: dict[str, Any] = {"figsize": (width, height), "layout": "constrained"}
    try:
        if "matplotlib.pyplot" in sys.modules or "IPython" in sys.modules:
            return import_module("matplotlib.pyplot").figure(**size)
        return import_module("matplotlib.figure").Figure(**size)
    except ImportError as error:
        problem = "plots need matplotlib, which is not installed"
        raise ImportError(f"{problem}: pip install matplotlib") from error


def axes_or_new(ax: Any, height: float) -> Any:
    """``ax`` if it is given, else the axes of a new figure."""
    return new_figure(7.0, height).subplots() if ax is None else ax


# -- The base class of displays, which follow the conventions of scikit-learn's Displays ---------------------
#
# A display holds the numbers of a plot. It is made by a class method (``from_estimator``, ``from_predictions`` or one named after a
# result), which also draws it. ``display.plot(ax=...)`` draws it again, for example on the axes of another display. ``ax_`` and
# ``figure_`` are the axes and the figure of the last call of `plot`.

MAIN, SECOND, QUIET = "#2a78b5", "#c0504d", "#777777"
"""Colors of the main artists, of values of the opposite sign or meaning, and of reference lines."""
REFERENCE = {"color": QUIET, "linewidth": 1}
"""Style of reference lines."""


class Display:
    """Base class of displays; ``ax_`` and ``figure_`` are those of the last call of `plot`."""

    ax_: Any
    figure_: Any

    def draw_on(self, ax: Any, height: float) -> Any:
        """Set ``ax_`` and ``figure_`` and return the axes: ``ax``, or those of a new figure of this height in inches."""
        self.ax_ = axes_or_new(ax, height)
        self.figure_ = self.ax_.figure
        self.ax_.spines[["top", "right"]].set_visible(False)
        return self.ax_


def literal(text: Any) -> str:
    """Text that matplotlib shows unchanged: dollar signs do not begin a formula.

    >>> print(literal("$ 5 to $ 9"))
    \\$ 5 to \\$ 9
    """
    return str(text).replace("$", r"\$")


def legend_label(text: Any) -> str:
    """`literal` text for a legend. matplotlib leaves out labels that begin with an underscore: these get a space before it.

    >>> legend_label("_id")
    ' _id'
    """
    label = literal(text)
    return f" {label}" if label.startswith("_") else label


# -- Line plots in panels, such as errors over iterations or losses along a path -----------------------------

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
    figure, grid = _grid(content, columns, (0.6, 0.4), "medium")
    for axes, curves in zip(grid, content.values(), strict=True):
        for label, (x_values, y_values) in curves.items():
            named = {"label": legend_label(label) if label else None}
            marked = {"marker": "o" if len(x_values) < 20 else None, "markersize": 3}
            axes.plot(x_values, y_values, **named, **marked)
        if any(curves):
            axes.legend(frameon=False, fontsize="small")
    figure.supxlabel(x, fontsize="medium")
    figure.supylabel(y, fontsize="medium")
    return figure


def _grid(
    titles: Collection[str], columns: int, margins: tuple[float, float], fontsize: float | str
) -> tuple[Any, list[Any]]:
    """A new figure, and axes in it for each title."""
    rows = -(-len(titles) // columns)
    figure = new_figure(3.2 * columns + margins[0], 2.6 * rows + margins[1])
    grid = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axes, title in zip(grid, titles, strict=False):
        axes.set_title(literal(title), loc="left", fontsize=fontsize)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[len(titles) :]:
        axes.set_axis_off()
    return figure, grid[: len(titles)]


# -- Box plots in panels -------------------------------------------------------------------------------------

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

    return _in_panels(panels, lambda ax, samples: ax.boxplot(samples, **STYLE), y, columns)


def summary_boxes(panels: Mapping[str, Mapping[str, Sequence[float]]], *, y: str, columns: int = 4) -> Any:
    """Box plots like those of `boxes`, from summaries: the five numbers of `SUMMARY` in this order, then the outliers."""

    def draw(ax: Any, summaries: list[list[float]]) -> None:
        stats = [dict(zip(SUMMARY, each[:5], strict=True)) | {"fliers": each[5:]} for each in summaries]
        ax.bxp(stats, **STYLE)

    return _in_panels(panels, draw, y, columns)


def _in_panels(
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    draw: Callable[[Any, list[list[float]]], object],
    y: str,
    columns: int,
) -> Any:
    """A panel for each title, in which ``draw`` draws the values of all names; returns the figure."""
    figure, grid = _grid(panels, min(columns, len(panels)), (0.0, 0.0), 9)
    for ax, values in zip(grid, panels.values(), strict=True):
        draw(ax, [list(sample) for sample in values.values()])
        ax.set_xticks(range(1, len(values) + 1), [literal(name) for name in values], rotation=60, fontsize=7)
    figure.supylabel(y, fontsize=9)
    return figure

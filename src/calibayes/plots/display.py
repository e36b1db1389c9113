"""The base class of displays, which follow the conventions of scikit-learn's Displays.

A display holds the numbers of a plot. It is made by a class method (``from_estimator``, ``from_predictions`` or one named after a
result), which also draws it. ``display.plot(ax=...)`` draws it again, for example on the axes of another display. ``ax_`` and
``figure_`` are the axes and the figure of the last call of `plot`.
"""

from __future__ import annotations

from typing import Any

from calibayes.plots.axes import axes_or_new

MAIN, SECOND, QUIET = "#2a78b5", "#c0504d", "#777777"
"""Colors of the main artists, of values of the opposite sign or meaning, and of reference lines."""


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

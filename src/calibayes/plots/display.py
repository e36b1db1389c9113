"""What displays share: they hold what is drawn, and `plot` draws it, as scikit-learn's Displays do.

A display is made by a class method (``from_estimator``, ``from_predictions`` or one named after a result), which also draws it.
``display.plot(ax=...)`` draws it again, for example beside another one. ``ax_`` and ``figure_`` are the axes and the figure of the
last drawing.
"""

from __future__ import annotations

from typing import Any

from calibayes.plots.axes import axes_or_new

MAIN, SECOND, QUIET = "#2a78b5", "#c0504d", "#777777"
"""Colors of what is shown, of what is against it, and of lines for comparison."""


class Display:
    """A drawing of results; ``ax_`` and ``figure_`` are those of its last `plot`."""

    ax_: Any
    figure_: Any

    def draw_on(self, ax: Any, height: float) -> Any:
        """The axes to draw on: those given, else those of a new figure of this height in inches."""
        self.ax_ = axes_or_new(ax, height)
        self.figure_ = self.ax_.figure
        self.ax_.spines[["top", "right"]].set_visible(False)
        return self.ax_


def literal(text: Any) -> str:
    """Text that matplotlib shows as it is: dollar signs are no formula.

    >>> print(literal("$ 5 to $ 9"))
    \\$ 5 to \\$ 9
    """
    return str(text).replace("$", r"\$")

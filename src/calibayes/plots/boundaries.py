"""Decision boundaries over two columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.plots.axes import axes_or_new

Score = Callable[[Array], Array]
"""Rows (n, 2) -> scores (n,) whose sign is the decision."""

LINES = (("#c0504d", "solid"), ("black", "dashed"), ("#2a78b5", "dotted"))


def plot_boundaries(columns: Array, target: Array, scores: dict[str, Score], *, ax: Any = None) -> Any:
    """Scatter plot of the rows, colored by class, with the line where each score is zero; returns the axes."""
    axes = axes_or_new(ax, 5.0)
    for label, color in zip(np.unique(target), ("#7fa8d1", "#e0a35c", "#88b988", "#b58fc2"), strict=False):
        class_rows = columns[target == label]
        axes.scatter(class_rows[:, 0], class_rows[:, 1], s=8, color=color, linewidths=0)
    low, high = columns.min(axis=0), columns.max(axis=0)
    x, y = np.meshgrid(np.linspace(low[0], high[0], 200), np.linspace(low[1], high[1], 200))
    grid = np.stack([x.ravel(), y.ravel()], axis=1)
    for (name, score), (color, style) in zip(scores.items(), LINES, strict=False):
        axes.contour(x, y, score(grid).reshape(x.shape), levels=[0.0], colors=color, linestyles=style)
        axes.plot([], [], color=color, linestyle=style, label=name)
    axes.legend(frameon=False, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    return axes

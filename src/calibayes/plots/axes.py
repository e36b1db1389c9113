"""Axes to draw on."""

from __future__ import annotations

from typing import Any


def new_figure(width: float, height: float) -> Any:
    """A figure of some size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'calibayes[plots]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def axes_or_new(ax: Any, height: float) -> Any:
    """The axes given, or those of a new figure."""
    return new_figure(7.0, height).subplots() if ax is None else ax

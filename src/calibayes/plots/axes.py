"""Create matplotlib figures and axes."""

from __future__ import annotations

from typing import Any


def new_figure(width: float, height: float) -> Any:
    """An empty figure of this size in inches. Raises ImportError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib, which is not installed: pip install 'calibayes[plots]'"
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def axes_or_new(ax: Any, height: float) -> Any:
    """``ax`` if it is given, else the axes of a new figure."""
    return new_figure(7.0, height).subplots() if ax is None else ax

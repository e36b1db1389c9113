"""Axes to draw on."""

from __future__ import annotations

from typing import Any


def axes_or_new(ax: Any, height: float) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'calibayes[plots]'") from error
    return Figure(figsize=(7.0, height), layout="constrained").subplots()

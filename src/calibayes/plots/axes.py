"""Create matplotlib figures and axes."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


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
        raise ImportError(
            "plots need matplotlib, which is not installed: pip install 'calibayes[plots]'"
        ) from error


def axes_or_new(ax: Any, height: float) -> Any:
    """``ax`` if it is given, else the axes of a new figure."""
    return new_figure(7.0, height).subplots() if ax is None else ax

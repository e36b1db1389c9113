"""Dependence of pairs of columns as a heat map."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.dependence import Dependence
from calibayes.plots.axes import axes_or_new


def plot_dependence(table: Dependence, label: Any = None, *, ax: Any = None) -> Any:
    """The statistic of every pair of columns within one class; returns the axes.

    Parameters
    ----------
    table : Dependence
        As `calibayes.measure_dependence` gives it.
    label : optional
        The class; by default the first.
    ax : axes, optional
    """
    if label is not None and label not in table.classes:
        raise ValueError(f"there is no class {label!r}; the classes are {', '.join(map(str, table.classes))}")
    place = 0 if label is None else table.classes.index(label)
    values = np.array(table.statistics[place], dtype=np.float64)
    np.fill_diagonal(values, np.nan)
    signed = bool(np.nanmin(values, initial=0.0) < 0)
    most = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    axes = axes_or_new(ax, 6.0)
    image = axes.imshow(
        values, cmap="RdBu_r" if signed else "Blues", vmin=-most if signed else 0.0, vmax=most
    )
    if len(table.names) <= 40:
        axes.set_xticks(range(len(table.names)), table.names, rotation=90)
        axes.set_yticks(range(len(table.names)), table.names)
    axes.figure.colorbar(image, ax=axes, label=table.measure)
    axes.set_title(f"{table.measure} within {table.classes[place]}", loc="left")
    return axes

"""Heat map of the dependence of all pairs of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.dependence import Dependence
from calibayes.plots.axes import axes_or_new
from calibayes.plots.display import literal


def plot_dependence(table: Dependence, label: Any = None, *, ax: Any = None) -> Any:
    """Heat map of the statistic of every pair of columns within one class; returns the axes.

    Parameters
    ----------
    table : Dependence
        Result of `calibayes.measure_dependence`.
    label : optional
        The class; by default the first.
    ax : axes, optional
        Axes to draw on; by default those of a new figure.

    Raises
    ------
    ValueError
        If the table has no class ``label``.

    Examples
    --------
    >>> from calibayes import measure_dependence
    >>> from calibayes.dependence import Pearson
    >>> from sklearn.datasets import load_iris
    >>> axes = plot_dependence(measure_dependence(*load_iris(return_X_y=True), measure=Pearson()), label=0)
    """
    if label is not None and label not in table.classes:
        raise ValueError(
            f"there is no class {label!r} in this table: give one of {', '.join(map(str, table.classes))}"
        )
    position = 0 if label is None else table.classes.index(label)
    values = np.array(table.statistics[position], dtype=np.float64)
    np.fill_diagonal(values, np.nan)
    signed = bool(np.nanmin(values, initial=0.0) < 0)
    largest = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    axes = axes_or_new(ax, 6.0)
    image = axes.imshow(
        values, cmap="RdBu_r" if signed else "Blues", vmin=-largest if signed else 0.0, vmax=largest
    )
    if len(table.names) <= 40:
        names = [literal(name) for name in table.names]
        axes.set_xticks(range(len(names)), names, rotation=90)
        axes.set_yticks(range(len(names)), names)
    axes.figure.colorbar(image, ax=axes, label=table.measure)
    axes.set_title(literal(f"{table.measure} within {table.classes[position]}"), loc="left")
    return axes

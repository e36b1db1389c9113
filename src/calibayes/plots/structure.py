"""The dependence tree over the columns of a tree-augmented naive Bayes model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.dependence import Dependence
from calibayes.estimators.tree_augmented import Edge, TreeAugmentedNB
from calibayes.plots.figures import MAIN, Display, axes_or_new, literal

MAX_WIDTH = 6.0
"""Width in points of the line of largest mutual information, besides the least width of 0.5."""


class TreeDisplay(Display):
    """The dependence tree over the columns of tree-augmented naive Bayes, roots on top.

    The width of a line increases with the mutual information of its two columns. Columns without edges are omitted. Make it with
    `from_estimator`.

    Parameters
    ----------
    edges : sequence of edges
        The edges of one tree, each with a parent, a child and their mutual information.
    label : optional
        The class of the tree; None for a tree that all classes share.

    Attributes
    ----------
    lines_, names_ : lists of matplotlib lines and texts
        Edges, and names of the columns.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes import TreeAugmentedNB
    >>> from calibayes.datasets import load
    >>> from calibayes.plots import TreeDisplay
    >>> X, y = load("penguins", return_X_y=True)
    >>> display = TreeDisplay.from_estimator(TreeAugmentedNB(rule="ml").fit(X, y))
    >>> len(display.lines_) == len(display.edges)
    True
    """

    def __init__(self, edges: Sequence[Edge], *, label: Any = None) -> None:
        self.edges, self.label = tuple(edges), label

    @classmethod
    def from_estimator(
        cls, estimator: TreeAugmentedNB, *, label: Any = None, ax: Any = None, **kwargs: Any
    ) -> TreeDisplay:
        """Draw the tree of a fitted model; ``kwargs`` are for the lines (``plot``).

        If each class has its own tree, ``label`` is the class to draw; ValueError if there is no tree of that class.
        """
        check_is_fitted(estimator)
        edges = [edge for edge in estimator.edges_ if edge.label == label]
        labels = list(dict.fromkeys(edge.label for edge in estimator.edges_))
        if estimator.edges_ and not edges:
            raise ValueError(f"no tree for label={label!r}: give one of {labels} as label")
        return cls(edges, label=label).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> TreeDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        coordinates = _coordinates(self.edges)
        axes = self.draw_on(ax, 1.5 + 0.9 * (1 - min((y for _, y in coordinates.values()), default=0.0)))
        largest, self.lines_ = max((edge.information for edge in self.edges), default=0.0) or 1.0, []
        for edge in self.edges:
            ends = list(zip(coordinates[edge.parent], coordinates[edge.child], strict=True))
            width = 0.5 + MAX_WIDTH * edge.information / largest
            self.lines_ += axes.plot(*ends, **{"color": MAIN, "linewidth": width, "zorder": 1, **kwargs})
            blank = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
            middle = [sum(pair) / 2 for pair in ends]
            text = f"{edge.information:.2g}"
            axes.text(*middle, text, ha="center", va="center", fontsize=7, bbox=blank, zorder=3)
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "grey"}
        self.names_ = [
            axes.text(x, y, literal(name), ha="center", va="center", fontsize=8, bbox=box, zorder=2)
            for name, (x, y) in coordinates.items()
        ]
        axes.set_title(literal(_title(len(self.edges), self.label)), loc="left")
        axes.set_axis_off()
        axes.margins(0.1)
        return self


def plot_tree(model: TreeAugmentedNB, *, label: Any = None, ax: Any = None) -> Any:
    """Draw the dependence tree of a model (`TreeDisplay`); returns the axes.

    If each class has its own tree, ``label`` is the class; ValueError if there is no tree of that class.

    Examples
    --------
    >>> from calibayes import TreeAugmentedNB
    >>> from calibayes.datasets import load_penguins
    >>> axes = plot_tree(TreeAugmentedNB(rule="ml").fit(*load_penguins(return_X_y=True)))
    """
    return TreeDisplay.from_estimator(model, label=label, ax=ax).ax_


def _title(count: int, label: Any) -> str:
    classes = "all classes" if label is None else f"class {label}"
    if not count:
        return "No column depends on another"
    edges = "1 edge" if count == 1 else f"{count} edges"
    return f"Dependence tree of {classes}: {edges}, mutual information in nats"


def _coordinates(edges: Sequence[Edge]) -> dict[str, tuple[float, float]]:
    """Coordinates of the columns: y is minus the depth, leaves have x 1, 2, ..., parents the mean x of their children."""
    children: dict[str, list[str]] = {}
    for edge in edges:
        children.setdefault(edge.parent, []).append(edge.child)
    with_parent = {edge.child for edge in edges}
    coordinates: dict[str, tuple[float, float]] = {}
    leaves = 0

    def place(name: str, depth: int) -> float:
        nonlocal leaves
        children_x = [place(child, depth + 1) for child in children.get(name, [])]
        if not children_x:
            leaves += 1
        x = sum(children_x) / len(children_x) if children_x else float(leaves)
        coordinates[name] = (x, -float(depth))
        return x

    for root in [name for name in children if name not in with_parent]:
        place(root, 0)
    return coordinates


# -- Heat map of the dependence of all pairs of columns ------------------------------------------------------


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

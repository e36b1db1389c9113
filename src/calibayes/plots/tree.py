"""Plot the dependence tree over the columns of tree-augmented naive Bayes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibayes.estimators.presets.tree import Edge, TreeAugmentedNB
from calibayes.plots.axes import axes_or_new

LINE = "#2a78b5"
MAX_WIDTH = 6.0


def plot_tree(model: TreeAugmentedNB, *, label: Any = None, ax: Any = None) -> Any:
    """Plot the tree over the columns, roots on top; line widths are proportional to the mutual information of the edge.

    If each class has its own tree, ``label`` is the class to plot; ValueError if there is no tree of that class.
    Columns without edges are omitted. Returns the axes; ``axes.figure.savefig(...)`` saves the plot.

    Examples
    --------
    >>> from calibayes import TreeAugmentedNB
    >>> from calibayes.datasets import load_penguins
    >>> model = TreeAugmentedNB(rule="ml").fit(*load_penguins(return_X_y=True))
    >>> axes = plot_tree(model)
    """
    edges = [edge for edge in model.edges_ if edge.label == label]
    labels = list(dict.fromkeys(edge.label for edge in model.edges_))
    if model.edges_ and not edges:
        raise ValueError(f"no tree for label={label!r}: give one of {labels} as label")
    coordinates = _coordinates(edges)
    axes = axes_or_new(ax, 1.5 + 0.9 * (1 - min((y for _, y in coordinates.values()), default=0.0)))
    largest = max((edge.information for edge in edges), default=1.0)
    for edge in edges:
        (x0, y0), (x1, y1) = coordinates[edge.parent], coordinates[edge.child]
        axes.plot(
            [x0, x1], [y0, y1], color=LINE, linewidth=0.5 + MAX_WIDTH * edge.information / largest, zorder=1
        )
        middle = ((x0 + x1) / 2, (y0 + y1) / 2)
        blank = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
        axes.text(
            *middle, f"{edge.information:.2g}", ha="center", va="center", fontsize=7, bbox=blank, zorder=3
        )
    for name, (x, y) in coordinates.items():
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "grey"}
        axes.text(x, y, name, ha="center", va="center", fontsize=8, bbox=box, zorder=2)
    axes.set_title(_title(len(edges), label), loc="left")
    axes.set_axis_off()
    axes.margins(0.1)
    return axes


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

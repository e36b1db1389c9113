"""The tree over the columns, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibayes.estimators.tree import Edge, TreeAugmentedNB
from calibayes.plots.axes import axes_or_new

LINE = "#2a78b5"
WIDEST = 6.0


def plot_tree(model: TreeAugmentedNB, *, label: Any = None, ax: Any = None) -> Any:
    """The columns that hang on each other, roots on top; lines are as wide as the edges say much.

    Where each class has its own tree, ``label`` says whose is drawn. Columns that hang on none and on which none hangs
    are left out. Returns the axes; ``axes.figure.savefig(...)`` writes the picture.
    """
    edges = [edge for edge in model.edges_ if edge.label == label]
    labels = list(dict.fromkeys(edge.label for edge in model.edges_))
    if model.edges_ and not edges:
        raise ValueError(f"there is no tree of class {label!r}: give one of {labels} as label")
    places = _places(edges)
    axes = axes_or_new(ax, 1.5 + 0.9 * (1 - min((y for _, y in places.values()), default=0.0)))
    top = max((edge.information for edge in edges), default=1.0)
    for edge in edges:
        (x0, y0), (x1, y1) = places[edge.parent], places[edge.child]
        axes.plot([x0, x1], [y0, y1], color=LINE, linewidth=0.5 + WIDEST * edge.information / top, zorder=1)
        axes.annotate(f"{edge.information:.2g}", ((x0 + x1) / 2, (y0 + y1) / 2), fontsize=7, zorder=3)
    for name, (x, y) in places.items():
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "grey"}
        axes.text(x, y, name, ha="center", va="center", fontsize=8, bbox=box, zorder=2)
    axes.set_title(_title(len(edges), label), loc="left")
    axes.set_axis_off()
    axes.margins(0.1)
    return axes


def _title(count: int, label: Any) -> str:
    whose = "all classes" if label is None else f"class {label}"
    return f"What hangs on what in {whose}: {count} edges, in nats" if count else "No column hangs on another"


def _places(edges: Sequence[Edge]) -> dict[str, tuple[float, float]]:
    """Columns by depth from top to bottom; leaves side by side, parents over the middle of their children."""
    children: dict[str, list[str]] = {}
    for edge in edges:
        children.setdefault(edge.parent, []).append(edge.child)
    below = {edge.child for edge in edges}
    places: dict[str, tuple[float, float]] = {}
    leaves = 0

    def place(name: str, depth: int) -> float:
        nonlocal leaves
        across = [place(child, depth + 1) for child in children.get(name, [])]
        if not across:
            leaves += 1
        x = sum(across) / len(across) if across else float(leaves)
        places[name] = (x, -float(depth))
        return x

    for root in [name for name in children if name not in below]:
        place(root, 0)
    return places

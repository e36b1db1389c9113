"""The dependence tree over the columns of a tree-augmented naive Bayes model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array
from calibayes.dependence import Dependence
from calibayes.estimators.mixture_analysis import MixtureDiscriminantAnalysis
from calibayes.estimators.tree_augmented import Edge, TreeAugmentedNB
from calibayes.plots.figures import MAIN, Display, axes_or_new, legend_label, literal

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
    colors = {"cmap": "RdBu_r", "vmin": -largest} if signed else {"cmap": "Blues", "vmin": 0.0}
    image = axes.imshow(values, vmax=largest, **colors)
    if len(table.names) <= 40:
        names = [literal(name) for name in table.names]
        axes.set_xticks(range(len(names)), names, rotation=90)
        axes.set_yticks(range(len(names)), names)
    axes.figure.colorbar(image, ax=axes, label=table.measure)
    axes.set_title(literal(f"{table.measure} within {table.classes[position]}"), loc="left")
    return axes


# -- Decision boundaries over two columns --------------------------------------------------------------------

Score = Callable[[Array], Array]
"""Rows (n, 2) -> scores (n,) whose sign is the decision."""

COLORS = ("#7fa8d1", "#e0a35c", "#88b988", "#b58fc2")
"""Of the rows of the classes, repeated if there are more."""
LINES = (("#c0504d", "solid"), ("black", "dashed"), ("#2a78b5", "dotted"))
"""Color and style of the lines of the scores, repeated if there are more."""
EXPECTED = (
    "call plot_boundaries(columns, target, scores), for example with scores={'rc': model.decision_function}"
)


def plot_boundaries(columns: Any, target: Any, scores: Mapping[str, Score], *, ax: Any = None) -> Any:
    """Scatter plot of the rows, colored by class, with the line where each score is zero; returns the axes.

    Parameters
    ----------
    columns : array or data frame of shape (n, 2)
    target : (n,) labels
    scores : mapping
        Name -> function of rows (m, 2) that returns (m,) numbers, such as the `decision_function` of a model of two
        classes.
    ax : matplotlib axes, optional

    Raises
    ------
    ValueError
        If an argument is not as described, for example if they are given in another order.

    Examples
    --------
    >>> from calibayes import LinearDiscriminantAnalysis
    >>> X, y = [[0.0, 1.0], [1.0, 2.0], [4.0, 0.0], [5.0, 2.0], [4.0, 1.0]], [0, 0, 1, 1, 1]
    >>> model = LinearDiscriminantAnalysis(rule="ml").fit(X, y)
    >>> axes = plot_boundaries(X, y, {"LDA": model.decision_function})
    """
    rows, labels = _checked(columns, target, scores)
    axes = axes_or_new(ax, 5.0)
    for label, color in zip(np.unique(labels), cycle(COLORS), strict=False):
        class_rows = rows[labels == label]
        axes.scatter(class_rows[:, 0], class_rows[:, 1], s=8, color=color, linewidths=0)
    low, high = rows.min(axis=0), rows.max(axis=0)
    x, y = np.meshgrid(np.linspace(low[0], high[0], 200), np.linspace(low[1], high[1], 200))
    grid = np.stack([x.ravel(), y.ravel()], axis=1)
    for (name, score), (color, style) in zip(scores.items(), cycle(LINES), strict=False):
        values = _one_per_row(name, score(grid), len(grid)).reshape(x.shape)
        axes.contour(x, y, values, levels=[0.0], colors=color, linestyles=style)
        axes.plot([], [], color=color, linestyle=style, label=legend_label(name))
    axes.legend(frameon=False, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _checked(columns: Any, target: Any, scores: Any) -> tuple[Array, Array]:
    """The rows and labels as arrays. Raises ValueError if an argument has a wrong type or shape."""
    rows, labels = np.asarray(columns), np.asarray(target)
    if rows.ndim != 2 or rows.shape[1] != 2:
        got = f"shape {rows.shape}" if rows.ndim else type(columns).__name__
        raise ValueError(f"columns must be an array or data frame of shape (n, 2), got {got}: {EXPECTED}")
    if labels.shape != (len(rows),):
        raise ValueError(
            f"target must have one label for each of the {len(rows)} rows, got shape {labels.shape}: {EXPECTED}"
        )
    if not isinstance(scores, Mapping) or not all(map(callable, scores.values())):
        raise ValueError(
            f"scores must be a dictionary name -> function of rows, got {type(scores).__name__}: {EXPECTED}"
        )
    return rows, labels


def _one_per_row(name: str, values: Any, n: int) -> Array:
    scores = np.asarray(values)
    if scores.shape != (n,):
        raise ValueError(
            f"scores[{name!r}] must return one number for each row, shape ({n},), got shape {scores.shape}: with more than "
            "two classes, plot the score of one class, for example lambda rows: model.decision_function(rows)[:, 0]"
        )
    return scores


# -- The Gaussian components of a mixture as ellipses over two columns ---------------------------------------

ANGLES = np.linspace(0.0, 2.0 * np.pi, 100)


def plot_components(
    model: MixtureDiscriminantAnalysis,
    columns: tuple[int, int] = (0, 1),
    *,
    deviations: float = 2.0,
    ax: Any = None,
) -> Any:
    """Plot the mean and the covariance ellipse of each component of a mixture, colored by class; returns the axes.

    Parameters
    ----------
    model : fitted MixtureDiscriminantAnalysis
    columns : pair of int, default=(0, 1)
        Positions of the two columns.
    deviations : float, default=2
        Distance of an ellipse from its mean, in standard deviations. Its line is wider, the larger the weight of the component
        in its class.
    ax : matplotlib axes, optional

    Examples
    --------
    >>> from calibayes import MixtureDiscriminantAnalysis
    >>> from sklearn.datasets import load_iris
    >>> model = MixtureDiscriminantAnalysis(n_components=2, rule="ml", random_state=0).fit(*load_iris(return_X_y=True))
    >>> plot_components(model, (2, 3)).get_xlabel()
    'x2'
    """
    check_is_fitted(model)
    axes, positions = axes_or_new(ax, 5.0), list(columns)
    for c, label in enumerate(model.classes_):
        color = f"C{c % 10}"
        for number, (weight, mean, covariance) in enumerate(
            zip(model.weights_[c], model.means_[c], model.covariances_[c], strict=True)
        ):
            root = np.linalg.cholesky(covariance[np.ix_(positions, positions)])
            outline = mean[positions, None] + deviations * root @ np.stack([np.cos(ANGLES), np.sin(ANGLES)])
            name = legend_label(label) if number == 0 else None
            axes.plot(*outline, color=color, linewidth=0.5 + 3.0 * weight, label=name)
            axes.plot(*mean[positions], color=color, marker="+")
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    axes.set(xlabel=literal(names[positions[0]]), ylabel=literal(names[positions[1]]))
    axes.set_title(f"Components, {deviations:g} standard deviations", loc="left")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return axes

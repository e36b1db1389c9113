"""Decision boundaries over two columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import cycle
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array
from calibayes.estimators.mixture_analysis import MixtureDiscriminantAnalysis
from calibayes.plots.figures import axes_or_new, legend_label, literal

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
    axes.set_xlabel(literal(names[positions[0]]))
    axes.set_ylabel(literal(names[positions[1]]))
    axes.set_title(f"Components, {deviations:g} standard deviations", loc="left")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return axes

"""The Gaussian components of a mixture as ellipses over two columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.estimators.presets.mixture import MixtureDiscriminantAnalysis
from calibayes.plots.axes import axes_or_new
from calibayes.plots.display import legend_label, literal

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

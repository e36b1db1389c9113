"""Leave-one-out densities under covariance matrices, which change by a matrix of rank one without a row.

Distances follow from the Sherman-Morrison formula, determinants from the matrix determinant lemma.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.abilities import LeftOut
from calibayes.core.protocols import Array
from calibayes.families.gaussian.class_centers import as_matrix
from calibayes.kernels.numbers.gaussian import LOG_TWO_PI

LEAST_SHARE = 1e-6
"""Share of a scatter, or of a determinant, below which what is left without a row has lost too many digits."""
LEAST_UNEXPLAINED = 1e-8
"""Share of a variance in the second moment below which a class may count as singular without the row."""


def by_class(family: Any, x: Array, left_out: LeftOut) -> Array | None:
    """One covariance matrix per class: rank-one changes of the density under all rows."""
    if family.has_hidden(x):
        return None
    d, size = x.shape[1], left_out.statistics["count"][left_out.codes]
    rows = np.arange(len(x))
    result = np.array(family.log_density(x, left_out.parameters))
    log_determinant = left_out.parameters["log_determinant"][left_out.codes]
    distance = -2.0 * result[rows, left_out.codes] - log_determinant - d * LOG_TWO_PI
    left = size - left_out.weight
    remaining = 1.0 - left_out.weight * distance / left
    moved = distance * size / (left * remaining)
    log_determinant = log_determinant + np.log(remaining) + d * np.log(size / left)
    result[rows, left_out.codes] = -0.5 * (moved + log_determinant + d * LOG_TWO_PI)
    result[~(remaining > _least_remaining(family, left_out)[left_out.codes])] = np.nan
    return result


def _least_remaining(family: Any, left_out: LeftOut) -> Array:
    """The share of each determinant that must remain without a row, (g,), so that no column is determined by the others."""
    pivots = family.shape.pivots(left_out.parameters["covariance"])
    size = family.sizes(as_matrix(left_out.statistics["count"]))
    second = np.abs(family.shape.variances(left_out.statistics["second"])) / size
    unexplained = (pivots / np.maximum(second, np.finfo(float).tiny)).min(axis=1)
    return np.maximum(LEAST_SHARE, LEAST_UNEXPLAINED / np.maximum(unexplained, np.finfo(float).tiny))


def tied(family: Any, x: Array, left_out: LeftOut) -> Array | None:
    """One covariance matrix of all classes: x minus each mean, whitened, and the rank-one change by the row's own."""
    if family.has_hidden(x):
        return None
    d, count, weight = x.shape[1], left_out.statistics["count"], left_out.weight
    mean, whitener = left_out.parameters["mean"], left_out.parameters["whitener"][0]
    white = [(x - center) @ whitener.T for center in mean]
    own = np.stack(white, axis=1)[np.arange(len(x)), left_out.codes]
    size, total = count[left_out.codes], count.sum()
    left, grown = total - weight, size / (size - weight)
    change = weight * grown / total
    remaining = 1.0 - change * np.einsum("nd,nd->n", own, own)
    result = np.empty((len(x), len(mean)))
    for c, difference in enumerate(white):
        moved = np.where(left_out.codes == c, grown, 1.0)[:, None] * difference
        along = np.einsum("nd,nd->n", moved, own)
        squares = np.einsum("nd,nd->n", moved, moved) + change * along**2 / remaining
        result[:, c] = squares * left / total
    log_determinant = left_out.parameters["log_determinant"][0] + np.log(remaining) + d * np.log(total / left)
    result = -0.5 * (result + (log_determinant + d * LOG_TWO_PI)[:, None])
    result[~(remaining > _least_remaining(family, left_out)[0])] = np.nan
    return result

"""Gaussian densities: independent columns, and full covariances with any missing values.

Under a full covariance, the density of the known cells of a row is a product of densities of one column given the known
columns before it. These are computed by eliminating one column after the other: if column j is known, with residual r_j and
conditional variance S_jj, then S <- S - S_.j S_j. / S_jj and r <- r - S_.j r_j / S_jj for the columns after it; if it is
missing, nothing changes. In rows without missing values S does not depend on the row, and the log density is a quadratic
form (up to a common term, a linear one if the classes share a covariance).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.core.notices import warn
from calibayes.core.protocols import Array, Arrays
from calibayes.export.expressions import (
    MISSING,
    Condition,
    Constant,
    Expression,
    Function,
    IsMissing,
    Once,
    Where,
    stored,
    total,
)
from calibayes.export.families.log_density import known, log_densities
from calibayes.families import Gaussian
from calibayes.kernels.numbers.gaussian import LOG_TWO_PI

MOST_ELIMINATED = 24
"""Largest number d of columns with a full covariance of which values may be missing: there are d^3 / 6 steps."""


class WideCovarianceWarning(UserWarning):
    """Rows with missing values have no probabilities in the export, since the covariance has too many columns."""


@log_densities.register
def _(family: Gaussian, parameters: Arrays, columns: Sequence[Expression]) -> list[Expression]:
    mean = parameters["mean"]
    if not family.shape.is_matrix:
        return [_independent(*moments, columns) for moments in zip(mean, parameters["variance"], strict=True)]
    covariance = parameters["covariance"]
    complete = (
        _linear(mean, parameters, columns) if len(covariance) == 1 else _quadratic(mean, parameters, columns)
    )
    incomplete = stored([IsMissing(x) for x in columns])
    if len(columns) > MOST_ELIMINATED:
        warn(
            f"the covariance is full, of {len(columns)} columns: rows with a missing value in one of them have no "
            f"probabilities in the export, which supports missing values of at most {MOST_ELIMINATED} columns",
            WideCovarianceWarning,
        )
        return [Where(incomplete, MISSING, score) for score in complete]
    marginal = _marginal(mean, covariance, columns, incomplete)
    return [Where(incomplete, other, score) for other, score in zip(marginal, complete, strict=True)]


def _independent(mean: Array, variance: Array, columns: Sequence[Expression]) -> Expression:
    """log density of one class with independent columns."""
    triples = zip(columns, mean.tolist(), variance.tolist(), strict=True)
    return total([known(_log_normal(x - m, v)) for x, m, v in triples])


def _log_normal(residual: Expression, variance: float) -> Expression:
    squares = residual * residual * (-0.5 / variance)
    return squares - 0.5 * (float(np.log(variance)) + LOG_TWO_PI)


def _linear(mean: Array, parameters: Arrays, columns: Sequence[Expression]) -> list[Expression]:
    """Scores of classes with one covariance, in rows without missing values, up to a term that all share."""
    whitener, middle = parameters["whitener"][0], mean.mean(axis=0)
    slopes = (mean - middle) @ whitener.T @ whitener
    offsets = -0.5 * np.sum(slopes * (mean - middle), axis=1)
    centered = [Once(x - m) for x, m in zip(columns, middle.tolist(), strict=True)]
    # The term that all classes share can be left out: a row uses either these scores or the marginal densities, for all classes.
    return [
        total([x * slope for x, slope in zip(centered, class_slopes, strict=True)], offset)
        for class_slopes, offset in zip(slopes.tolist(), offsets.tolist(), strict=True)
    ]


def _quadratic(mean: Array, parameters: Arrays, columns: Sequence[Expression]) -> list[Expression]:
    """log densities of classes with a covariance each, in rows without missing values."""
    d = len(columns)
    constants = -0.5 * (np.broadcast_to(parameters["log_determinant"], len(mean)) + d * LOG_TWO_PI)
    return [
        total([white * white * -0.5 for white in _whitened(class_mean, whitener, columns)], float(constant))
        for class_mean, whitener, constant in zip(mean, parameters["whitener"], constants, strict=True)
    ]


def _whitened(mean: Array, whitener: Array, columns: Sequence[Expression]) -> list[Once]:
    """Coordinates of variance 1."""
    residuals = [Once(x - m) for x, m in zip(columns, mean.tolist(), strict=True)]
    return [
        Once(total([x * weight for x, weight in zip(residuals, row.tolist(), strict=False) if weight != 0.0]))
        for row in whitener
    ]


# -- rows with missing values --------------------------------------------------------------------------------------


def _marginal(
    mean: Array, covariance: Array, columns: Sequence[Expression], incomplete: Condition
) -> list[Expression]:
    """log densities of the known cells, by elimination; a covariance that classes share is eliminated once."""
    groups = [range(len(mean))] if len(covariance) == 1 else [range(c, c + 1) for c in range(len(mean))]
    densities: list[Expression] = []
    for classes, matrix in zip(groups, covariance, strict=True):
        densities += _eliminated(mean[list(classes)], matrix, columns, incomplete)
    return densities


def _eliminated(
    mean: Array, covariance: Array, columns: Sequence[Expression], incomplete: Condition
) -> list[Expression]:
    """log densities of the known cells for classes of one covariance; computed for incomplete rows only."""
    d, k = len(columns), len(mean)
    matrix: list[list[Expression]] = [[Constant(float(v)) for v in row] for row in covariance]
    residuals = [[x - float(m) for x, m in zip(columns, row, strict=True)] for row in mean]
    terms: list[list[Expression]] = [[] for _ in range(k)]
    for j in range(d):
        variance, missing = matrix[j][j], IsMissing(columns[j])
        log_variance = Function("log", variance)
        slopes = {i: _stored(matrix[i][j] / variance, incomplete) for i in range(j + 1, d)}
        for c in range(k):
            residual = residuals[c][j]
            square = residual * residual / variance
            terms[c].append(known((square + log_variance + LOG_TWO_PI) * -0.5))
            for i, slope in slopes.items():
                updated = residuals[c][i] - slope * residual
                residuals[c][i] = _stored(Where(missing, residuals[c][i], updated), incomplete)
        for i in range(j + 1, d):
            for h in range(j + 1, i + 1):
                updated = matrix[i][h] - slopes[i] * matrix[h][j]
                matrix[i][h] = _stored(Where(missing, matrix[i][h], updated), incomplete)
    return [total(class_terms) for class_terms in terms]


def _stored(value: Expression, incomplete: Condition) -> Expression:
    """A value that is computed once, in incomplete rows."""
    return Once(Where(incomplete, value, MISSING))

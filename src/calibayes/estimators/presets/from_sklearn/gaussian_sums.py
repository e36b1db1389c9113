"""Sums over rows of a Gaussian family, from the counts, means and covariances of its classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibayes.core.protocols import Array, Arrays, Layout
from calibayes.encoders.numbers import Numbers
from calibayes.estimators.presets.from_sklearn.rebuilt import Rebuilt
from calibayes.families.gaussian.class_centers import as_matrix, expand


def moment_sums(family: Any, count: Array, mean: Array, covariance: Array) -> Arrays:
    """Moments about the centers of a bound family.

    Parameters
    ----------
    family : Gaussian
    count : (k,) or (k, d) array
    mean : (k, d) array
    covariance : (k, ...) array
        In the form of the family's shape.
    """
    deviation, weight = mean - family.centers, as_matrix(count)
    about = covariance + family.shape.square(deviation)
    second = family.shape.pool(expand(weight, about) * about)
    return {"count": count, "first": weight * deviation, "second": second}


def numbers_of(count: Array, mean: Array, variance: Array) -> Numbers:
    """The encoder of columns of numbers, with the mean and the variance of all rows; variances of classes are (k, d)."""
    weight = (count / count.sum())[:, None]
    center = np.sum(weight * mean, axis=0)
    total = np.sum(weight * (variance + (mean - center) ** 2), axis=0)
    return Numbers(tuple(range(mean.shape[1])), center, total)


def refuse_singular(rebuilt: Rebuilt, classes: Any) -> None:
    """Raises ValueError if a covariance is singular: scikit-learn then leaves directions out, or divides by 0."""
    encoder: Any = rebuilt.encoder
    columns = tuple(f"x{j}" for j in encoder.indices)
    layout = Layout(tuple(map(str, classes)), columns, **encoder.layout())
    strict: Any = replace(rebuilt.family, prior=None).bind(layout)  # type: ignore[type-var]
    try:
        strict.prepare(rebuilt.statistics(strict))
    except ValueError as error:
        raise ValueError(
            "a covariance of scikit-learn's model is singular, which this model cannot represent: fit the estimator of "
            f"calibayes to the rows, which gives it a prior, or leave columns out. {error}"
        ) from error

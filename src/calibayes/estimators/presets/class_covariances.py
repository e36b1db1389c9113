"""Covariances of the classes that are estimated from their rows, not from sums: Ledoit and Wolf's, or an estimator's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from calibayes.core.protocols import Array
from calibayes.encoders.encoder import Encoder
from calibayes.estimators.interface.input import TrainingRows
from calibayes.kernels.numbers.shrinkage import shrunk_covariance
from calibayes.tables.table import numeric_matrix


def needs_rows(shrinkage: Any, covariance_estimator: Any) -> bool:
    """Whether the covariance is no function of sums over rows."""
    return covariance_estimator is not None or isinstance(shrinkage, str)


def refuse_without_sums(shrinkage: Any, covariance_estimator: Any) -> None:
    """Raises ValueError if the covariance is no function of sums over rows."""
    if needs_rows(shrinkage, covariance_estimator):
        raise ValueError(
            "shrinkage='auto' and covariance_estimator need all rows at once: give shrinkage as a number"
        )


def check_options(shrinkage: Any, covariance_estimator: Any, solver: str, refused: str) -> None:
    """Raises ValueError or, as scikit-learn does, NotImplementedError if the options exclude each other.

    ``refused`` is the message for a covariance estimator with the solver "svd".
    """
    if covariance_estimator is not None and shrinkage:
        raise ValueError(
            "covariance_estimator and shrinkage parameters are not None. Only one of the two can be set."
        )
    if covariance_estimator is not None and solver == "svd":
        raise ValueError(refused)
    if isinstance(shrinkage, str) and shrinkage != "auto":
        raise ValueError(f"shrinkage must be a number between 0 and 1, 'auto' or None, got {shrinkage!r}")
    if isinstance(shrinkage, str) and solver == "svd":
        raise NotImplementedError("shrinkage='auto' is not supported with solver='svd': use solver='eigen'")


def class_covariances(
    given: TrainingRows, classes: Array, covariance_estimator: Any, encoder: Encoder | None = None
) -> Array:
    """The covariance of each class by the estimator, or without one by Ledoit and Wolf's shrinkage, (k, d, d).

    Raises ValueError if a value is missing or a class has no rows.
    """
    rows = given.in_memory()
    columns = range(len(rows.table.names))
    if encoder is None:
        x = np.asarray(numeric_matrix(rows.table, columns), dtype=np.float64)
    else:
        x = encoder.fit(rows.summary, columns).encode(rows.table)
    if np.isnan(x).any():
        raise ValueError("shrinkage='auto' and covariance_estimator need rows without missing values (NaN)")
    estimate = shrunk_covariance if covariance_estimator is None else _by_estimator(covariance_estimator)
    covariances = []
    for code, name in enumerate(classes.tolist()):
        in_class = rows.codes == code
        if not in_class.any():
            raise ValueError(f"class {name!r} has no rows (or no weight), so that its covariance is unknown")
        covariances.append(np.atleast_2d(estimate(x[in_class], rows.weight[in_class])))
    return np.stack(covariances)


def _by_estimator(estimator: Any) -> Callable[[Array, Array], Array]:
    """The covariance of rows by an estimator such as those of `sklearn.covariance`."""

    def covariance(x: Array, weight: Array) -> Array:
        if (weight != weight[0]).any():
            raise ValueError("covariance_estimator accepts no row weights: leave out sample_weight")
        fitted = clone(estimator, safe=False)
        fitted.fit(x)
        if not hasattr(fitted, "covariance_"):
            raise ValueError(f"{type(estimator).__name__} does not have a covariance_ attribute")
        return np.asarray(fitted.covariance_, dtype=np.float64)

    return covariance


def class_weights(rows: TrainingRows, fixed: Array | None, k: int) -> Array:
    """Weights with which covariances of k classes are averaged, (k,): fixed class probabilities, or their frequencies."""
    if fixed is not None:
        return np.asarray(fixed, dtype=np.float64)
    labeled = rows.codes >= 0
    mass = np.bincount(rows.codes[labeled], rows.weight[labeled], minlength=k)
    return np.asarray(mass / mass.sum())

"""Fit a model within a task and collect its warnings."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from calibayes.core.protocols import Array


def fit_clone(model: Any, columns: Array, target: Array, seed: int | None = None) -> tuple[Any, list[str]]:
    """A fitted clone of the model, and the messages of its warnings.

    Convergence warnings are ignored: the papers use a fixed number of updates.
    """
    estimator = clone(model)
    if seed is not None:
        estimator.set_params(random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(columns, target)
    return estimator, sorted({str(warning.message) for warning in caught})

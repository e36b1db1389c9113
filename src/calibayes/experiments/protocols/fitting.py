"""Training inside a cell: warnings become notes."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from calibayes.core.protocols import Array


def fitted(model: Any, columns: Array, target: Array, seed: int | None = None) -> tuple[Any, list[str]]:
    """A copy of the model, trained, and what there was to say.

    That an end was forced by the number of updates is the papers' protocol and no news.
    """
    copy = clone(model)
    if seed is not None:
        copy.set_params(random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)
        copy.fit(columns, target)
    return copy, sorted({str(warning.message) for warning in caught})

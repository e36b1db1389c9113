"""Labels and predicted probabilities of rows, from an estimator, its held-out rows, or as they are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from calibayes.core.protocols import Array

DEVIATIONS = 1.96
"""Of the normal distribution, for 95 %."""


@dataclass(frozen=True)
class ScoredRows:
    """Rows with a label and probabilities.

    Attributes
    ----------
    codes : (n,) integers
        Class of each row, a position in ``classes``.
    probabilities : (n, k) array
    classes : (k,) array
    weight : (n,) array
    """

    codes: Array
    probabilities: Array
    classes: Array
    weight: Array

    def position(self, pos_label: Any = None) -> int:
        """Position of a class; of the second of two by default. Raises ValueError if there is none, or it must be given."""
        if pos_label is None:
            if len(self.classes) != 2:
                raise ValueError(
                    f"pos_label must be given for {len(self.classes)} classes: one of {list(self.classes)}"
                )
            return 1
        found = np.flatnonzero(self.classes == pos_label)
        if not len(found):
            raise ValueError(
                f"pos_label={pos_label!r} is not among the classes: give one of {list(self.classes)}"
            )
        return int(found[0])


def rows_of_estimator(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> ScoredRows:
    """Rows that an estimator predicts; without X and y, those that it was not trained on (``held_out_``)."""
    check_is_fitted(estimator)
    if (X is None) != (y is None):
        raise ValueError("give both X and y, or neither for the held-out rows of the estimator")
    if X is not None:
        return rows_of_predictions(
            y, estimator.predict_proba(X), classes=estimator.classes_, sample_weight=sample_weight
        )
    record = getattr(estimator, "held_out_", None)
    if record is None:
        raise ValueError(f"{type(estimator).__name__} has no held-out rows (held_out_): give X and y")
    classes = np.asarray(estimator.classes_)
    return ScoredRows(record.codes, np.exp(record.log_posterior), classes, record.weight)


def rows_of_predictions(
    y_true: Any, y_prob: Any, *, classes: Sequence[Any] | Array | None = None, sample_weight: Any = None
) -> ScoredRows:
    """Rows with labels and given probabilities, (n, k), or (n,) for the second of two classes.

    Raises ValueError if these do not fit together.
    """
    labels, values = column_or_1d(y_true), np.asarray(y_prob, dtype=np.float64)
    names = np.unique(labels) if classes is None else np.asarray(classes)
    values = np.column_stack([1 - values, values]) if values.ndim == 1 else values
    check_consistent_length(labels, values)
    if values.shape[1] != len(names):
        raise ValueError(
            f"y_prob has probabilities of {values.shape[1]} classes, but there are {len(names)}: {list(names)}; give classes="
        )
    if not (np.isfinite(values).all() and (values >= 0).all() and (values <= 1).all()):
        raise ValueError("y_prob must be probabilities between 0 and 1")
    if not np.isin(labels, names).all():
        raise ValueError(f"y_true has labels that are not among the classes {list(names)}")
    order = np.argsort(names)
    codes = np.searchsorted(names[order], labels)
    weight = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    check_consistent_length(labels, weight)
    return ScoredRows(order[codes], values, names, weight)


def wilson_interval(share: Array, rows: Array) -> tuple[Array, Array]:
    """Ends of the 95 % Wilson intervals of shares of so many rows."""
    square = DEVIATIONS**2 / rows
    middle = (share + square / 2) / (1 + square)
    spread = DEVIATIONS / (1 + square) * np.sqrt(share * (1 - share) / rows + square / (4 * rows))
    return np.minimum(middle - spread, share), np.maximum(middle + spread, share)


def effective_rows(weight: Array) -> float:
    """Number of rows of equal weight that are as informative (Kish)."""
    return float(weight.sum() ** 2 / (weight**2).sum())

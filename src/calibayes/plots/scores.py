"""Labels and predicted probabilities of rows: of an estimator and new rows, of its held-out rows, or given as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from calibayes.core.protocols import Array

TOLERANCE = 1e-9
"""Probabilities may be outside of 0 and 1 by so much, as sums with rounding errors are."""
DEVIATIONS = 1.96
"""Half the width of a 95 % interval of the normal distribution, in standard deviations."""


@dataclass(frozen=True)
class ScoredRows:
    """Rows of positive weight, each with a label and the probabilities of the classes.

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
        """Position of a class among ``classes``; None is the second of two classes.

        Raises ValueError if there is no such class, or ``pos_label`` is None and there are not two classes.
        """
        if pos_label is None:
            if len(self.classes) != 2:
                raise ValueError(
                    f"pos_label must be given for {len(self.classes)} classes: one of {self.classes.tolist()}"
                )
            return 1
        positions = np.flatnonzero(self.classes == pos_label)
        if not len(positions):
            raise ValueError(
                f"pos_label={pos_label!r} is not among the classes: give one of {self.classes.tolist()}"
            )
        return int(positions[0])


def rows_of_estimator(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> ScoredRows:
    """The rows X with labels y and the estimator's probabilities; without X and y, its held-out rows (``held_out_``).

    Raises ValueError if only one of X and y is given, if there are no held-out rows, or if weights are given for them.
    """
    check_is_fitted(estimator)
    if (X is None) != (y is None):
        raise ValueError("give both X and y, or neither for the held-out rows of the estimator")
    if X is not None:
        return rows_of_predictions(
            y, estimator.predict_proba(X), classes=estimator.classes_, sample_weight=sample_weight
        )
    if sample_weight is not None:
        raise ValueError("sample_weight is for the rows of X: give X and y as well, or leave it out")
    record = getattr(estimator, "held_out_", None)
    if record is None:
        raise ValueError(f"{type(estimator).__name__} has no held-out rows (held_out_): give X and y")
    classes = np.asarray(estimator.classes_)
    return _with_weight(record.codes, np.exp(record.log_posterior), classes, record.weight)


def rows_of_predictions(
    y_true: Any,
    y_prob: Any,
    *,
    classes: Sequence[Any] | Array | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> ScoredRows:
    """Rows with labels and given probabilities, (n, k), or (n,) for ``pos_label``, by default the second of two classes.

    Raises ValueError if the shapes or labels do not agree, or if numbers are not probabilities.
    """
    labels, values = column_or_1d(y_true), np.asarray(y_prob, dtype=np.float64)
    names = np.unique(labels) if classes is None else np.asarray(classes)
    if values.ndim == 1:
        is_of_first = pos_label is not None and bool(np.any(names[:1] == pos_label))
        values = np.column_stack([values, 1 - values] if is_of_first else [1 - values, values])
    if values.ndim != 2:
        raise ValueError(f"y_prob must be an array of shape (n,) or (n, k), got shape {values.shape}")
    check_consistent_length(labels, values)
    if values.shape[1] != len(names):
        raise ValueError(
            f"y_prob has probabilities of {values.shape[1]} classes, but there are {len(names)} classes: {names.tolist()}. "
            "Give the class of each column as classes="
        )
    if not ((values >= -TOLERANCE) & (values <= 1 + TOLERANCE)).all():
        raise ValueError("y_prob must be probabilities between 0 and 1")
    if not np.isin(labels, names).all():
        raise ValueError(f"y_true has labels that are not among the classes {names.tolist()}")
    order = np.argsort(names)
    codes = order[np.searchsorted(names[order], labels)]
    weight = _checked_weight(sample_weight, len(labels))
    return _with_weight(codes, np.clip(values, 0.0, 1.0), names, weight)


def _checked_weight(sample_weight: Any, n: int) -> Array:
    """Weights of n rows, 1 by default. Raises ValueError if they are not n finite numbers of 0 or more."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise ValueError(
            f"sample_weight must be an array of shape ({n},) of finite numbers of 0 or more, and not all 0"
        )
    return weight


def _with_weight(codes: Array, probabilities: Array, classes: Array, weight: Array) -> ScoredRows:
    """The rows whose weight is not 0: others would make groups of rows without weight, whose means are 0 / 0."""
    used = weight > 0
    return ScoredRows(codes[used], probabilities[used], classes, weight[used])


def wilson_interval(share: Array, rows: Array) -> tuple[Array, Array]:
    """Lower and upper ends of 95 % Wilson intervals (Wilson 1927), (m,) each, of shares (m,) of numbers of rows (m,)."""
    square = DEVIATIONS**2 / rows
    middle = (share + square / 2) / (1 + square)
    spread = DEVIATIONS / (1 + square) * np.sqrt(share * (1 - share) / rows + square / (4 * rows))
    return np.minimum(middle - spread, share), np.maximum(middle + spread, share)


def effective_rows(weight: Array) -> float:
    """Number of rows of equal weight whose mean has the same variance (effective sample size, Kish 1965)."""
    return float(weight.sum() ** 2 / (weight**2).sum())

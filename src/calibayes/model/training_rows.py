"""The training rows that an estimator refers to after `fit`, for results that are computed only if they are asked for.

The reference is to the table as it was given: nothing is copied. It is part of this process alone: pickles, copies and model
files do not hold it. `docs/held-out.md` says what it is used for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_array, require_length
from calibayes.model.delegates import feature

TRAINING = "_training"
"""Attribute of an estimator: the rows of its last `fit`."""
OUT_OF_FOLD = "_out_of_fold"
"""Attribute of an ensemble: the record of the rows that its last `fit` held out."""
PROCESS_ONLY = (TRAINING, OUT_OF_FOLD)
"""Attributes that pickles, copies and model files do not hold."""
HELD_OUT = "held_out_"
"""Attribute of an estimator: the record of its training rows, which holds for one fit."""
DRIFT, SURPRISE = "drift_reference_", "surprise_reference_"
"""Attributes of an estimator: what `drift` and `surprise` compare new rows with, which holds for one fit."""

ADAPTED, INTERVAL, REPORT = OF_PRIORS = "adapted_priors_", "adapted_priors_interval_", "prior_shift_"
"""Attributes of an estimator: what `adapt_priors` has noted, which holds for its class frequencies."""
HELD_OUT_ROWS = 10_000
"""Most rows of a part that is held out of very many."""

Estimator = TypeVar("Estimator")


class TrainingReference(NamedTuple):
    """What `fit` was given."""

    X: Any
    y: Any
    sample_weight: Any


def is_private(model: Any) -> bool:
    """Whether an estimator is to be trained with differential privacy, so that nothing may refer to its rows."""
    return getattr(getattr(model, "training", None), "privacy", None) is not None


OF_ROWS = (*PROCESS_ONLY, HELD_OUT, DRIFT, SURPRISE)
"""Attributes of an estimator that refer to training rows, or were computed from them."""


def labels_of(codes: Array, classes: Array) -> Array:
    """The labels of class codes, (n,); None for -1, a row without a label."""
    named = classes if (codes >= 0).all() else np.array([*classes.tolist(), None], dtype=object)
    return named[codes]


def forget_rows(model: Estimator) -> Estimator:
    """The model, without its reference to training rows and what was computed from them: it is another model now."""
    for name in OF_ROWS:
        vars(model).pop(name, None)
    return model


def remembered_rows(model: Any, use: str) -> TrainingReference:
    """The rows of the last `fit`. Raises ValueError if the estimator refers to none; ``use`` says what they are for."""
    reference = vars(model).get(TRAINING)
    if reference is None:
        raise ValueError(
            f"{use} needs rows that the model was not trained on, and this one refers to no training rows: it was loaded, "
            "copied or changed after `fit`. Give it rows before: model.with_held_out(X, y) for rows that were not used in "
            "training, model.with_held_out(X, y, cv=5) for the training rows"
        )
    return TrainingReference(*reference)


@dataclass(frozen=True)
class HeldOut:
    """Predictions for rows by models that were not trained on them.

    Attributes
    ----------
    log_posterior : (m, k) array
        log p(class | x).
    codes : (m,) integers
        The class of each row, a position in ``classes_``.
    weight : (m,) array
        Sample weights.
    rows : (m,) integers
        Positions of the rows in the table that was given.
    how : str
        How the rows were held out, in words.
    log_density : (m,) array or None
        log p(x); None for a model without densities.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from sklearn.datasets import load_iris
    >>> record = GaussianNB(rule="ml").fit(*load_iris(return_X_y=True)).held_out_
    >>> record.how, record.log_posterior.shape
    ('each row left out exactly', (150, 3))
    """

    log_posterior: Array
    codes: Array
    weight: Array
    rows: Array
    how: str
    log_density: Array | None = None

    def verify(self) -> None:
        """Raises ValueError if the arrays, which may come from a model file, do not fit together."""
        m, k = require_array("log_posterior", self.log_posterior, (None, None)).shape
        for name in ("codes", "rows"):
            require_array(name, getattr(self, name), (m,), "iu")
        require_length("weight", require_array("weight", self.weight, (None,)), m)
        require(m > 0, "no held-out row")
        require(bool((self.weight > 0).all()), "weights of held-out rows must be positive")
        require(bool(((self.codes >= 0) & (self.codes < k)).all()), "codes of classes that do not exist")
        require(not bool(np.isnan(self.log_posterior).any()), "log_posterior contains NaN")
        if self.log_density is not None:
            require_array("log_density", self.log_density, (m,))


def keep_shifted(model: Any, adjusted: Any, log_change: Array, frequencies: Array) -> Any:
    """The model that was adjusted to other class frequencies, with the record of the original one, if there is one."""
    if HELD_OUT in vars(model):
        vars(adjusted)[HELD_OUT] = feature("held_out").shifted(vars(model)[HELD_OUT], log_change, frequencies)
    return adjusted

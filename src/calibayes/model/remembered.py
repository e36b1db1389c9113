"""The training rows that an estimator refers to after `fit`, for results that are computed only if they are asked for.

The reference is to the table as it was given: nothing is copied. It is part of this process alone: pickles, copies and model
files do not hold it. `docs/held-out.md` says what it is used for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

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

Estimator = TypeVar("Estimator")
_is_inner: ContextVar[bool] = ContextVar("is_inner", default=False)


class TrainingReference(NamedTuple):
    """What `fit` was given."""

    X: Any
    y: Any
    sample_weight: Any


def remembering(cls: type[Estimator]) -> type[Estimator]:
    """A class whose `fit` remembers its rows, and whose `partial_fit` forgets them: they are not all rows of the model.

    Models that are trained inside a `fit`, such as members of an ensemble, remember nothing.
    """
    changed: Any = cls
    if isinstance(vars(cls).get("fit"), FunctionType):
        changed.fit = _remembering_fit(changed.fit)
    if isinstance(vars(cls).get("partial_fit"), FunctionType):
        changed.partial_fit = _forgetting(changed.partial_fit)
    return cls


def _remembering_fit(fit: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fit)
    def remembered(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        with _inner():
            fitted = fit(self, X, y, sample_weight)
        if not _is_inner.get() and not is_private(self):
            vars(self)[TRAINING] = TrainingReference(X, y, sample_weight)
        else:
            vars(self).pop(OUT_OF_FOLD, None)
        return fitted

    return remembered


def is_private(model: Any) -> bool:
    """Whether an estimator is to be trained with differential privacy, so that nothing may refer to its rows."""
    return getattr(getattr(model, "training", None), "privacy", None) is not None


def _forgetting(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def changed(self: Any, *given: Any, **named: Any) -> Any:
        with _inner():
            result = method(self, *given, **named)
        forget_rows(self)
        return result

    return changed


@contextmanager
def _inner() -> Iterator[None]:
    token = _is_inner.set(True)
    try:
        yield
    finally:
        _is_inner.reset(token)


def forget_rows(model: Estimator) -> Estimator:
    """The model, without its reference to training rows and what was computed from them: it is another model now."""
    for name in (*PROCESS_ONLY, HELD_OUT, DRIFT, SURPRISE):
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

"""Constructor parameters: estimators as dataclasses, and checks made in `fit`.

Each check raises ValueError with what was given and what is expected.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from calibayes.core.protocols import Rule
from calibayes.estimators.interface import nested_parameters, pickles
from calibayes.estimators.interface.remembered import PROCESS_ONLY, remembering
from calibayes.estimators.interface.streams.lazy_predictions import predicting_lazily
from calibayes.learn.progress import Callback

Estimator = TypeVar("Estimator")
HOME = "_home"
"""Attribute of an estimator: where its training rows are, if they are on a device."""


@dataclass_transform(eq_default=False, kw_only_default=True)
def estimator(cls: type[Estimator]) -> type[Estimator]:
    """A dataclass with keyword parameters whose signature lists the parameters of subclasses before those of bases.

    Its `get_params` and `set_params` also reach the fields of immutable parameters, such as ``rule__lam``. Its pickles hold
    the version of the library. Its predictions for Dask collections are lazy. Its `fit` remembers the training rows.
    """
    made: Any = remembering(predicting_lazily(dataclass(eq=False, repr=False, kw_only=True)(cls)))
    if getattr(made, "set_params", None) is BaseEstimator.set_params:
        made.get_params, made.set_params = nested_parameters.get_params, nested_parameters.set_params
    if getattr(made, "__getstate__", None) is BaseEstimator.__getstate__:
        made.__getstate__, made.__setstate__ = pickles.get_state, pickles.set_state
    initializer: Any = made.__init__
    signature = inspect.signature(initializer)
    classes = [base for base in made.__mro__ if "__dataclass_fields__" in vars(base)]
    declared = [name for base in classes for name in vars(base).get("__annotations__", {})]
    rank = {
        name: position for position, name in enumerate(declared)
    }  # a parameter keeps the place of its base

    def place(parameter: inspect.Parameter) -> tuple[bool, int]:
        is_keyword = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        return is_keyword, rank.get(parameter.name, -1) if is_keyword else 0

    initializer.__signature__ = signature.replace(parameters=sorted(signature.parameters.values(), key=place))
    return made  # type: ignore[no-any-return]


def unfitted_copy(model: Any) -> Any:
    """A copy of an estimator with its constructor parameters alone."""
    blank, parameters = copy.copy(model), BaseEstimator.get_params(model, deep=False)
    # Attributes with a leading underscore are scikit-learn's own (output format, metadata requests, callbacks), but for
    # the training rows and their device.
    blank.__dict__ = {
        name: value
        for name, value in vars(model).items()
        if name in parameters or (name.startswith("_") and name not in (HOME, *PROCESS_ONLY))
    }
    return blank


def adopt(model: Estimator, state: dict[str, Any]) -> Estimator:
    """Replace all attributes of an estimator in one assignment, so that a failed call changes nothing."""
    model.__dict__ = state
    return model


WHOLE = (int, np.integer)
REAL = (int, float, np.integer, np.floating)


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    is_whole = isinstance(value, WHOLE) and type(value) is not bool
    if not is_whole or value < least or (most is not None and value > most):
        limits = f"{least} on" if most is None else f"{least} to {most}"
        raise ValueError(f"{name} must be a whole number from {limits}, got {value!r}")
    return int(value)


def number(name: str, value: Any, least: float, most: float) -> float:
    if not isinstance(value, REAL) or not least <= value <= most:
        raise ValueError(f"{name} must be a number between {least:g} and {most:g}, got {value!r}")
    return float(value)


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def open_fraction(name: str, value: Any) -> float:
    if not isinstance(value, REAL) or not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, both excluded, got {value!r}")
    return float(value)


def listed_callbacks(value: Any) -> list[Callback]:
    if value is None:
        return []
    if not isinstance(value, Sequence) or not all(callable(call) for call in value):
        raise ValueError(f"callbacks must be a list of functions, got {value!r}")
    return list(value)


def abilities_present(rule: Rule, name: str, family: Any) -> None:
    """Raises ValueError if a family lacks an ability that the rule needs."""
    for need in rule.needs:
        if not isinstance(family, need):
            ability = (need.__doc__ or need.__name__).strip().rstrip(".").lower()
            raise ValueError(
                f"rule {rule.name!r} needs families with {ability}, which {name!r} ({type(family).__name__}) lacks: "
                "choose another rule, or another family for these columns"
            )


def seed_of(random_state: Any) -> int:
    """A seed drawn from ``random_state``; None always gives the same one."""
    return int(check_random_state(0 if random_state is None else random_state).randint(2**31 - 1))

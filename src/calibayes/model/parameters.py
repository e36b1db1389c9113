"""Constructor parameters: estimators as dataclasses, and checks made in `fit`.

Each check raises ValueError with what was given and what is expected.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from calibayes.core.protocols import Rule
from calibayes.learn.run import Callback
from calibayes.model.attributes import HOME
from calibayes.model.training_rows import PROCESS_ONLY

# -- Parameters of parameters, such as ``rule__lam`` of an estimator with ``rule=GDT()`` ---------------------
#
# scikit-learn changes a nested object in place. Rules, step controls, priors, stops and engines are frozen dataclasses, so
# here `set_params` replaces such an object by a copy with other values. Every estimator has these two methods.


def get_params(self: Any, deep: bool = True) -> dict[str, Any]:
    """Names and values of the constructor parameters.

    Parameters
    ----------
    deep : bool, default=True
        Whether to list the parameters of nested objects, too, such as ``rule__lam`` for ``rule=GDT()``.
    """
    listed: dict[str, Any] = BaseEstimator.get_params(self, deep)
    if deep:
        for name, value in BaseEstimator.get_params(self, deep=False).items():
            listed |= _nested_values(name, value)
    return listed


def set_params(self: Any, **parameters: Any) -> Any:
    """Set constructor parameters, also those of nested objects, such as ``rule__lam=0.3`` for ``rule=GDT()``.

    Rules, priors and stops are immutable: the estimator gets a changed copy. Returns the estimator.
    """
    direct, nested = _split(parameters)
    BaseEstimator.set_params(self, **direct)
    current = BaseEstimator.get_params(self, deep=False)
    for name, changes in nested.items():
        value = current.get(name)
        if name not in current or hasattr(value, "set_params"):
            BaseEstimator.set_params(self, **{f"{name}__{inner}": new for inner, new in changes.items()})
        else:
            setattr(self, name, _changed(name, value, changes))
    return self


def _split(parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Parameters without a double underscore, and the others grouped by what comes before it."""
    direct: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for key, value in parameters.items():
        name, separator, inner = key.partition("__")
        if separator:
            nested.setdefault(name, {})[inner] = value
        else:
            direct[name] = value
    return direct, nested


def _nested_values(name: str, value: Any) -> dict[str, Any]:
    """``name__field`` -> its value, for the fields of an immutable object, the fields of these fields and so on."""
    listed: dict[str, Any] = {}
    for inner in _field_names(value):
        key, part = f"{name}__{inner}", getattr(value, inner)
        listed |= {key: part, **_nested_values(key, part)}
    return listed


def _changed(name: str, value: Any, changes: Mapping[str, Any]) -> Any:
    """A copy of an immutable object with other values of its fields. Raises ValueError if it has no such field."""
    direct, nested = _split(changes)
    known = _field_names(value)
    for inner in (*direct, *nested):
        if inner not in known:
            has = f"has the parameters {', '.join(known)}" if known else "has no parameters that can be set"
            raise ValueError(f"Invalid parameter {name}__{inner}: {name}={value!r} {has}. Set {name} first.")
    copied = replace(value, **direct)
    parts = {part: _changed(f"{name}__{part}", getattr(copied, part), nested[part]) for part in nested}
    return replace(copied, **parts)


def _field_names(value: Any) -> tuple[str, ...]:
    """The parameters of a frozen dataclass; none for other values.

    Fields that are not compared hold what training adds, such as a family's layout.
    """
    settings = getattr(value, "__dataclass_params__", None)
    if settings is None or isinstance(value, type) or not settings.frozen:
        return ()
    return tuple(field.name for field in fields(value) if field.init and field.compare)


# -- Constructor parameters: estimators as dataclasses, and checks made in `fit` -----------------------------
#
# Each check raises ValueError with what was given and what is expected.

Estimator = TypeVar("Estimator")


@dataclass_transform(eq_default=False, kw_only_default=True)
def estimator(cls: type[Estimator]) -> type[Estimator]:
    """A dataclass with keyword parameters whose signature lists the parameters of subclasses before those of bases.

    Parameters are attributes of instances alone: ``dir()`` of the class does not list them.
    """
    made: Any = dataclass(eq=False, repr=False, kw_only=True)(cls)
    classes = [base for base in made.__mro__ if "__dataclass_fields__" in vars(base)]
    declared = [name for base in classes for name in vars(base).get("__annotations__", {})]
    rank = {name: place for place, name in enumerate(declared)}  # a parameter keeps the place of its base

    def place(parameter: inspect.Parameter) -> tuple[bool, int]:
        is_keyword = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        return is_keyword, rank.get(parameter.name, -1) if is_keyword else 0

    signature = inspect.signature(made.__init__)
    ordered = sorted(signature.parameters.values(), key=place)
    made.__init__.__signature__ = signature.replace(parameters=ordered)
    for name in vars(made).keys() & signature.parameters.keys():
        delattr(made, name)
    return made


def copy_without(model: Estimator, names: Collection[str]) -> Estimator:
    """A shallow copy of an estimator without some attributes."""
    copied = object.__new__(type(model))
    copied.__dict__ = {name: value for name, value in vars(model).items() if name not in names}
    return copied


def unfitted_copy(model: Estimator) -> Estimator:
    """A copy of an estimator with its constructor parameters alone."""
    blank, parameters = object.__new__(type(model)), inspect.signature(type(model)).parameters
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
    try:
        return int(check_random_state(0 if random_state is None else random_state).randint(2**31 - 1))
    except (TypeError, ValueError):
        raise no_seed(random_state) from None


def no_seed(random_state: Any) -> ValueError:
    """The error for a ``random_state`` that is no generator and seeds none."""
    expected = "None, a whole number from 0 to 2**32 - 1 or a RandomState"
    return ValueError(f"random_state must be {expected}, got {random_state!r}")

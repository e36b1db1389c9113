"""Parameters of parameters, such as ``rule__lam`` of an estimator with ``rule=GDT()``.

scikit-learn changes a nested object in place. Rules, step controls, priors, stops and engines are frozen dataclasses, so
here `set_params` replaces such an object by a copy with other values. The decorator `parameters.estimator` gives these two
methods to every estimator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from sklearn.base import BaseEstimator


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
    inner_copies = {
        inner: _changed(f"{name}__{inner}", getattr(copied, inner), nested[inner]) for inner in nested
    }
    return replace(copied, **inner_copies)


def _field_names(value: Any) -> tuple[str, ...]:
    """The parameters of a frozen dataclass; none for other values.

    Fields that are not compared hold what training adds, such as a family's layout.
    """
    settings = getattr(value, "__dataclass_params__", None)
    if settings is None or isinstance(value, type) or not settings.frozen:
        return ()
    return tuple(field.name for field in fields(value) if field.init and field.compare)

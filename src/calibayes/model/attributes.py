"""Attributes of estimators: values of the fitted model, arrays on the device of the training rows, methods of other modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import MethodType
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array
from calibayes.model.delegates import feature

Method = TypeVar("Method", bound=Callable[..., Any])

HOME = "_home"
"""Attribute of an estimator: where its training rows are, if they are on a device."""


def fitted_of(model: Any) -> Any:
    """The fitted value of an estimator. Raises NotFittedError, which is an AttributeError, if there is none."""
    fitted = vars(model).get("fitted_")
    if fitted is None:
        check_is_fitted(model, "fitted_")
    return fitted


def at_home(estimator: Any, value: Any) -> Any:
    """A NumPy array, or a list of them, as arrays of the library and device of the training rows."""
    home = vars(estimator).get(HOME)
    return value if home is None else feature("device").returned_home(home, value)


class array_property(property):
    """A fitted attribute: a property whose array is of the library and device of the training rows."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        value = super().__get__(instance, owner)
        return value if instance is None else at_home(instance, value)


def array_of(source: str, family: str, name: str, *, in_type_of_columns: bool = False) -> Any:
    """The fitted attribute with an array of a family, of those that the attribute ``source`` holds."""

    def value(model: Any) -> Array:
        array = getattr(model, source)[family][name]
        return np.asarray(array, dtype=model.fitted_.number_type if in_type_of_columns else None)

    return array_property(value)


def numpy_classes(estimator: Any) -> Array:
    """The class labels of a fitted estimator as a NumPy array."""
    classes = estimator.classes_
    return classes if isinstance(classes, np.ndarray) else feature("device").to_numpy(classes)


class FittedAttribute:
    """An attribute of an estimator with the value of a field of its ``fitted_``.

    Raises AttributeError if the estimator is not fitted, or if the field is None.
    """

    def __init__(self, field: str, doc: str) -> None:
        self.field, self.__doc__ = field, doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        return self if model is None else self.value(model, fitted_of(model))

    def __set__(self, model: Any, value: Any) -> None:
        raise AttributeError(f"{self.name!r} is read from `fitted_` and cannot be set")

    def value(self, model: Any, fitted: Any) -> Any:
        """The value in a fitted model."""
        return self.present(model, getattr(fitted, self.field))

    def present(self, model: Any, value: Any) -> Any:
        """The value. Raises AttributeError if it is missing."""
        if value is None:
            raise AttributeError(f"this {type(model).__name__} has no attribute {self.name!r}")
        return value


class ArrayAttribute(FittedAttribute):
    """The same, in the library and on the device of the training rows."""

    def value(self, model: Any, fitted: Any) -> Any:
        return at_home(model, getattr(fitted, self.field))


class OptionalAttribute(FittedAttribute):
    """The same, with None as a value."""

    def value(self, model: Any, fitted: Any) -> Any:
        return getattr(fitted, self.field)


class Note(FittedAttribute):
    """An attribute with the value of a note of the fitted model. Raises AttributeError if there is no such note."""

    def value(self, model: Any, fitted: Any) -> Any:
        return self.present(model, fitted.notes.get(self.field))


class Extra(FittedAttribute):
    """What a feature has added to the fitted model. Raises AttributeError if it has not."""

    def value(self, model: Any, fitted: Any) -> Any:
        return self.present(model, fitted.extras.get(self.field))


class Receipts(FittedAttribute):
    """Records that features have added to the fitted model; none if there are none."""

    def value(self, model: Any, fitted: Any) -> Any:
        return fitted.extras.get(self.field, ())


class LastReceipt(Extra):
    """The last of such records. Raises AttributeError if there is none."""

    def value(self, model: Any, fitted: Any) -> Any:
        return super().value(model, fitted)[-1]


# -- Methods: each call on the attributes of one fit, and methods that functions of other modules implement -------------


def on_one_state(method: Method) -> Method:
    """A method that computes from the attributes at the time of the call, also if another thread fits the estimator meanwhile.

    `fit` replaces all attributes in one assignment (`calibayes.model.parameters.adopt`), so that those that were read before
    stay together: the method is called with an estimator that shares them.
    """

    @wraps(method)
    def with_state(model: Any, *given: Any, **options: Any) -> Any:
        state = object.__new__(type(model))
        state.__dict__ = model.__dict__
        return method(state, *given, **options)

    return cast(Method, with_state)


class Delegate:
    """A method that a function of another module implements; see `delegate`."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        function = getattr(import_module(f"calibayes.{self.module}"), self.name)
        return function if instance is None else MethodType(on_one_state(function), instance)


def delegate(module: str, name: str = "") -> Any:
    """A method that a function of a module above the model implements: that of the same name, or of the given one."""
    return Delegate(module, name)

"""Attributes of an estimator that are read from its fitted model."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from calibayes.estimators.generative.fitted import Fitted
from calibayes.estimators.interface.device_input import at_home
from calibayes.estimators.interface.fitted_state import require_same_table, verified_conversion


def fitted_of(model: Any) -> Any:
    """The fitted value of an estimator. Raises NotFittedError, which is an AttributeError, if there is none."""
    check_is_fitted(model, "fitted_")
    return model.fitted_


def verify_attributes(model: Any) -> None:
    """Raises ValueError unless the fitted attributes agree; see `calibayes.core.verify`."""
    conversion = verified_conversion(model, Fitted)
    if conversion is not None:
        require_same_table(conversion, model.fitted_.binding)


class FittedAttribute:
    """An attribute of an estimator with the value of a field of its ``fitted_``.

    Raises AttributeError if the estimator is not fitted, or if the field is None.
    """

    def __init__(self, field: str, doc: str) -> None:
        self.field, self.__doc__ = field, doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self
        value = getattr(fitted_of(model), self.field)
        if value is None:
            raise AttributeError(f"this {type(model).__name__} has no attribute {self.name!r}")
        return value

    def __set__(self, model: Any, value: Any) -> None:
        raise AttributeError(f"{self.name!r} is read from `fitted_` and cannot be set")


class ArrayAttribute(FittedAttribute):
    """The same, in the library and on the device of the training rows."""

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        return self if model is None else at_home(model, super().__get__(model, owner))


class OptionalAttribute(FittedAttribute):
    """The same, with None as a value."""

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        return self if model is None else getattr(fitted_of(model), self.field)


class LastAttribute(FittedAttribute):
    """The last entry of a field. Raises AttributeError if it is empty."""

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self
        entries = getattr(fitted_of(model), self.field)
        if not entries:
            raise AttributeError(f"this {type(model).__name__} has no attribute {self.name!r}")
        return entries[-1]


class Note(FittedAttribute):
    """An attribute with the value of a note of the fitted model. Raises AttributeError if there is no such note."""

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self
        notes = fitted_of(model).notes
        if self.field not in notes:
            raise AttributeError(f"this {type(model).__name__} has no attribute {self.name!r}")
        return notes[self.field]

"""Estimators as dataclasses: fields are constructor parameters, the model's own first, those of training last."""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

Estimator = TypeVar("Estimator")


@dataclass_transform(eq_default=False, kw_only_default=True)
def estimator(cls: type[Estimator]) -> type[Estimator]:
    """A dataclass with keyword parameters whose signature lists the parameters of subclasses before those of bases."""
    made = dataclass(eq=False, repr=False, kw_only=True)(cls)
    initializer: Any = made.__init__
    signature = inspect.signature(initializer)
    own = [name for base in made.__mro__ for name in vars(base).get("__annotations__", {})]
    rank = {name: position for position, name in reversed(list(enumerate(own)))}

    def place(parameter: inspect.Parameter) -> tuple[bool, int]:
        is_keyword = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        return is_keyword, rank.get(parameter.name, -1) if is_keyword else 0

    initializer.__signature__ = signature.replace(parameters=sorted(signature.parameters.values(), key=place))
    return made


def unfitted_copy(model: Any) -> Any:
    """A copy of an estimator with its constructor parameters alone."""
    blank = copy.copy(model)
    blank.__dict__ = {name: getattr(model, name) for name in model.get_params(deep=False)}
    return blank


def adopt(model: Estimator, state: dict[str, Any]) -> Estimator:
    """Replace all attributes of an estimator in one assignment, so that a failed call changes nothing."""
    model.__dict__ = state
    return model

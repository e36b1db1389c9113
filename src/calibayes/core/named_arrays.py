"""Arithmetic on named arrays, nested to any depth: how statistics are added, subtracted and scaled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

import numpy as np

NestedArrays = Mapping[str, Any]
"""Names -> arrays, numbers or further trees."""


def map_leaves(function: Callable[..., Any], *trees: Any) -> Any:
    """Apply ``function`` leaf by leaf to trees with the same names.

    >>> map_leaves(lambda a, b: a + b, {"x": 1}, {"x": 2})
    {'x': 3}
    """
    first = trees[0]
    if not isinstance(first, dict | Mapping):  # the test for a dictionary is cheaper
        return function(*trees)
    if any(tree.keys() != first.keys() for tree in trees[1:]):
        raise ValueError(f"trees with different names: {[sorted(tree) for tree in trees]}")
    return {name: map_leaves(function, *(tree[name] for tree in trees)) for name in first}


def add(*trees: NestedArrays) -> Any:
    """Sum of trees, from left to right."""
    return reduce(lambda left, right: map_leaves(lambda a, b: a + b, left, right), trees)


def total(trees: Iterable[NestedArrays]) -> Any:
    """Sum of any number of trees, from left to right, accumulated in the memory of the first sum; inputs are not changed.

    >>> total([{"x": 1}, {"x": 2}, {"x": 4}])
    {'x': 7}
    """
    rest = iter(trees)
    first, second = next(rest), next(rest, None)
    if second is None:
        return first
    return reduce(lambda left, right: map_leaves(_added, left, right), rest, add(first, second))


def _added(left: Any, right: Any) -> Any:
    """A sum, stored in the left array if shape and type allow it."""
    is_array_of_shape = isinstance(left, np.ndarray) and left.shape == np.shape(right)
    if is_array_of_shape and left.dtype == np.result_type(left, right):
        left += right
        return left
    return left + right


def subtract(left: NestedArrays, right: NestedArrays) -> Any:
    return map_leaves(lambda a, b: a - b, left, right)


def scale(factor: float, tree: NestedArrays) -> Any:
    return map_leaves(lambda a: factor * a, tree)


def combine(left_factor: float, left: NestedArrays, right_factor: float, right: NestedArrays) -> Any:
    """``left_factor * left + right_factor * right``, leaf by leaf."""
    return map_leaves(lambda a, b: left_factor * a + right_factor * b, left, right)

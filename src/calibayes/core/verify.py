"""Checks of values that come from outside, such as a model file. Each raises ValueError with what is wrong.

A value class has a method ``verify()`` if its parts may fail to fit together. Training never calls it: what training makes
is valid by construction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from calibayes.core.protocols import Array

TOLERANCE = 1e-6
"""Largest distance of a sum of probabilities from 1: far above rounding, far below a damaged table."""


def require(condition: bool, problem: str) -> None:
    """Raises ValueError with the problem unless the condition holds."""
    if not condition:
        raise ValueError(problem)


def require_array(name: str, value: Any, shape: Sequence[int | None], kinds: str = "f") -> Array:
    """An array of this shape (None: any length) whose type is of one of the kinds, as in ``numpy.dtype.kind``."""
    require(isinstance(value, np.ndarray), f"{name} must be an array, got {type(value).__name__}")
    has_shape = len(value.shape) == len(shape) and all(
        size is None or size == given for size, given in zip(shape, value.shape, strict=True)
    )
    expected = ", ".join("any" if size is None else str(size) for size in shape)
    require(has_shape, f"{name} must have shape ({expected}), got {value.shape}")
    require(value.dtype.kind in kinds, f"{name} has the type {value.dtype}")
    return value


def require_finite(
    name: str, value: Any, shape: Sequence[int | None], least: float = -np.inf, kinds: str = "f"
) -> Array:
    """An array of finite numbers, none below ``least``."""
    array = require_array(name, value, shape, kinds)
    require(bool(np.isfinite(array).all()), f"{name} contains NaN or infinity")
    require(bool((array >= least).all()), f"{name} contains numbers below {least:g}")
    return array


def require_log_probabilities(name: str, value: Any, shape: Sequence[int | None]) -> None:
    """Logarithms of probabilities that sum to 1 along the last axis; -inf is a probability of 0."""
    sums = probabilities_of(name, require_array(name, value, shape)).sum(axis=-1)
    require_sums_of_one(name, sums, "logarithms of probabilities")


def require_probabilities(name: str, value: Any, shape: Sequence[int | None]) -> Array:
    """Probabilities that sum to 1 along the last axis."""
    array = require_finite(name, value, shape, least=0.0)
    require_sums_of_one(name, array.sum(axis=-1))
    return array


def require_positions(name: str, positions: Iterable[int], size: int) -> None:
    """Whole numbers from 0 to ``size`` - 1."""
    outside = [j for j in positions if not 0 <= j < size]
    require(not outside, f"{name} contains the position {outside[:1]} of {size}")


def require_instance(name: str, value: Any, kind: type) -> None:
    """An object of a class."""
    require(isinstance(value, kind), f"{name} must be a {kind.__name__}, got {type(value).__name__}")


def require_columns(name: str, indices: Sequence[int]) -> None:
    """Positions of columns in a table, each at most once."""
    require(all(j >= 0 for j in indices), f"{name} contains a negative position")
    require(len(set(indices)) == len(indices), f"{name} contains a position twice")


def require_ascending(name: str, values: Array, *, strictly: bool = True) -> None:
    """An array (n,) of values of any type in ascending order; if ``strictly``, no two are equal."""
    try:
        in_order = bool(np.all(values[:-1] < values[1:] if strictly else values[:-1] <= values[1:]))
    except TypeError:  # values that cannot be compared
        in_order = False
    require(in_order, f"{name} must be in ascending order" + ", each once" * strictly)


def require_number(name: str, value: Any, least: float = -np.inf, most: float = np.inf) -> None:
    """A finite number in a range."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    require(is_number, f"{name} must be a number, got {type(value).__name__}")
    in_range = least <= value <= most and abs(value) < np.inf
    require(bool(in_range), f"{name} must be a finite number between {least:g} and {most:g}, got {value}")


def unknown(parameter: str, given: Any, known: Collection[str]) -> ValueError:
    """The error for a parameter that is none of the known names."""
    return ValueError(f"{parameter} must be one of {', '.join(map(repr, known))}, got {given!r}")


def require_length(name: str, value: Sized, length: int) -> None:
    require(len(value) == length, f"{name} must have {length} entries, got {len(value)}")


def require_names(name: str, given: Iterable[str], expected: Iterable[str]) -> None:
    """The same names, in any order."""
    given, expected = set(given), set(expected)
    different = sorted(given ^ expected)
    require(not different, f"{name}: {different[:1]} is missing or unknown")


def require_arrays(
    name: str, given: Mapping[str, Any], shapes: Mapping[str, Sequence[int | None]], least: float = -np.inf
) -> None:
    """Exactly these names, each an array of finite numbers of its shape, none below ``least``."""
    require_names(name, given, shapes)
    for key, shape in shapes.items():
        require_finite(key, given[key], shape, least)


def require_sums_of_one(name: str, sums: Array, terms: str = "probabilities") -> None:
    """Sums of probabilities: 1 up to rounding. ``terms`` says in the message what the sums are of."""
    is_one = np.abs(sums - 1.0) <= TOLERANCE
    require(bool(np.all(is_one)), f"{name} are not {terms} that sum to 1")


def probabilities_of(name: str, logs: Array) -> Array:
    """The probabilities that these are the logarithms of. Raises ValueError if one is above 1."""
    require(bool((logs <= TOLERANCE).all()), f"{name} contains NaN, or logarithms of more than 1")
    return np.exp(logs)


def require_close(name: str, value: Array, expected: Array, scale: Array | float) -> None:
    """Numbers that differ from those they are derived from by rounding only, in units of ``scale``."""
    is_close = np.abs(value - expected) <= TOLERANCE * scale
    require(bool(np.all(is_close)), f"{name} does not agree with the numbers it is derived from")

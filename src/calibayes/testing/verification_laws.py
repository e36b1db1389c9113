"""`Verifiable`: what training computes is accepted, and damaged arrays are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, cast

import numpy as np

from calibayes.core.abilities import NaturalParameters, Structured, Verifiable, VerifiableStructure
from calibayes.core.named_arrays import add, scale
from calibayes.core.protocols import Array, Arrays
from calibayes.testing.law import FamilyCase, has, law

COUNTS = ("count", "zeros", "ones", "rows", "sum", "component", "single", "pair", "triple")
"""Statistics that are sums of weights, which cannot be negative."""
POSITIVE = ("variance", "covariance", "whitener", "rate")
"""Parameters of which a negative one is invalid."""
TOO_MANY = 10**12
"""More levels than fit into memory."""


@law(has(Verifiable))
def trained_values_are_accepted(case: FamilyCase) -> None:
    """Before and after `prepare`, with missing values, after steps in any direction and gradient steps."""
    bound, family = cast(Any, case.family), cast(Any, case.prepared())
    bound.verify()
    family.verify()
    for columns in case.tables():
        start = family.statistics(columns, case.labels())
        bound.verify_statistics(case.family.statistics(columns, case.labels()))
        family.verify_statistics(start)
        parameters = family.parameters(start)
        family.verify_parameters(parameters)
        expected = family.statistics(columns, case.labels(), parameters)
        family.verify_parameters(family.parameters(expected))
        for number, step in enumerate((0.1, 1.0, 100.0)):
            direction = family.statistics(columns, case.weights(number), parameters)
            kept = family.keep_valid(start, add(start, scale(step, direction))).statistics
            family.verify_statistics(kept)
            family.verify_parameters(family.parameters(kept))
        if isinstance(family, NaturalParameters):
            family.verify_parameters(family.gradient_step(parameters, direction, 1e-3).parameters)  # type: ignore[attr-defined]


@law(has(VerifiableStructure, Structured))
def structure_statistics_are_accepted_unless_damaged(case: FamilyCase) -> None:
    family = cast(Any, case.family)
    sums = family.structure_statistics(case.columns, case.labels())
    family.verify_structure_statistics(sums)
    _assert_damaged_are_refused(family.verify_structure_statistics, sums, _damaged_statistics)
    _assert_refused(_with_more_levels(family).verify_structure_statistics, sums)


@law(has(Verifiable))
def damaged_parameters_are_refused(case: FamilyCase) -> None:
    """NaN, other shapes, types or names; probabilities that do not sum to 1; variances and rates below 0."""
    family = cast(Any, case.prepared())
    parameters = family.parameters(case.start())
    family.verify_parameters(parameters)
    _assert_damaged_are_refused(family.verify_parameters, parameters, _damaged_parameters)


@law(has(Verifiable))
def damaged_statistics_are_refused(case: FamilyCase) -> None:
    """NaN, other shapes, types or names; negative counts."""
    family = cast(Any, case.prepared())
    family.verify_statistics(case.start())
    _assert_damaged_are_refused(family.verify_statistics, case.start(), _damaged_statistics)


@law(has(Verifiable))
def damaged_prepared_values_are_refused(case: FamilyCase) -> None:
    """NaN or other shapes of the arrays that belong to the family and its layout."""
    family = cast(Any, case.prepared())
    family.verify()
    for name, value in _float_arrays(family):
        for damaged in _damaged_array(value):
            _assert_refused(replace(family, **{name: damaged}).verify)
    for name, value in _float_arrays(family.layout):
        for damaged in _damaged_array(value):
            layout = replace(family.layout, **{name: damaged})
            _assert_refused(replace(family, layout=layout).verify)


@law(has(Verifiable), lambda case: bool(case.layout.levels))
def layouts_larger_than_their_arrays_are_refused(case: FamilyCase) -> None:
    """A layout that claims more cells than the arrays have is refused, before anything of that size is allocated."""
    family = cast(Any, case.prepared())
    start = case.start()
    parameters, larger = family.parameters(start), _with_more_levels(family)
    _assert_refused(larger.verify_statistics, start)
    _assert_refused(larger.verify_parameters, parameters)
    if len(case.layout.log_volume):
        _assert_refused(larger.verify)


def _with_more_levels(family: Any) -> Any:
    """The family with a layout whose first column has more levels than fit into memory."""
    layout = family.layout
    return replace(family, layout=replace(layout, levels=(TOO_MANY, *layout.levels[1:])))


def _float_arrays(record: Any) -> list[tuple[str, Array]]:
    """The arrays of numbers among the fields of a dataclass that are not empty."""
    values = ((field.name, getattr(record, field.name)) for field in fields(record))
    arrays = [(name, value) for name, value in values if isinstance(value, np.ndarray)]
    return [(name, array) for name, array in arrays if array.dtype.kind == "f" and array.size]


def _assert_refused(check: Callable[..., None], *arguments: Any) -> None:
    """The check raises ValueError."""
    try:
        check(*arguments)
    except ValueError:
        return
    raise AssertionError(f"{check} accepts {arguments}")


def _assert_damaged_are_refused(
    check: Callable[[Arrays], None], arrays: Arrays, damaged: Callable[[str, Array], Iterator[Array]]
) -> None:
    """The check refuses the arrays with one of them damaged, left out or added."""
    for name, value in arrays.items():
        _assert_refused(check, {other: array for other, array in arrays.items() if other != name})
        for replacement in damaged(name, value):
            _assert_refused(check, {**arrays, name: replacement})
    _assert_refused(check, {**arrays, "other": next(iter(arrays.values()))})


def _damaged_parameters(name: str, value: Array) -> Iterator[Array]:
    """The damaged forms of a parameter."""
    yield from _damaged_array(value)
    if name.startswith("log_"):
        yield value + np.log(2.0)
    if name in POSITIVE:
        yield -value


def _damaged_statistics(name: str, value: Array) -> Iterator[Array]:
    """The damaged forms of a statistic."""
    yield from _damaged_array(value)
    if name in COUNTS and value.size:
        yield -1.0 - value


def _damaged_array(value: Array) -> Iterator[Array]:
    """An array with one NaN, of another type, and with each axis shortened or lengthened by one."""
    if value.size:
        with_nan = np.array(value)
        with_nan.flat[value.size - 1] = np.nan
        yield with_nan
    yield value.astype(object)
    yield np.nan_to_num(value).astype(np.int64)
    for axis in range(value.ndim):
        if value.shape[axis]:
            yield np.take(value, range(value.shape[axis] - 1), axis=axis)
        yield np.pad(value, [(0, int(other == axis)) for other in range(value.ndim)])

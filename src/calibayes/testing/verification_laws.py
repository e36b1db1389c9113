"""`Verifiable`: what training computes is accepted, and damaged arrays are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, TypeAlias, cast

import numpy as np

from calibayes.core.abilities import NaturalParameters, Structured, Verifiable, VerifiableStructure
from calibayes.core.named_arrays import add, scale
from calibayes.core.protocols import Array, Arrays
from calibayes.testing.law import FamilyCase, has, has_support, law

TOO_MANY = 10**12
"""More levels than fit into memory."""
MORE_LEVELS = "a layout of more levels than the arrays have"
LOG_2 = np.log(2.0)
MOST = 1.05
"""Most that a density may sum to over the support of a case: 1, and what sums over a grid lack in precision."""
Damaged: TypeAlias = tuple[str, Array]
"""What was done to an array, and the result."""


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
    _assert_damaged_are_refused(family.verify_structure_statistics, sums, case.nonnegative)
    _assert_refused(MORE_LEVELS, _with_more_levels(family).verify_structure_statistics, sums)


@law(has(Verifiable))
def damaged_parameters_are_refused(case: FamilyCase) -> None:
    """NaN, other shapes, types or names."""
    family = cast(Any, case.prepared())
    parameters = family.parameters(case.start())
    family.verify_parameters(parameters)
    _assert_damaged_are_refused(family.verify_parameters, parameters)


@law(has(Verifiable), has_support)
def parameters_without_a_density_are_refused(case: FamilyCase) -> None:
    """A parameter that is negated or moved by log 2 is refused if the density is then not finite, or above 1 in total.

    Probabilities then sum to 2 or 1/2, for example. A density of less than 1 may lie outside of the support of the case.
    """
    family, (points, widths) = cast(Any, case.prepared()), case.support_widths()
    parameters = family.parameters(case.start())
    for name, value in parameters.items():
        moved = {"negated": -value, "each number plus log 2": value + LOG_2, "minus log 2": value - LOG_2}
        for damage, damaged in moved.items():
            changed = {**parameters, name: damaged}
            if _is_refused(family.verify_parameters, changed):
                continue
            with np.errstate(all="ignore"):
                total = widths.prod(axis=1) @ np.exp(family.log_density(points, changed))
            problem = f"the density sums to {total.max():.3g} over the support of the case, instead of 1"
            method = _named(family.verify_parameters)
            assert (total < MOST).all(), f"{method} must raise ValueError for {name!r}, {damage}: {problem}"


@law(has(Verifiable))
def damaged_statistics_are_refused(case: FamilyCase) -> None:
    """NaN, other shapes, types or names; negative numbers where the case says that there are none."""
    family = cast(Any, case.prepared())
    start = case.start()
    structure = family.structure_statistics(case.columns, case.labels()) if has(Structured)(case) else {}
    unknown = set(case.nonnegative) - {*start, *structure, "count"}
    assert not unknown, f"no statistics of these names, which the case lists as nonnegative: {unknown}"
    family.verify_statistics(start)
    _assert_damaged_are_refused(family.verify_statistics, start, case.nonnegative)


@law(has(Verifiable))
def damaged_prepared_values_are_refused(case: FamilyCase) -> None:
    """NaN or other shapes of the arrays that belong to the family and its layout."""
    family = cast(Any, case.prepared())
    family.verify()
    for name, value in _float_arrays(family):
        for damage, damaged in _damaged_array(value):
            _assert_refused(f"field {name!r}, {damage}", replace(family, **{name: damaged}).verify)
    for name, value in _float_arrays(family.layout):
        for damage, damaged in _damaged_array(value):
            layout = replace(family.layout, **{name: damaged})
            _assert_refused(f"layout.{name}, {damage}", replace(family, layout=layout).verify)


@law(has(Verifiable), lambda case: bool(case.layout.levels))
def layouts_larger_than_their_arrays_are_refused(case: FamilyCase) -> None:
    """A layout that claims more cells than the arrays have is refused, before anything of that size is allocated."""
    family = cast(Any, case.prepared())
    start = case.start()
    parameters, larger = family.parameters(start), _with_more_levels(family)
    _assert_refused(MORE_LEVELS, larger.verify_statistics, start)
    _assert_refused(MORE_LEVELS, larger.verify_parameters, parameters)
    if len(case.layout.log_volume):
        _assert_refused(MORE_LEVELS, larger.verify)


def _with_more_levels(family: Any) -> Any:
    """The family with a layout whose first column has more levels than fit into memory."""
    layout = family.layout
    return replace(family, layout=replace(layout, levels=(TOO_MANY, *layout.levels[1:])))


def _float_arrays(record: Any) -> list[tuple[str, Array]]:
    """The arrays of numbers among the fields of a dataclass that are not empty."""
    values = ((field.name, getattr(record, field.name)) for field in fields(record))
    arrays = [(name, value) for name, value in values if isinstance(value, np.ndarray)]
    return [(name, array) for name, array in arrays if array.dtype.kind == "f" and array.size]


def _named(check: Callable[..., None]) -> str:
    """The class and the name of a method."""
    return f"{type(cast(Any, check).__self__).__name__}.{check.__name__}"


def _is_refused(check: Callable[..., None], *arguments: Any) -> bool:
    """Whether the check raises ValueError."""
    try:
        check(*arguments)
    except ValueError:
        return True
    return False


def _assert_refused(damage: str, check: Callable[..., None], *arguments: Any) -> None:
    assert _is_refused(check, *arguments), f"{_named(check)} must raise ValueError for {damage}"


def _assert_damaged_are_refused(
    check: Callable[[Arrays], None], arrays: Arrays, nonnegative: Sequence[str] = ()
) -> None:
    """The check refuses the arrays with one of them damaged, left out or added, or negative though it cannot be."""
    for name, value in arrays.items():
        others = {other: array for other, array in arrays.items() if other != name}
        _assert_refused(f"arrays without {name!r}", check, others)
        for damage, damaged in _damaged_array(value):
            _assert_refused(f"{name!r}, {damage}", check, {**arrays, name: damaged})
        if name in nonnegative and value.size:
            damage = f"{name!r}, made negative (the case lists it as nonnegative)"
            _assert_refused(damage, check, {**arrays, name: -1.0 - value})
    _assert_refused("a further array 'other'", check, {**arrays, "other": next(iter(arrays.values()))})


def _damaged_array(value: Array) -> Iterator[Damaged]:
    """An array with one NaN, of another type, and with each axis shortened or lengthened by one."""
    if value.size:
        with_nan = np.array(value)
        with_nan.flat[value.size - 1] = np.nan
        yield "with one NaN", with_nan
    yield "as an array of objects", value.astype(object)
    yield "as integers", np.nan_to_num(value).astype(np.int64)
    for axis in range(value.ndim):
        if value.shape[axis]:
            yield f"axis {axis} shorter by one", np.take(value, range(value.shape[axis] - 1), axis=axis)
        longer = np.pad(value, [(0, int(other == axis)) for other in range(value.ndim)])
        yield f"axis {axis} longer by one", longer

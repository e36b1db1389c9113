"""NumPy functions that families use, for arrays on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from calibayes.backends.device.array import FUNCTIONS, DeviceArray, selected

Function = TypeVar("Function", bound=Callable[..., Any])


def answers(*functions: Callable[..., Any]) -> Callable[[Function], Function]:
    """Decorator: the function that answers calls of NumPy functions."""

    def register(function: Function) -> Function:
        FUNCTIONS.update(dict.fromkeys(functions, function))
        return function

    return register


def _first_on_device(values: Sequence[Any]) -> DeviceArray:
    return next(value for value in values if isinstance(value, DeviceArray))


def _reduction(name: str) -> Callable[..., Any]:
    return lambda array, axis=None, keepdims=False: getattr(array, name)(axis=axis, keepdims=keepdims)


for _function, _name in (
    (np.mean, "mean"),
    (np.max, "max"),
    (np.min, "min"),
    (np.any, "any"),
    (np.all, "all"),
):
    answers(_function)(_reduction(_name))


@answers(np.sum)
def _sum(array: DeviceArray, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> DeviceArray:
    return array.sum(axis=axis, keepdims=keepdims, dtype=dtype)


@answers(np.where)
def _where(condition: Any, left: Any, right: Any) -> DeviceArray:
    like = _first_on_device((condition, left, right))
    return like.wrap(selected(like.placement, *(like.raw(part) for part in (condition, left, right))))


@answers(np.stack)
def _stack(arrays: Sequence[Any], axis: int = 0) -> DeviceArray:
    like = _first_on_device(arrays)
    return like.wrap(like.placement.xp.stack([like.raw(array) for array in arrays], axis=axis))


@answers(np.concatenate)
def _concatenate(arrays: Sequence[Any], axis: int = 0) -> DeviceArray:
    like = _first_on_device(arrays)
    return like.wrap(like.placement.xp.concat([like.raw(array) for array in arrays], axis=axis))


@answers(np.broadcast_to)
def _broadcast_to(array: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    return array.wrap(array.placement.xp.broadcast_to(array.values, shape))


@answers(np.swapaxes)
def _swapaxes(array: DeviceArray, first: int, second: int) -> DeviceArray:
    axes = list(range(array.ndim))
    axes[first], axes[second] = axes[second], axes[first]
    return array.wrap(array.placement.xp.permute_dims(array.values, tuple(axes)))


@answers(np.reshape)
def _reshape(array: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    return array.reshape(shape)


@answers(np.atleast_1d)
def _atleast_1d(array: DeviceArray) -> DeviceArray:
    return array.reshape((1,)) if array.ndim == 0 else array


@answers(np.diagonal)
def _diagonal(array: DeviceArray, offset: int = 0, axis1: int = 0, axis2: int = 1) -> DeviceArray:
    """Of the last two axes."""
    if (axis1 % array.ndim, axis2 % array.ndim) != (array.ndim - 2, array.ndim - 1):
        raise TypeError("np.diagonal can be computed for the last two axes of an array on a device only")
    return array.wrap(array.placement.xp.linalg.diagonal(array.values, offset=offset))


@answers(np.diag)
def _diag(array: DeviceArray) -> DeviceArray:
    if array.ndim == 2:
        return _diagonal(array)
    xp, place = array.placement.xp, array.placement
    identity = xp.eye(len(array), dtype=array.values.dtype, device=place.device)
    return array.wrap(identity * array.values)


@answers(np.trace)
def _trace(array: DeviceArray, offset: int = 0, axis1: int = 0, axis2: int = 1) -> DeviceArray:
    return _diagonal(array, offset, axis1, axis2).sum(axis=-1)


@answers(np.tensordot)
def _tensordot(left: Any, right: Any, axes: int = 2) -> DeviceArray:
    like = _first_on_device((left, right))
    return like.wrap(like.placement.xp.tensordot(like.raw(left), like.raw(right), axes=axes))


@answers(np.flatnonzero)
def _flatnonzero(array: DeviceArray) -> DeviceArray:
    flat = array.ravel() != 0
    return array.wrap(array.placement.xp.nonzero(flat.values)[0])


@answers(np.argmax)
def _argmax(array: DeviceArray, axis: int | None = None) -> DeviceArray:
    return array.wrap(array.placement.xp.argmax(array.values, axis=axis))


@answers(np.argmin)
def _argmin(array: DeviceArray, axis: int | None = None) -> DeviceArray:
    return array.wrap(array.placement.xp.argmin(array.values, axis=axis))


@answers(np.linalg.slogdet)
def _slogdet(array: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    sign, logarithm = array.placement.xp.linalg.slogdet(array.values)
    return array.wrap(sign), array.wrap(logarithm)


@answers(np.linalg.solve)
def _solve(matrix: Any, right: Any) -> DeviceArray:
    like = _first_on_device((matrix, right))
    return like.wrap(like.placement.xp.linalg.solve(like.raw(matrix), like.raw(right)))


@answers(np.logaddexp)
def _log_sum(array: DeviceArray, axis: int = 0, keepdims: bool = False) -> DeviceArray:
    """`np.logaddexp.reduce`."""
    top = array.max(axis=axis, keepdims=True)
    top = _where(np.isfinite(top), top, 0.0)
    total: DeviceArray = np.log(np.exp(array - top).sum(axis=axis, keepdims=True)) + top
    return total if keepdims else total.reshape(tuple(np.delete(np.array(total.shape), axis).tolist()))

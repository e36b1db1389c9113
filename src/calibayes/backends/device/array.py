"""An array on a device that understands NumPy's vocabulary.

Families and rules are written with NumPy functions. NumPy passes calls with other array types on to these types
(``__array_ufunc__``, NEP 13, and ``__array_function__``, NEP 18). `DeviceArray` wraps an array of any library with the
array API and answers such calls with functions of that library, so that the same formulas run on a device. NumPy arrays
in the same expression are copied to the device. What has no counterpart raises TypeError.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partialmethod
from typing import Any, TypeVar

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array, is_torch_array
from numpy.lib.mixins import NDArrayOperatorsMixin

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import OnDevice

# -- Where arrays live: an array library with the array API and one of its devices; copies from and to NumPy

NUMPY_FLOATS = ("torch.float16", "torch.float32", "torch.float64")
"""Types of floats of PyTorch that NumPy has, too."""
TEMPORARY_BYTES = 2**30
"""Approximate size of the temporary arrays of a kernel: rows are processed in ranges of that size."""


@dataclass(frozen=True)
class Placement:
    """An array library and a device."""

    xp: Any
    """The array API namespace of the library."""
    device: Any

    def array(self, given: Any, dtype: str | None = None) -> Any:
        """A NumPy array, number or sequence as an array of this library on this device, of a type given by name."""
        values = np.asarray(given, dtype=dtype)
        # PyTorch shares memory with NumPy on the CPU, and accepts writable memory in row order only.
        values = values if values.flags.writeable and values.flags.c_contiguous else values.copy(order="C")
        return self.xp.asarray(values, device=self.device)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.device)

    def arange(self, stop: int) -> Any:
        return self.xp.arange(stop, dtype=self.xp.int64, device=self.device)

    def float64(self, values: Any) -> Any:
        """The array as float64, itself if it is."""
        return values if values.dtype == self.xp.float64 else self.xp.astype(values, self.xp.float64)


def is_on_device(array: Any) -> bool:
    """Whether this is an array of another library than NumPy, with the array API."""
    return is_array_api_obj(array) and not is_numpy_array(array)


def placement_of(array: Any) -> Placement:
    """The library and device of an array."""
    return Placement(array_namespace(array), device(array))


def dense(array: Any) -> Any:
    """The array, of PyTorch without gradients and in a type that NumPy has, too: bfloat16 and narrower ones as float32.

    Raises ValueError for a tensor that is sparse, quantized or without values (device "meta").
    """
    if not is_torch_array(array):
        return array
    if str(array.layout) != "torch.strided" or array.is_quantized or array.is_meta:
        raise ValueError(
            "X, y and sample weights must be dense tensors that hold their values, got one of layout "
            f"{array.layout}, type {array.dtype} and device {array.device}: pass X.to_dense() or X.dequantize()"
        )
    has_type = not array.is_floating_point() or str(array.dtype) in NUMPY_FLOATS
    return (array if has_type else array.float()).detach().resolve_neg()


def to_numpy(array: Any) -> Array:
    """An array of any library as a NumPy array."""
    if is_torch_array(array):
        return dense(array).cpu().numpy()
    if hasattr(array, "get"):  # CuPy
        return array.get()
    xp = array_namespace(array)
    return np.asarray(xp.asarray(array, device=xp.Device("CPU_DEVICE")) if hasattr(xp, "Device") else array)


def numpy_type(array: Any) -> np.dtype[Any]:
    """The NumPy type that corresponds to the type of an array."""
    return _numpy_type_named(str(array.dtype))


@cache
def _numpy_type_named(name: str) -> np.dtype[Any]:
    """By the name of a type, such as "torch.float64"."""
    return np.dtype(name.rsplit(".", maxsplit=1)[-1])


def row_ranges(n: int, row_bytes: int) -> list[slice]:
    """Consecutive ranges of n rows with about `TEMPORARY_BYTES` of temporary arrays each; at least one."""
    size = max(TEMPORARY_BYTES // max(row_bytes, 1), 1)
    return [slice(start, min(start + size, n)) for start in range(0, max(n, 1), size)]


def sums_over_rows(
    place: Placement, weights: Any, width: int, row_bytes: int, block: Callable[[slice], Any]
) -> Any:
    """(k, width): transposed weights (n, k) times a matrix of n rows, which ``block`` returns for ranges of rows."""
    total = place.zeros((weights.shape[1], width))
    for rows in row_ranges(weights.shape[0], row_bytes):
        total = total + weights[rows, :].T @ block(rows)
    return total


# -- NumPy's elementwise functions by those of the array API, whose operands must be of one kind of type -----

OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "true_divide": operator.truediv,
    "power": operator.pow,
    "matmul": operator.matmul,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "negative": operator.neg,
}
"""Name of a NumPy ufunc -> the operator for it, which also takes Python numbers."""
UFUNCS: dict[str, str] = {
    "absolute": "abs",
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "invert": "logical_not",
} | {
    name: name
    for name in (
        *("copysign", "exp", "expm1", "isfinite", "isnan", "log", "logical_and", "logical_not"),
        *("logical_or", "maximum", "minimum", "sqrt", "square"),
    )
}
"""Name of another NumPy ufunc -> name of the array API function."""
LOGICAL = frozenset({"logical_and", "logical_or", "logical_not"})
RANK = {"b": 0, "i": 1, "u": 1, "f": 2}
"""Order of the kinds of types in mixed expressions."""


def computed(place: Placement, ufunc: str, operands: Sequence[Any]) -> Any:
    """A NumPy ufunc of arrays and Python numbers, which are brought to one kind of type first."""
    name = UFUNCS.get(ufunc, ufunc)
    kind = "b" if name in LOGICAL else max(map(_kind, operands), key=RANK.__getitem__)
    converted = [_as_kind(place, operand, kind) for operand in operands]
    if ufunc in OPERATORS:
        return OPERATORS[ufunc](*converted)
    return getattr(place.xp, name)(*(_as_array(place, operand, kind) for operand in converted))


def selected(place: Placement, condition: Any, left: Any, right: Any) -> Any:
    """`np.where` of arrays and Python numbers."""
    kind = max(map(_kind, (left, right)), key=RANK.__getitem__)
    sides = [_as_array(place, _as_kind(place, side, kind), kind) for side in (left, right)]
    return place.xp.where(condition, *sides)


def _kind(operand: Any) -> str:
    """The one-letter code of the type of an array or a Python number."""
    if hasattr(operand, "shape"):
        return numpy_type(operand).kind
    return "b" if isinstance(operand, bool) else "i" if isinstance(operand, int) else "f"


def _as_kind(place: Placement, operand: Any, kind: str) -> Any:
    """An operand as booleans, integers or floats; integers and floats keep their width."""
    if not hasattr(operand, "shape") or RANK[_kind(operand)] == RANK[kind]:
        return operand
    if kind == "b":
        return operand != 0
    return place.xp.astype(operand, place.xp.int64 if kind in "iu" else place.xp.float64)


def _as_array(place: Placement, operand: Any, kind: str) -> Any:
    """A Python number as an array of a kind of type without axes, filled on the device."""
    if hasattr(operand, "shape"):
        return operand
    types = {"b": place.xp.bool, "i": place.xp.int64, "u": place.xp.int64, "f": place.xp.float64}
    return place.xp.full((), operand, dtype=types[kind], device=place.device)


# -- An array on a device that understands NumPy's vocabulary ------------------------------------------------
#
# Families and rules are written with NumPy functions. NumPy passes calls with other array types on to these types
# (``__array_ufunc__``, NEP 13, and ``__array_function__``, NEP 18). `DeviceArray` wraps an array of any library with the
# array API and answers such calls with functions of that library, so that the same formulas run on a device. NumPy arrays
# in the same expression are copied to the device. What has no counterpart raises TypeError.

FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}
"""NumPy function -> the same for device arrays; see `calibayes.backends.device.array`."""


class DeviceArray(NDArrayOperatorsMixin, OnDevice):
    """An array of a library with the array API, with the methods and operators of NumPy arrays that families use.

    Parameters
    ----------
    values : array of another library
    placement : Placement
        Its library and device.
    """

    __slots__ = ("placement", "values")

    def __init__(self, values: Any, placement: Placement) -> None:
        self.values, self.placement = values, placement

    # -- what it is --------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The corresponding NumPy type."""
        return numpy_type(self.values)

    @property
    def T(self) -> DeviceArray:
        return self if self.ndim < 2 else self.wrap(self.values.T)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray({self.values!r})"

    def to_host(self) -> Array:
        return to_numpy(self.values)

    def wrap(self, values: Any) -> DeviceArray:
        """Another array of the same library and device."""
        return DeviceArray(values, self.placement)

    def raw(self, value: Any) -> Any:
        """A device array, NumPy array or number as an operand of the library's functions."""
        if isinstance(value, DeviceArray):
            return value.values
        if isinstance(value, np.generic):
            return value.item()
        return value if isinstance(value, bool | int | float) else self.placement.array(value)

    def apply(self, ufunc: str, *inputs: Any) -> DeviceArray:
        """A NumPy ufunc of operands, one of which is this array."""
        return self.wrap(computed(self.placement, ufunc, [self.raw(value) for value in inputs]))

    # -- numbers -----------------------------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        return bool(self.values)

    def __int__(self) -> int:
        return int(self.values)

    def __float__(self) -> float:
        return float(self.values)

    def item(self) -> Any:
        return self.to_host().item()

    def tolist(self) -> Any:
        return self.to_host().tolist()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        raise TypeError("an array on a device is not copied to NumPy implicitly: use to_host()")

    # -- parts -------------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[DeviceArray]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> DeviceArray:
        parts = key if isinstance(key, tuple) else (key,)
        if parts and isinstance(parts[0], DeviceArray | np.ndarray):  # rows at given positions, or of a mask
            rows = self._rows(self.raw(parts[0]))
            return rows[(slice(None), *parts[1:])] if len(parts) > 1 else rows
        if not any(part is Ellipsis for part in parts):
            parts = (*parts, Ellipsis)
        return self.wrap(self.values[parts])

    def _rows(self, selection: Any) -> DeviceArray:
        """The rows at given positions, or those where a mask is true."""
        xp = self.placement.xp
        if numpy_type(selection).kind == "b":
            selection = xp.nonzero(selection)[0]
        return self.wrap(xp.take(self.values, selection, axis=0))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Only for a boolean mask of the same shape."""
        self.values = selected(self.placement, self.raw(key), self.raw(value), self.values)

    def ravel(self) -> DeviceArray:
        return self.reshape(-1)

    def reshape(self, *shape: Any) -> DeviceArray:
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        return self.wrap(self.placement.xp.reshape(self.values, wanted))

    def astype(self, dtype: Any, copy: bool = True) -> DeviceArray:
        xp = self.placement.xp
        return self.wrap(xp.astype(self.values, getattr(xp, np.dtype(dtype).name)))

    def copy(self, order: str = "C") -> DeviceArray:
        return self.wrap(self.placement.xp.asarray(self.values, copy=True))

    # -- reductions --------------------------------------------------------------------------------------------------

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> DeviceArray:
        values = self.values if dtype is None else self.astype(dtype).values
        if self.dtype.kind == "b":
            values = self.astype(np.int64).values
        return self.wrap(self.placement.xp.sum(values, axis=axis, keepdims=keepdims))

    def _reduced(self, name: str, axis: Any = None, keepdims: bool = False) -> DeviceArray:
        return self.wrap(getattr(self.placement.xp, name)(self.values, axis=axis, keepdims=keepdims))

    mean = partialmethod(_reduced, "mean")
    max = partialmethod(_reduced, "max")
    min = partialmethod(_reduced, "min")
    any = partialmethod(_reduced, "any")
    all = partialmethod(_reduced, "all")
    argmax = partialmethod(_reduced, "argmax")
    argmin = partialmethod(_reduced, "argmin")

    # -- NumPy's functions -------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if (ufunc, method) == (np.logaddexp, "reduce"):
            return FUNCTIONS[np.logaddexp](*inputs, **options)
        is_in_place = options.keys() == {"out"} and options["out"][0] is inputs[0]  # such as ``a += b``
        if method != "__call__" or (options and not is_in_place) or ufunc.__name__ not in OPERATORS | UFUNCS:
            raise TypeError(f"np.{ufunc.__name__} ({method}) cannot be computed with arrays on a device")
        result = self.apply(ufunc.__name__, *inputs)
        if not is_in_place:
            return result
        inputs[0].values = result.values
        return inputs[0]

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function not in FUNCTIONS:
            raise TypeError(f"np.{function.__name__} cannot be computed with arrays on a device")
        return FUNCTIONS[function](*args, **options)


# -- NumPy's other functions on arrays on a device -----------------------------------------------------------


Function = TypeVar("Function", bound=Callable[..., Any])


def answers(*functions: Callable[..., Any]) -> Callable[[Function], Function]:
    """Decorator: the function that answers calls of NumPy functions."""

    def register(function: Function) -> Function:
        FUNCTIONS.update(dict.fromkeys(functions, function))
        return function

    return register


def _first_on_device(values: Sequence[Any]) -> DeviceArray:
    return next(value for value in values if isinstance(value, DeviceArray))


def _joining(name: str) -> Callable[..., DeviceArray]:
    def join(arrays: Sequence[Any], axis: int = 0) -> DeviceArray:
        like = _first_on_device(arrays)
        return like.wrap(getattr(like.placement.xp, name)([like.raw(array) for array in arrays], axis=axis))

    return join


for _name in ("sum", "mean", "max", "min", "any", "all", "argmax", "argmin", "reshape"):
    FUNCTIONS[getattr(np, _name)] = getattr(DeviceArray, _name)
FUNCTIONS |= {np.stack: _joining("stack"), np.concatenate: _joining("concat")}


@answers(np.where)
def _where(condition: Any, left: Any, right: Any) -> DeviceArray:
    like = _first_on_device((condition, left, right))
    return like.wrap(selected(like.placement, *(like.raw(part) for part in (condition, left, right))))


@answers(np.broadcast_to)
def _broadcast_to(array: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    return array.wrap(array.placement.xp.broadcast_to(array.values, shape))


@answers(np.swapaxes)
def _swapaxes(array: DeviceArray, first: int, second: int) -> DeviceArray:
    axes = list(range(array.ndim))
    axes[first], axes[second] = axes[second], axes[first]
    return array.wrap(array.placement.xp.permute_dims(array.values, tuple(axes)))


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
    place = array.placement
    identity = place.xp.eye(len(array), dtype=array.values.dtype, device=place.device)
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

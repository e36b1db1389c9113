"""NumPy's elementwise functions by those of the array API, whose operands must be of one kind of type."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from calibayes.kernels.device.placement import Placement, numpy_type

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
    for name in [
        "copysign",
        "exp",
        "expm1",
        "isfinite",
        "isnan",
        "log",
        "logical_and",
        "logical_not",
        "logical_or",
        "maximum",
        "minimum",
        "sqrt",
        "square",
    ]
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

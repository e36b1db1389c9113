"""Expressions computed with NumPy: the reference that exports are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import singledispatchmethod
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.export import expressions as ex
from calibayes.export.expressions import once_in_order
from calibayes.tables.dates import DATE, DURATION, local_dates

FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "exp": lambda value: np.where(value < ex.LEAST_EXPONENT, 0.0, np.exp(np.minimum(value, 709.0))),
    "log": np.log,
    "sqrt": np.sqrt,
    "floor": np.floor,
}
OPERATORS: Mapping[str, Callable[[Array, Array], Array]] = {
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
COMPARISONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "<": np.less,
    "<=": np.less_equal,
    "=": np.equal,
}


def evaluate(expressions: Sequence[ex.Expression], columns: Mapping[str, Any], n: int) -> Array:
    """The values of expressions in each of n rows, (n, number of expressions).

    Parameters
    ----------
    columns : mapping
        Name -> (n,) array: numbers and booleans as floats with NaN, dates and durations as NumPy's types with NaT, text
        as objects with None.

    Examples
    --------
    >>> import numpy as np
    >>> from tests.export.evaluate import evaluate
    >>> from calibayes.export.expressions import Filled, Constant, NumberColumn
    >>> x = NumberColumn("x")
    >>> evaluate([x * 2.0, Filled(x, Constant(0.0))], {"x": np.array([1.5, np.nan])}, 2).tolist()
    [[3.0, 1.5], [nan, 0.0]]
    """
    evaluation = _Evaluation(columns, n)
    with np.errstate(all="ignore"):
        values = [evaluation.of(expression) for expression in expressions]
    return np.stack([np.broadcast_to(value, n) for value in values], axis=1)


class _Evaluation:
    """The values of nodes in the rows of one table."""

    def __init__(self, columns: Mapping[str, Any], n: int) -> None:
        self.columns, self.n = columns, n
        self.computed: dict[ex.Once, Array] = {}

    @singledispatchmethod
    def of(self, node: Any) -> Array:
        raise TypeError(f"{type(node).__name__} is not an expression or condition")

    # -- columns -----------------------------------------------------------------------------------------------------

    @of.register
    def _(self, node: ex.NumberColumn) -> Array:
        values = np.asarray(self.columns[node.name], dtype=np.float64)
        return np.where(np.abs(values) <= ex.LARGEST_NUMBER, values, np.nan)

    @of.register
    def _(self, node: ex.BooleanColumn) -> Array:
        return np.asarray(self.columns[node.name], dtype=np.float64)

    @of.register
    def _(self, node: ex.TimeColumn) -> Array:
        return _microseconds(local_dates(np.asarray(self.columns[node.name]).astype(DATE), node.zone))

    @of.register
    def _(self, node: ex.DurationColumn) -> Array:
        return _microseconds(np.asarray(self.columns[node.name]).astype(DURATION))

    @of.register
    def _(self, node: ex.TextCode) -> Array:
        positions = {level: float(code) for code, level in enumerate(node.levels)}
        other = np.nan if node.other is None else node.other
        cells = self.columns[node.column.name]
        return np.array([np.nan if cell is None else positions.get(cell, other) for cell in cells])

    # -- numbers -----------------------------------------------------------------------------------------------------

    @of.register
    def _(self, node: ex.Constant) -> Any:
        return np.float64(node.value)

    @of.register
    def _(self, node: ex.Once) -> Array:
        for layer in once_in_order([node]) if node not in self.computed else ():
            for once in layer:
                if once not in self.computed:
                    self.computed[once] = self.of(once.value)
        return self.computed[node]

    @of.register
    def _(self, node: ex.Sum) -> Array:
        return np.asarray(sum(self.of(term) for term in node.terms))

    @of.register
    def _(self, node: ex.Greatest) -> Array:
        return np.asarray(np.max(np.broadcast_arrays(*(self.of(term) for term in node.terms)), axis=0))

    @of.register
    def _(self, node: ex.Arithmetic) -> Array:
        return OPERATORS[node.operator](self.of(node.left), self.of(node.right))

    @of.register
    def _(self, node: ex.Function) -> Array:
        return FUNCTIONS[node.name](self.of(node.value))

    @of.register
    def _(self, node: ex.Filled) -> Array:
        value = self.of(node.value)
        return np.where(np.isnan(value), self.of(node.default), value)

    @of.register
    def _(self, node: ex.Where) -> Array:
        return np.where(self.of(node.condition), self.of(node.then), self.of(node.otherwise))

    @of.register
    def _(self, node: ex.BinCode) -> Array:
        value = self.of(node.value)
        return np.where(np.isnan(value), np.nan, np.searchsorted(node.edges, value, side="right"))

    @of.register
    def _(self, node: ex.NumberCode) -> Array:
        value, levels = self.of(node.value), np.asarray(node.levels)
        place = np.minimum(np.searchsorted(levels, value), len(levels) - 1)
        other = np.nan if node.other is None else node.other
        return np.where(np.isnan(value), np.nan, np.where(levels[place] == value, place, other))

    @of.register
    def _(self, node: ex.TableEntry) -> Array:
        code = self.of(node.code)
        missing = np.isnan(code)
        return np.where(missing, np.nan, np.asarray(node.table)[np.where(missing, 0, code).astype(np.intp)])

    # -- conditions --------------------------------------------------------------------------------------------------

    @of.register
    def _(self, node: ex.Compared) -> Array:
        return COMPARISONS[node.operator](self.of(node.left), self.of(node.right))

    @of.register
    def _(self, node: ex.IsMissing) -> Array:
        if isinstance(node.value, ex.TextColumn):
            return np.array([cell is None for cell in self.columns[node.value.name]], dtype=bool)
        return np.isnan(self.of(node.value))

    @of.register
    def _(self, node: ex.IsBeyond) -> Array:
        return np.asarray(np.abs(self.columns[node.column.name]) > ex.LARGEST_NUMBER)

    @of.register
    def _(self, node: ex.AllTrue) -> Array:
        return np.asarray(np.all(np.broadcast_arrays(*map(self.of, node.conditions)), axis=0))

    @of.register
    def _(self, node: ex.AnyTrue) -> Array:
        return np.asarray(np.any(np.broadcast_arrays(*map(self.of, node.conditions)), axis=0))


def _microseconds(times: Array) -> Array:
    return np.where(np.isnat(times), np.nan, times.astype(np.int64).astype(np.float64))

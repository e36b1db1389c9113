"""Expressions as SQL, in the expression classes of sqlglot: names and values are quoted by sqlglot alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatchmethod
from typing import Any

from sqlglot import exp

from calibayes.export import expressions as ex
from calibayes.export.sql.dialects import (
    BINARY_ORDER,
    DOUBLE_LITERALS,
    ENUMERATIONS,
    IGNORES_NULL,
    LISTS,
    enumeration_code,
    in_zone,
    list_entry,
    microseconds,
    text,
)

TABLE = "data"
"""The table's name within the statement."""
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "exp": exp.Exp,
    "log": exp.Ln,
    "sqrt": exp.Sqrt,
    "floor": exp.Floor,
}
OPERATORS: Mapping[str, Callable[..., Any]] = {"-": exp.Sub, "*": exp.Mul}
COMPARISONS: Mapping[str, Callable[..., Any]] = {"<": exp.LT, "<=": exp.LTE, "=": exp.EQ}
FEW = 4
"""Texts up to this many are compared one after the other, and tables up to this size are searched by comparisons."""


@dataclass(frozen=True)
class Renderer:
    """Nodes as SQL of a dialect."""

    dialect: str
    names: Mapping[ex.Node, str]
    """Columns of the inner query that hold nodes; a condition is held as 1 or 0."""

    def of(self, node: ex.Node) -> Any:
        """A node as SQL: the column that holds it, if there is one."""
        if node not in self.names:
            return self.computed(node)
        column = exp.column(self.names[node], quoted=True)
        return exp.EQ(this=column, expression=self.number(1.0)) if isinstance(node, ex.Condition) else column

    def as_number(self, node: ex.Node) -> Any:
        """A node as a column of an inner query."""
        value = self.computed(node)
        is_condition = isinstance(node, ex.Condition)
        return case([(value, self.number(1.0))], self.number(0.0)) if is_condition else value

    @singledispatchmethod
    def computed(self, node: Any) -> Any:
        """A node as SQL, computed from its parts."""
        raise TypeError(f"{type(node).__name__} is no expression or condition")

    def number(self, value: float) -> Any:
        """A literal of double precision that is read back as the same number; NULL for NaN."""
        if math.isnan(value):
            return exp.Null()
        digits = repr(abs(float(value)))
        literal: Any = exp.Literal.number(digits if "e" in digits else f"{digits}e0")
        if self.dialect not in DOUBLE_LITERALS:
            literal = exp.Cast(this=literal, to=exp.DataType.build("DOUBLE"))
        return exp.Neg(this=literal) if math.copysign(1.0, value) < 0 and value != 0 else literal

    def _double(self, value: Any) -> Any:
        return exp.Cast(this=value, to=exp.DataType.build("DOUBLE"))

    # -- columns -----------------------------------------------------------------------------------------------------

    @computed.register
    def _(self, node: ex.NumberColumn) -> Any:
        limit = ex.LARGEST_NUMBER
        inside = exp.Between(
            this=self._double(_column(node.name)), low=self.number(-limit), high=self.number(limit)
        )
        return case([(inside, self._double(_column(node.name)))])

    @computed.register
    def _(self, node: ex.BooleanColumn) -> Any:
        return case(
            [
                (
                    exp.EQ(this=_column(node.name), expression=exp.Boolean(this=value)),
                    self.number(float(value)),
                )
                for value in (True, False)
            ]
        )

    @computed.register
    def _(self, node: ex.TimeColumn) -> Any:
        column = _column(node.name)
        local = column if node.zone is None else in_zone(column, node.zone)
        return self._double(microseconds(local, node.name, self.dialect))

    @computed.register
    def _(self, node: ex.DurationColumn) -> Any:
        return self._double(microseconds(_column(node.name), node.name, self.dialect, is_duration=True))

    @computed.register
    def _(self, node: ex.TextColumn) -> Any:
        return text(_column(node.name), self.dialect)

    @computed.register
    def _(self, node: ex.TextCode) -> Any:
        levels = sorted((level, float(code)) for code, level in enumerate(node.levels))
        other = exp.Null() if node.other is None else self.number(node.other)
        if self.dialect in ENUMERATIONS and len(levels) > FEW:
            code = self._double(enumeration_code(self.of(node.column), list(node.levels)))
            found = code if node.other is None else exp.Coalesce(this=code, expressions=[other])
        else:
            found = self._text_code(node.column, levels, other)
        if node.other is None:
            return found
        return case([(self.of(ex.IsMissing(node.column)), exp.Null())], found)

    def _text_code(self, column: ex.TextColumn, levels: Sequence[tuple[str, float]], other: Any) -> Any:
        """The code of a text, by binary search among many levels."""
        if len(levels) <= FEW or self.dialect not in BINARY_ORDER:
            pairs = [
                (_compared("=", self.of(column), _literal(level)), self.number(code))
                for level, code in levels
            ]
            return case(pairs, other.copy())
        middle = len(levels) // 2
        is_left = _compared("<", self.of(column), _literal(levels[middle][0]))
        left, right = (self._text_code(column, half, other) for half in (levels[:middle], levels[middle:]))
        return case([(is_left, left)], right)

    # -- numbers -----------------------------------------------------------------------------------------------------

    @computed.register
    def _(self, node: ex.Constant) -> Any:
        return self.number(node.value)

    @computed.register
    def _(self, node: ex.Once) -> Any:
        return self.of(node.value)

    @computed.register
    def _(self, node: ex.Sum) -> Any:
        return balanced(exp.Add, [self.of(term) for term in node.terms])

    @computed.register
    def _(self, node: ex.Greatest) -> Any:
        first, *others = (self.of(term) for term in node.terms)
        return (
            exp.Greatest(this=first, expressions=others, ignore_nulls=self.dialect in IGNORES_NULL)
            if others
            else first
        )

    @computed.register
    def _(self, node: ex.Arithmetic) -> Any:
        left, right = _operand(self.of(node.left)), _operand(self.of(node.right))
        if node.operator == "/":
            return exp.Div(this=left, expression=right, typed=True, safe=False)
        return OPERATORS[node.operator](this=left, expression=right)

    @computed.register
    def _(self, node: ex.Function) -> Any:
        function = FUNCTIONS[node.name](this=self.of(node.value))
        if node.name != "exp":
            return function
        underflows = _compared("<", self.of(node.value), self.number(ex.LEAST_EXPONENT))
        return case([(underflows, self.number(0.0))], function)

    @computed.register
    def _(self, node: ex.Filled) -> Any:
        if isinstance(node.value, ex.Entry):
            return self._entry(node.value, self.of(node.default))
        return exp.Coalesce(this=self.of(node.value), expressions=[self.of(node.default)])

    @computed.register
    def _(self, node: ex.Where) -> Any:
        return case([(self.of(node.condition), self.of(node.then))], self.of(node.otherwise))

    @computed.register
    def _(self, node: ex.Bin) -> Any:
        found = self._entry_at(node.value, [float(code) for code in range(len(node.edges) + 1)], node.edges)
        return self._unless_missing(node.value, found, exp.Null())

    @computed.register
    def _(self, node: ex.NumberCode) -> Any:
        other = exp.Null() if node.other is None else self.number(node.other)
        leaves = [
            case(
                [(_compared("=", self.of(node.value), self.number(level)), self.number(float(code)))],
                other.copy(),
            )
            for code, level in enumerate(node.levels)
        ]
        found = self._leaf_at(node.value, leaves, node.levels[1:])
        return self._unless_missing(node.value, found, exp.Null())

    @computed.register
    def _(self, node: ex.Entry) -> Any:
        return self._entry(node, exp.Null())

    def _entry(self, node: ex.Entry, default: Any) -> Any:
        """The entry of a table, or a default if the code is missing."""
        if self.dialect in LISTS and len(node.table) > FEW:
            found = list_entry([self.number(value) for value in node.table], self.of(node.code))
            return found if isinstance(default, exp.Null) else exp.Coalesce(this=found, expressions=[default])
        edges = [code - 0.5 for code in range(1, len(node.table))]
        return self._unless_missing(node.code, self._entry_at(node.code, node.table, edges), default)

    def _unless_missing(self, value: ex.Expression, found: Any, default: Any) -> Any:
        return case([(self.of(ex.IsMissing(value)), default)], found)

    def _entry_at(self, value: ex.Expression, table: Sequence[float], edges: Sequence[float]) -> Any:
        """The number at the bin of a value; neighboring bins of the same number are one."""
        starts = [i for i in range(len(table)) if i == 0 or not _are_same(table[i], table[i - 1])]
        leaves = [self.number(table[i]) for i in starts]
        return self._leaf_at(value, leaves, [edges[i - 1] for i in starts[1:]])

    def _leaf_at(self, value: ex.Expression, leaves: Sequence[Any], edges: Sequence[float]) -> Any:
        """The leaf at the bin of a value that is not missing, by binary search."""
        if len(leaves) == 1:
            return leaves[0]
        middle = len(leaves) // 2
        left = self._leaf_at(value, leaves[:middle], edges[: middle - 1])
        right = self._leaf_at(value, leaves[middle:], edges[middle:])
        return case([(_compared("<", self.of(value), self.number(edges[middle - 1])), left)], right)

    # -- conditions --------------------------------------------------------------------------------------------------

    @computed.register
    def _(self, node: ex.Compared) -> Any:
        return _compared(node.operator, self.of(node.left), self.of(node.right))

    @computed.register
    def _(self, node: ex.IsMissing) -> Any:
        value = _column(node.value.name) if isinstance(node.value, ex.TextColumn) else self.of(node.value)
        return exp.Is(this=_operand(value), expression=exp.Null())

    @computed.register
    def _(self, node: ex.IsBeyond) -> Any:
        """Databases order NaN above or below all numbers, or nowhere: x and -x are both compared from below."""
        sides = [
            self._double(_column(node.column.name)),
            exp.Neg(this=self._double(_column(node.column.name))),
        ]
        return balanced(exp.Or, [_compared("<", side, self.number(-ex.LARGEST_NUMBER)) for side in sides])

    @computed.register
    def _(self, node: ex.AllOf) -> Any:
        return balanced(exp.And, [self.of(condition) for condition in node.conditions])

    @computed.register
    def _(self, node: ex.AnyOf) -> Any:
        return balanced(exp.Or, [self.of(condition) for condition in node.conditions])


def _column(name: str) -> Any:
    return exp.column(name, table=TABLE, quoted=True)


def _literal(value: str) -> Any:
    return exp.Literal.string(value)


def _are_same(left: float, right: float) -> bool:
    return left == right or (math.isnan(left) and math.isnan(right))


def case(pairs: Sequence[tuple[Any, Any]], default: Any = None) -> Any:
    """CASE WHEN ... THEN ... ELSE ... END."""
    return exp.Case(ifs=[exp.If(this=condition, true=value) for condition, value in pairs], default=default)


def balanced(operator: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """Operands joined by an operator, halves in parentheses: nested at most log2(size) deep."""
    if len(operands) == 1:
        return operands[0]
    middle = (len(operands) + 1) // 2
    left, right = (balanced(operator, half) for half in (operands[:middle], operands[middle:]))
    return operator(this=_operand(left), expression=_operand(right))


def _operand(value: Any) -> Any:
    """A value in parentheses, if it is an operation."""
    return exp.Paren(this=value) if isinstance(value, exp.Binary | exp.Unary | exp.Between) else value


def _compared(operator: str, left: Any, right: Any) -> Any:
    return COMPARISONS[operator](this=_operand(left), expression=_operand(right))

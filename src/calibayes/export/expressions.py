"""A small language of expressions in which a fitted model is written before it is exported.

An expression is a number for each row of a table. It may be *missing*: NULL in a database, NaN in NumPy and ONNX. The
rules are the same in every export:

- arithmetic and functions of a missing number are missing;
- a comparison with a missing number is false. There is no "not", so that SQL's "unknown" has the same effect as false;
- only `Filled` and `IsMissing` test whether a number is missing.

All numbers are float64. Nodes are immutable and compared by identity. An expression that is used more than once is
wrapped in `Once`: it is computed once for each row, wherever it occurs. Renderers (`calibayes.export.sql`,
`calibayes.export.onnx`) support every node type below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, Literal, TypeAlias, dataclass_transform

FunctionName: TypeAlias = Literal["exp", "log", "sqrt", "floor"]
Operator: TypeAlias = Literal["-", "*", "/"]
Comparison: TypeAlias = Literal["<", "<=", "="]


@dataclass_transform(frozen_default=True, eq_default=False)
@dataclass(frozen=True, eq=False)
class Node:
    """A part of a computation: every subclass is a frozen dataclass, whose objects are equal only to themselves."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False)(cls)


class Expression(Node):
    """A number for each row, possibly missing. The operators + - * / build larger expressions."""

    def __add__(self, other: Operand) -> Expression:
        return Sum((self, as_expression(other)))

    def __sub__(self, other: Operand) -> Expression:
        return Arithmetic("-", self, as_expression(other))

    def __mul__(self, other: Operand) -> Expression:
        return Arithmetic("*", self, as_expression(other))

    def __truediv__(self, other: Operand) -> Expression:
        return Arithmetic("/", self, as_expression(other))

    def __lt__(self, other: Operand) -> Condition:
        return Compared("<", self, as_expression(other))

    def __le__(self, other: Operand) -> Condition:
        return Compared("<=", self, as_expression(other))


Operand: TypeAlias = Expression | float
Columns: TypeAlias = Sequence[Expression]


class Condition(Node):
    """True or false for each row."""


# -- columns of the table ------------------------------------------------------------------------------------------


class NumberColumn(Expression):
    """A column of numbers: missing where the cell is NULL or NaN, or its absolute value exceeds 1e100."""

    name: str


class BooleanColumn(Expression):
    """A column of booleans: 1 for true, 0 for false, missing for NULL."""

    name: str


class TimeColumn(Expression):
    """A column of dates or timestamps: microseconds since 1970-01-01 00:00, missing for NULL.

    Timestamps with a time zone are counted in UTC or, if ``zone`` is given, in the local time of this zone.
    """

    name: str
    zone: str | None = None


class DurationColumn(Expression):
    """A column of durations (intervals): microseconds, missing for NULL."""

    name: str


class TextColumn(Node):
    """A column of text. It is not an expression: `TextCode` and `IsMissing` read it."""

    name: str


class TextCode(Expression):
    """The position of a text in ``levels``; ``other`` for any other text (None: missing), missing for NULL."""

    column: TextColumn
    levels: tuple[str, ...]
    other: float | None = None


# -- numbers -------------------------------------------------------------------------------------------------------


class Constant(Expression):
    """The same finite number in each row; NaN is missing in each row."""

    value: float


class Once(Expression):
    """The value of an expression that is used more than once and computed once."""

    value: Expression


class Sum(Expression):
    """The sum of at least one term, in any order."""

    terms: tuple[Expression, ...]


class Greatest(Expression):
    """The greatest of at least one term; undefined in rows where some terms are missing and others are not."""

    terms: tuple[Expression, ...]


class Arithmetic(Expression):
    """left - right, left * right or left / right; a divisor is never 0."""

    operator: Operator
    left: Expression
    right: Expression


class Function(Expression):
    """e**value (0 if value < `LEAST_EXPONENT`), the natural logarithm or the square root of a positive number, or the floor."""

    name: FunctionName
    value: Expression


class Filled(Expression):
    """A number, or a default where it is missing."""

    value: Expression
    default: Expression


class Where(Expression):
    """One number where a condition is true, else another."""

    condition: Condition
    then: Expression
    otherwise: Expression


class BinCode(Expression):
    """The number of ascending edges up to and including a number; missing if the number is missing."""

    value: Expression
    edges: tuple[float, ...]


class NumberCode(Expression):
    """The position of a number in ascending ``levels``; ``other`` for any other number (None: missing)."""

    value: Expression
    levels: tuple[float, ...]
    other: float | None = None


class TableEntry(Expression):
    """The entry of a table at a code, an integer from 0 to the size of the table minus 1; missing if the code is missing."""

    table: tuple[float, ...]
    code: Expression


# -- conditions ----------------------------------------------------------------------------------------------------


class Compared(Condition):
    """left < right, left <= right or left = right; false if one of them is missing."""

    operator: Comparison
    left: Expression
    right: Expression


class IsMissing(Condition):
    """Whether a number or a text is missing."""

    value: Expression | TextColumn


class IsBeyond(Condition):
    """Whether the absolute value of a cell exceeds 1e100 or is infinite; `NumberColumn` is missing there."""

    column: NumberColumn


class AllTrue(Condition):
    """Whether all of at least one condition are true."""

    conditions: tuple[Condition, ...]


class AnyTrue(Condition):
    """Whether any of at least one condition is true."""

    conditions: tuple[Condition, ...]


COLUMNS = (NumberColumn, BooleanColumn, TimeColumn, DurationColumn, TextColumn)
"""Types of the nodes that are columns of the table."""
READ_FROM_TABLE = (NumberColumn, BooleanColumn, TimeColumn, DurationColumn, TextCode, IsBeyond)
"""Types of the nodes that read a cell of the table; `IsMissing` of a `TextColumn` does so, too."""

LARGEST_NUMBER = 1e100
"""Larger absolute values are refused by `predict_proba`; see `calibayes.tables.table.LARGEST`."""
LEAST_EXPONENT = -600.0
"""Below this, exp is 0. Some databases raise an error where a result underflows, also that of a product with a small factor."""
MISSING = Constant(math.nan)


# -- functions that build expressions ------------------------------------------------------------------------------


def as_expression(operand: Operand) -> Expression:
    """A number as a `Constant`; an expression unchanged."""
    return operand if isinstance(operand, Expression) else Constant(float(operand))


def where(condition: Condition, then: Operand, otherwise: Operand) -> Expression:
    """One number where a condition is true, else another."""
    return Where(condition, as_expression(then), as_expression(otherwise))


def total(terms: Iterable[Expression], constant: float = 0.0) -> Expression:
    """The sum of terms and a constant."""
    summed = tuple(terms)
    if not summed:
        return Constant(constant)
    if constant == 0.0:
        return summed[0] if len(summed) == 1 else Sum(summed)
    return Sum((Constant(constant), *summed))


def weighted_sum(terms: Columns, weights: Sequence[float], constant: float = 0.0) -> Expression:
    """The sum of terms, each multiplied by its weight, and a constant."""
    return total((term * weight for term, weight in zip(terms, weights, strict=True)), constant)


def store(conditions: Sequence[Condition]) -> Condition:
    """Whether any of at least one condition is true, computed once."""
    return Constant(0.5) < Once(where(AnyTrue(tuple(conditions)), 1.0, 0.0))


def log_sum_exp(terms: Sequence[Expression]) -> Expression:
    """log of the sum of e**term, the greatest term subtracted first; terms must be cheap, such as `Once`."""
    if len(terms) == 1:
        return terms[0]
    top = Once(Greatest(tuple(terms)))
    return top + Function("log", Sum(tuple(Function("exp", term - top) for term in terms)))


def softmax(scores: Sequence[Expression], refused: Sequence[Condition] = ()) -> tuple[Expression, ...]:
    """e**score divided by the sum over all scores; missing where one of the conditions is true."""
    stored_scores = [Once(score) for score in scores]
    greatest: Expression = Greatest(tuple(stored_scores))
    top = Once(Where(AnyTrue(tuple(refused)), MISSING, greatest) if refused else greatest)
    return normalize([Once(Function("exp", score - top)) for score in stored_scores])


def normalize(parts: Sequence[Once]) -> tuple[Expression, ...]:
    """Each part divided by the sum of all."""
    divisor = Once(total(parts))
    return tuple(part / divisor for part in parts)


@dataclass(frozen=True)
class ModelExpressions:
    """The probabilities of a fitted classifier."""

    classes: tuple[str, ...]
    """Classes as text, in the order of ``classes_``."""
    probabilities: tuple[Expression, ...]
    """p(class | x) of each class; missing in rows that `predict_proba` refuses with an error."""


# -- The parts of expressions, and `Once` nodes in an order in which they can be computed --------------------


def parts_of(node: Node) -> Iterator[Node]:
    """The nodes that are fields of a node."""
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Expression | Condition))
        elif isinstance(value, Expression | Condition | TextColumn):
            yield value


def nodes_within(expressions: Iterable[Node]) -> list[Node]:
    """All nodes of expressions, each once."""
    nodes: dict[Node, None] = {}
    pending = list(expressions)
    while pending:
        node = pending.pop()
        if node not in nodes:
            nodes[node] = None
            pending.extend(parts_of(node))
    return list(nodes)


def column_names(expressions: Iterable[Node]) -> list[str]:
    """Names of the columns of the table that expressions read, each once."""
    return list(dict.fromkeys(node.name for node in nodes_within(expressions) if isinstance(node, COLUMNS)))


def is_read_from_table(node: Node) -> bool:
    """Whether a node reads a cell of the table."""
    is_text = isinstance(node, IsMissing) and isinstance(node.value, TextColumn)
    return is_text or isinstance(node, READ_FROM_TABLE)


def cells_within(node: Node) -> Iterator[Node]:
    """The nodes that read cells of the table in a node, itself included, but not inside of `Once`."""
    pending = [node]
    while pending:
        part = pending.pop()
        if is_read_from_table(part):
            yield part
        elif not isinstance(part, Once):
            pending.extend(parts_of(part))


def once_within(node: Node, kinds: tuple[type, ...] = (Once,)) -> Iterator[Any]:
    """The outermost `Once` nodes, or nodes of other kinds, inside of a node, each as often as it occurs."""
    pending = list(parts_of(node))
    while pending:
        part = pending.pop()
        if isinstance(part, kinds):
            yield part
        else:
            pending.extend(parts_of(part))


def once_in_order(nodes: Sequence[Node], kinds: tuple[type, ...] = (Once,)) -> list[list[Any]]:
    """All `Once` nodes, or nodes of other kinds, below some nodes, in layers: each depends on earlier layers only."""
    depths: dict[Any, int] = {}
    pending = [
        once for node in nodes for once in ([node] if isinstance(node, kinds) else once_within(node, kinds))
    ]
    while pending:
        once = pending[-1]
        inner = [] if once in depths else list(dict.fromkeys(once_within(once, kinds)))
        if unknown := [part for part in inner if part not in depths]:
            pending.extend(unknown)
            continue
        depths.setdefault(once, 1 + max((depths[part] for part in inner), default=-1))
        pending.pop()
    layers: list[list[Any]] = [[] for _ in range(1 + max(depths.values(), default=-1))]
    for once, depth in depths.items():
        layers[depth].append(once)
    return layers


# -- Layers: values that are computed once, each from columns of earlier layers ---------------------------------


def value_of(node: Node) -> Node:
    return node.value if isinstance(node, Once) else node


def named_layers(outputs: Sequence[Expression]) -> tuple[list[list[Node]], dict[Node, str]]:
    """The nodes that are columns of inner queries, layer by layer, and the name of the column of each node.

    Cells are read in the first layer: those that a later layer needs are columns of it, once for each cell. There are no layers
    if the outputs are constant.
    """
    first, *others = _postponed(once_in_order(outputs), outputs) or [[]]
    later = [once.value for layer in others for once in layer]
    alone = [once.value for once in first if is_read_from_table(once.value)]
    cells = {_cell_key(cell): cell for node in (*alone, *later, *outputs) for cell in cells_within(node)}
    computed = [once for once in first if not is_read_from_table(once.value)]
    layers: list[list[Node]] = [[*cells.values(), *computed], *([*layer] for layer in others)]
    names: dict[Node, str] = {node: f"v{i}" for i, node in enumerate(chain.from_iterable(layers))}
    for node in (*alone, *later, *outputs):
        names |= {cell: names[cells[_cell_key(cell)]] for cell in cells_within(node)}
    names |= {once: names[once.value] for once in first if is_read_from_table(once.value)}
    return (layers if names else []), names


def _postponed(layers: list[list[Any]], outputs: Sequence[Node]) -> list[list[Any]]:
    """The layers, with nodes that are needed much later moved there, if fewer inputs than nodes must be carried along for it.

    Thousands of trees over a few values would otherwise be columns of all layers between; databases take long to plan those.
    """
    last_use: dict[Node, int] = {}
    first_use: dict[Node, int] = {}

    def use(node: Node, depth: int) -> None:
        for part in _inputs(node):
            last_use[part] = max(last_use.get(part, depth), depth)
            first_use[part] = min(first_use.get(part, depth), depth)

    for output in outputs:
        use(output, len(layers))
        first_use |= {output: len(layers)} if isinstance(output, Once) else {}
    moved: list[list[Any]] = [[] for _ in layers]
    for depth in reversed(range(len(layers))):
        by_latest: dict[int, list[Any]] = {}
        for node in layers[depth]:
            by_latest.setdefault(first_use[node] - 1, []).append(node)
        for latest, nodes in sorted(by_latest.items(), reverse=True):
            carried = {part for node in nodes for part in _inputs(node) if last_use.get(part, -1) < latest}
            place = latest if len(carried) < len(nodes) else depth
            moved[place] += nodes
            for node in nodes:
                use(node, place)
    return moved


def _inputs(node: Node) -> list[Node]:
    """What a node reads from an earlier layer."""
    return [*once_within(node), *cells_within(value_of(node))]


def _cell_key(node: Node) -> Any:
    """A key that is equal for nodes of the same value of the same cell."""
    if isinstance(node, TextCode):
        return node
    column: Any = node.value if isinstance(node, IsMissing) else getattr(node, "column", node)
    return type(node), type(column), tuple(getattr(column, field.name) for field in fields(column))


def last_uses(layers: Sequence[Sequence[Node]], names: Mapping[Node, str]) -> dict[str, int]:
    """Column -> the last layer that reads it; the outputs are the last of the layers."""
    uses = dict.fromkeys(names.values(), 0)
    for depth, layer in enumerate(layers):
        for node in layer:
            direct = [*once_within(node), *cells_within(value_of(node))]
            direct += [node] if depth == len(layers) - 1 and isinstance(node, Once) else []
            uses |= {names[part]: depth for part in direct if part in names}
    return uses

"""How lists of nodes of each type become operations of ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibayes.export import expressions as ex
from calibayes.export.onnx.inputs import CALENDAR_ZONE, look_up
from calibayes.export.onnx.rendering import NAN, Renderer, Rendering
from calibayes.export.onnx.sums import FlatSum, flattened, groups_with_common_terms, linear_map

FUNCTIONS = {"exp": "Exp", "log": "Log", "sqrt": "Sqrt", "floor": "Floor"}
OPERATORS = {"-": "Sub", "*": "Mul", "/": "Div"}
COMPARISONS = {"<": "Less", "<=": "LessOrEqual", "=": "Equal"}

# -- columns of the table ------------------------------------------------------------------------------------------


def _number_columns(this: Rendering, nodes: Sequence[ex.NumberColumn]) -> str:
    cells = this.inputs.numbers([node.name for node in nodes])
    size = this.graph.add("Abs", cells)
    is_valid = this.graph.add("LessOrEqual", size, this.numbers(ex.LARGEST_NUMBER))
    return this.graph.add("Where", is_valid, cells, this.graph.constant(NAN))


def _time_columns(this: Rendering, nodes: Sequence[ex.TimeColumn]) -> str:
    for node in nodes:
        if node.zone is not None:
            raise TypeError(CALENDAR_ZONE.format(name=node.name, zone=node.zone))
    return this.inputs.numbers([node.name for node in nodes])


def _plain_columns(this: Rendering, nodes: Sequence[Any]) -> str:
    return this.inputs.numbers([node.name for node in nodes])


def _text_codes(this: Rendering, nodes: Sequence[ex.TextCode]) -> str:
    return _stacked(this, [this.inputs.text_codes(node) for node in nodes])


def _stacked(this: Rendering, parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else this.graph.add("Concat", *parts, axis=0)


# -- numbers -------------------------------------------------------------------------------------------------------


def _constants(this: Rendering, nodes: Sequence[ex.Constant]) -> str:
    return this.numbers([node.value for node in nodes])


def _arithmetic(this: Rendering, nodes: Sequence[ex.Arithmetic]) -> str:
    left, right = (this.matrix([getattr(node, side) for node in nodes]) for side in ("left", "right"))
    return this.graph.add(OPERATORS[nodes[0].operator], left, right)


def _functions(this: Rendering, nodes: Sequence[ex.Function]) -> str:
    return this.graph.add(FUNCTIONS[nodes[0].name], this.matrix([node.value for node in nodes]))


def _filled(this: Rendering, nodes: Sequence[ex.Filled]) -> str:
    value = this.matrix([node.value for node in nodes])
    return this.where_missing(value, this.matrix([node.default for node in nodes]), value)


def _where(this: Rendering, nodes: Sequence[ex.Where]) -> str:
    condition = this.matrix([node.condition for node in nodes])
    then, otherwise = (this.matrix([getattr(node, side) for node in nodes]) for side in ("then", "otherwise"))
    return this.graph.add("Where", condition, then, otherwise)


def _sums(this: Rendering, nodes: Sequence[ex.Sum]) -> str:
    sums = [flattened(node) for node in nodes]
    return this.by_size(
        sums,
        lambda flat: "linear" if flat.is_linear else len(flat.terms),
        lambda group: _linear_sums(this, group) if group[0].is_linear else _other_sums(this, group),
    )


def _linear_sums(this: Rendering, sums: Sequence[FlatSum]) -> str:
    groups = groups_with_common_terms(sums)
    parts = [_product(this, [sums[j] for j in group]) for group in groups]
    return this.in_order(parts, [j for group in groups for j in group])


def _product(this: Rendering, sums: Sequence[FlatSum]) -> str:
    """One product of matrices; a sum is missing only if one of the terms that it uses is missing."""
    linear = linear_map(sums)
    terms = this.matrix(linear.terms)
    if linear.uses.all() and linear.weights.all():
        product = this.graph.add("MatMul", this.graph.constant(linear.weights), terms)
        return this.graph.add("Add", product, this.numbers(linear.constants))
    missing = this.graph.add("IsNaN", terms)
    filled = this.graph.add("Where", missing, this.numbers(0.0), terms)
    product = this.graph.add("MatMul", this.graph.constant(linear.weights), filled)
    total = this.graph.add("Add", product, this.numbers(linear.constants))
    uses = this.graph.constant(linear.uses.astype(np.float32))
    counted = this.graph.add("MatMul", uses, this.cast(missing, "FLOAT"))
    is_missing = this.graph.add("Greater", counted, this.graph.constant(np.zeros((1, 1), dtype=np.float32)))
    return this.graph.add("Where", is_missing, this.graph.constant(NAN), total)


def _other_sums(this: Rendering, sums: Sequence[FlatSum]) -> str:
    size = len(sums[0].terms)
    constants = np.array([flat.constant for flat in sums])
    if not size:
        return this.expanded(this.numbers(constants), len(sums))
    total = this.matrix([term for flat in sums for term in flat.terms])
    weights = np.array([weight for flat in sums for weight in flat.weights])
    if (weights != 1.0).any():
        total = this.graph.add("Mul", total, this.numbers(weights))
    if size > 1:
        total = this.reduced("ReduceSum", total, (len(sums), size))
    return this.graph.add("Add", total, this.numbers(constants)) if constants.any() else total


def _greatest(this: Rendering, nodes: Sequence[ex.Greatest]) -> str:
    def render(group: Sequence[ex.Greatest]) -> str:
        terms = this.matrix([term for node in group for term in node.terms])
        return this.reduced("ReduceMax", terms, (len(group), len(group[0].terms)))

    return this.by_size(nodes, lambda node: len(node.terms), render)


def _bins(this: Rendering, nodes: Sequence[ex.Bin]) -> str:
    """The number of edges up to a value, by binary search."""
    value, graph = this.matrix([node.value for node in nodes]), this.graph
    steps = max(len(node.edges) for node in nodes).bit_length()
    if not steps:
        return this.missing_with(value, this.numbers(np.zeros(len(nodes))))
    size = 2**steps
    edges = np.full((len(nodes), size), np.inf)
    for place, node in enumerate(nodes):
        edges[place, : len(node.edges)] = node.edges
    table = graph.constant(edges.ravel())
    offset = graph.constant(np.arange(len(nodes))[:, None] * size - 1)
    position = graph.constant(np.zeros((len(nodes), 1), dtype=np.int64))
    for step in [2**power for power in reversed(range(steps))]:
        length = graph.constant(np.array([[step]]))
        tried = graph.add("Add", position, length)
        edge = graph.add("Gather", table, graph.add("Add", tried, offset))
        position = graph.add("Where", graph.add("LessOrEqual", edge, value), tried, position)
    return this.missing_with(value, this.cast(position, "DOUBLE"))


def _number_codes(this: Rendering, nodes: Sequence[ex.NumberCode]) -> str:
    parts = []
    for node in nodes:
        other = np.nan if node.other is None else node.other
        value = this.matrix([node.value])
        codes = look_up(this.graph, value, np.array(node.levels), range(len(node.levels)), other)
        parts.append(codes if node.other is None else this.missing_with(value, codes))
    return _stacked(this, parts)


def _entries(this: Rendering, nodes: Sequence[ex.Entry]) -> str:
    """One look-up in the concatenation of all tables."""
    code = this.matrix([node.code for node in nodes])
    sizes = [len(node.table) for node in nodes]
    first = np.cumsum([0, *sizes[:-1]])[:, None]
    table = this.graph.constant(np.concatenate([np.array(node.table) for node in nodes]))
    known = this.cast(this.where_missing(code, this.numbers(0.0), code), "INT64")
    place = this.graph.add("Add", known, this.graph.constant(first)) if first.any() else known
    return this.missing_with(code, this.graph.add("Gather", table, place))


# -- conditions ----------------------------------------------------------------------------------------------------


def _compared(this: Rendering, nodes: Sequence[ex.Compared]) -> str:
    left, right = (this.matrix([getattr(node, side) for node in nodes]) for side in ("left", "right"))
    return this.graph.add(COMPARISONS[nodes[0].operator], left, right)


def _is_missing(this: Rendering, nodes: Sequence[ex.IsMissing]) -> str:
    def render(group: Sequence[ex.IsMissing]) -> str:
        if isinstance(group[0].value, ex.TextColumn):
            texts: list[Any] = [node.value for node in group]
            return _stacked(this, [this.inputs.is_missing_text(text) for text in texts])
        return this.graph.add("IsNaN", this.matrix([node.value for node in group]))

    return this.by_size(nodes, lambda node: isinstance(node.value, ex.TextColumn), render)


def _is_beyond(this: Rendering, nodes: Sequence[ex.IsBeyond]) -> str:
    size = this.graph.add("Abs", this.inputs.numbers([node.column.name for node in nodes]))
    return this.graph.add("Greater", size, this.numbers(ex.LARGEST_NUMBER))


def _combined(operator: str) -> Any:
    def render_all(this: Rendering, nodes: Sequence[Any]) -> str:
        def render(group: Sequence[Any]) -> str:
            conditions = this.matrix([part for node in group for part in node.conditions])
            numbers = this.cast(conditions, "INT32")
            return this.cast(this.reduced(operator, numbers, (len(group), len(group[0].conditions))), "BOOL")

        return this.by_size(nodes, lambda node: len(node.conditions), render)

    return render_all


RENDERERS: Mapping[type, Renderer] = {
    ex.NumberColumn: _number_columns,
    ex.BooleanColumn: _plain_columns,
    ex.TimeColumn: _time_columns,
    ex.DurationColumn: _plain_columns,
    ex.TextCode: _text_codes,
    ex.Constant: _constants,
    ex.Sum: _sums,
    ex.Greatest: _greatest,
    ex.Arithmetic: _arithmetic,
    ex.Function: _functions,
    ex.Filled: _filled,
    ex.Where: _where,
    ex.Bin: _bins,
    ex.NumberCode: _number_codes,
    ex.Entry: _entries,
    ex.Compared: _compared,
    ex.IsMissing: _is_missing,
    ex.IsBeyond: _is_beyond,
    ex.AllOf: _combined("ReduceMin"),
    ex.AnyOf: _combined("ReduceMax"),
}
"""Type of nodes -> the function that renders a list of them as one operation or a few."""

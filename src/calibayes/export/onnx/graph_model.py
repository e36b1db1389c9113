"""`to_onnx`: the label and the probabilities of a fitted classifier as an ONNX model."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from calibayes.core.protocols import Array
from calibayes.export import expressions as ex
from calibayes.export.expressions import once_in_order
from calibayes.export.model_expressions import model_expressions
from calibayes.export.onnx import inputs as onnx_inputs
from calibayes.model.decision import checked_costs

# -- Sums of expressions: those that are linear in the same terms become one product of matrices -------------


class FlatSum(NamedTuple):
    """A sum of weighted expressions and a constant."""

    terms: tuple[ex.Expression, ...]
    weights: tuple[float, ...]
    constant: float

    @property
    def is_linear(self) -> bool:
        """Whether all terms are stored values (`Once`), so that a product of matrices can replace the sum."""
        return len(self.terms) > 1 and all(isinstance(term, ex.Once) for term in self.terms)


def flatten(node: ex.Sum) -> FlatSum:
    """A sum with the terms of the sums in it, constants added, and constant factors taken out of the terms."""
    terms, weights, constant = [], [], 0.0
    pending: list[ex.Expression] = list(node.terms)[::-1]
    while pending:
        term = pending.pop()
        if isinstance(term, ex.Sum):
            pending.extend(term.terms[::-1])
        elif isinstance(term, ex.Constant):
            constant += term.value
        else:
            inner, weight = _weighted(term)
            terms.append(inner)
            weights.append(weight)
    return FlatSum(tuple(terms), tuple(weights), constant)


def _weighted(term: ex.Expression) -> tuple[ex.Expression, float]:
    """A term without a constant factor, and the factor."""
    match term:
        case ex.Arithmetic(operator="*", left=ex.Once(), right=ex.Constant(value)) if not math.isnan(value):
            return term.left, value
    return term, 1.0


def groups_with_common_terms(sums: Sequence[FlatSum]) -> list[list[int]]:
    """Positions of linear sums, grouped so that sums of different groups have no term in common."""
    group_of: dict[ex.Expression, int] = {}
    members: defaultdict[int, list[int]] = defaultdict(list)
    terms: defaultdict[int, list[ex.Expression]] = defaultdict(list)
    for position, flat in enumerate(sums):
        joined = {group_of[term] for term in flat.terms if term in group_of}
        for old in joined:
            members[position] += members.pop(old)
            terms[position] += terms.pop(old)
        members[position].append(position)
        terms[position] += [term for term in flat.terms if term not in group_of]
        group_of.update(dict.fromkeys(terms[position], position))
    return list(members.values())


# -- Expressions as operations of ONNX -----------------------------------------------------------------------
#
# Lists of expressions are rendered instead of single ones: all nodes of a list that have the same type and operator become one
# operation on a matrix with a row for each node and a column for each of the n rows of the table; their parts are rendered as
# lists in the same way. Therefore the number of operations depends on the form of a model, and hardly on its number of columns and
# classes. Values that are computed once (`Once`), and functions, are rendered layer by layer. Missing numbers are NaN.

NAN = np.array([[np.nan]])
KEPT = (ex.Function, ex.Once)
"""Nodes that are rendered layer by layer: those that are computed once, and functions, so that many share an operation."""


Renderer: TypeAlias = Callable[["Rendering", Any], str]
"""The matrix of a list of nodes that have the same type and operator."""


class Place(NamedTuple):
    """A row of a matrix."""

    tensor: str
    row: int


class Rendering:
    """The operations of one model."""

    def __init__(self, graph: onnx_inputs.Graph, inputs: onnx_inputs.Inputs) -> None:
        self.graph, self.inputs = graph, inputs
        self.places: dict[Any, Place] = {}
        """Node -> the row with its value, if it has been computed."""
        self.heights: dict[str, int] = {}
        """Number of rows of the matrices in ``places``."""
        self.lists: dict[tuple[int, ...], str] = {}
        """Lists of nodes that were rendered, by identity."""

    def outputs(self, nodes: Sequence[ex.Expression]) -> str:
        """The values of expressions, (n, number of expressions): the columns of the result."""
        for layer in once_in_order(nodes, KEPT):
            for kind in KEPT:
                if kept := [node for node in layer if isinstance(node, kind)]:
                    values = [node.value for node in kept] if kind is ex.Once else kept
                    self._keep(kept, self.matrix(values))
        rows = self._filled_out(self.matrix(nodes), nodes)
        return self.graph.add("Transpose", rows, perm=[1, 0])

    def matrix(self, nodes: Sequence[Any]) -> str:
        """The values of nodes, (number of nodes, n); booleans for conditions."""
        key = tuple(map(id, nodes))
        if key not in self.lists:
            self.lists[key] = self._matrix(nodes)
        return self.lists[key]

    def parts(self, nodes: Sequence[Any], *names: str) -> list[str]:
        """For each name, the parts of the nodes of that name as one matrix."""
        return [self.matrix([getattr(node, name) for node in nodes]) for name in names]

    def _matrix(self, nodes: Sequence[Any]) -> str:
        distinct = list(dict.fromkeys(nodes))
        if len(distinct) < len(nodes):
            place = {node: j for j, node in enumerate(distinct)}
            return self._rows(self.matrix(distinct), [place[node] for node in nodes])

        def render(group: Sequence[Any]) -> str:
            rendered = self._render(group)
            return rendered if len(group) == len(nodes) else self._filled_out(rendered, group)

        return self.by_size(nodes, self._form, render)

    def _form(self, node: Any) -> Hashable:
        """A key that is equal for nodes that become one operation."""
        if node in self.places:
            return "kept"
        return type(node), getattr(node, "operator", ""), node.name if isinstance(node, ex.Function) else ""

    def _render(self, nodes: Sequence[Any]) -> str:
        if nodes[0] in self.places:
            return self._kept([self.places[node] for node in nodes])
        rendered = RENDERERS[type(nodes[0])](self, nodes)
        if isinstance(nodes[0], ex.Condition):
            self._keep(nodes, rendered)
        return rendered

    # -- places ------------------------------------------------------------------------------------------------------

    def _keep(self, nodes: Sequence[Any], tensor: str) -> None:
        if nodes and all(isinstance(getattr(node, "value", None), ex.Constant) for node in nodes):
            tensor = self.expanded(tensor, len(nodes))
        self.heights[tensor] = len(nodes)
        self.places.update({node: Place(tensor, j) for j, node in enumerate(nodes)})

    def _kept(self, places: Sequence[Place]) -> str:
        def rows(group: Sequence[Place]) -> str:
            return self._rows(group[0].tensor, [place.row for place in group])

        return self.by_size(places, lambda place: place.tensor, rows)

    def _rows(self, tensor: str, rows: Sequence[int]) -> str:
        if list(rows) == list(range(self.heights.get(tensor, -1))):
            return tensor
        return self.graph.add("Gather", tensor, self.graph.constant(np.array(rows, dtype=np.int64)), axis=0)

    def in_order(self, parts: Sequence[str], positions: Sequence[int] = ()) -> str:
        """Parts below each other, their rows moved to these positions if any are given."""
        joined = parts[0] if len(parts) == 1 else self.graph.add("Concat", *parts, axis=0)
        order = np.argsort(positions)
        if np.array_equal(order, np.arange(len(order))):
            return joined
        return self.graph.add("Gather", joined, self.graph.constant(order), axis=0)

    def _filled_out(self, tensor: str, nodes: Sequence[Any]) -> str:
        """A matrix of constants with as many columns as the table has rows; other matrices have them."""
        is_constant = all(isinstance(node, ex.Constant) for node in nodes)
        return self.expanded(tensor, len(nodes)) if is_constant else tensor

    def expanded(self, tensor: str, height: int) -> str:
        rows = self.graph.add("Shape", self.inputs.any(), start=0, end=1)
        shape = self.graph.add("Concat", self.constant_shape(height), rows, axis=0)
        return self.graph.add("Expand", tensor, shape)

    # -- what renderers use ------------------------------------------------------------------------------------------

    def numbers(self, values: Any) -> str:
        """Numbers as a matrix of one column."""
        return self.graph.constant(np.asarray(values, dtype=np.float64).reshape(-1, 1))

    def constant_shape(self, *sizes: int) -> str:
        return self.graph.constant(np.array(sizes, dtype=np.int64))

    def where_missing(self, number: str, then: str, otherwise: str) -> str:
        return self.graph.add("Where", self.graph.add("IsNaN", number), then, otherwise)

    def missing_with(self, number: str, value: str) -> str:
        """A value, missing where a number is."""
        return self.where_missing(number, self.graph.constant(NAN), value)

    def cast(self, tensor: str, kind: str) -> str:
        return self.graph.add("Cast", tensor, to=getattr(self.graph.onnx.TensorProto, kind))

    def reduced(self, operator: str, tensor: str, sizes: tuple[int, int]) -> str:
        """Sums or greatest values of consecutive rows: sizes are the number of results and of rows of each."""
        cube = self.graph.add("Reshape", tensor, self.constant_shape(*sizes, -1))
        return self.graph.add(operator, cube, self.constant_shape(1), keepdims=0)

    def by_size(self, nodes: Sequence[Any], size: Callable[[Any], Hashable], render: Any) -> str:
        """Nodes rendered in groups of the same size, below each other in their order."""
        groups: dict[Hashable, list[int]] = {}
        for position, node in enumerate(nodes):
            groups.setdefault(size(node), []).append(position)
        parts = [render([nodes[j] for j in group]) for group in groups.values()]
        return self.in_order(parts, [j for group in groups.values() for j in group])


# -- How lists of nodes of each type become operations of ONNX -----------------------------------------------

FUNCTIONS = {"exp": "Exp", "log": "Log", "sqrt": "Sqrt", "floor": "Floor"}
OPERATORS = {"-": "Sub", "*": "Mul", "/": "Div", "<": "Less", "<=": "LessOrEqual", "=": "Equal"}

# -- columns of the table ------------------------------------------------------------------------------------------


def _number_columns(this: Rendering, nodes: Sequence[ex.NumberColumn]) -> str:
    cells = this.inputs.numbers([node.name for node in nodes])
    size = this.graph.add("Abs", cells)
    is_valid = this.graph.add("LessOrEqual", size, this.numbers(ex.LARGEST_NUMBER))
    return this.graph.add("Where", is_valid, cells, this.graph.constant(NAN))


def _plain_columns(this: Rendering, nodes: Sequence[Any]) -> str:
    for node in nodes:
        if getattr(node, "zone", None) is not None:
            raise TypeError(onnx_inputs.CALENDAR_ZONE.format(name=node.name, zone=node.zone))
    return this.inputs.numbers([node.name for node in nodes])


def _text_codes(this: Rendering, nodes: Sequence[ex.TextCode]) -> str:
    return this.in_order([this.inputs.text_codes(node) for node in nodes])


# -- numbers -------------------------------------------------------------------------------------------------------


def _constants(this: Rendering, nodes: Sequence[ex.Constant]) -> str:
    return this.numbers([node.value for node in nodes])


def _of_two(this: Rendering, nodes: Sequence[ex.Arithmetic | ex.Compared]) -> str:
    """Arithmetic and comparisons."""
    return this.graph.add(OPERATORS[nodes[0].operator], *this.parts(nodes, "left", "right"))


def _functions(this: Rendering, nodes: Sequence[ex.Function]) -> str:
    return this.graph.add(FUNCTIONS[nodes[0].name], this.matrix([node.value for node in nodes]))


def _filled(this: Rendering, nodes: Sequence[ex.Filled]) -> str:
    value, default = this.parts(nodes, "value", "default")
    return this.where_missing(value, default, value)


def _where(this: Rendering, nodes: Sequence[ex.Where]) -> str:
    return this.graph.add("Where", *this.parts(nodes, "condition", "then", "otherwise"))


def _sums(this: Rendering, nodes: Sequence[ex.Sum]) -> str:
    sums = [flatten(node) for node in nodes]
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
    distinct = dict.fromkeys(term for flat in sums for term in flat.terms)
    place = {term: j for j, term in enumerate(distinct)}
    weights, uses = np.zeros((len(sums), len(place))), np.zeros((len(sums), len(place)), dtype=np.float32)
    for row, flat in enumerate(sums):
        for term, weight in zip(flat.terms, flat.weights, strict=True):
            weights[row, place[term]] += weight
            uses[row, place[term]] = 1.0  # also of weight 0: a missing term makes the sum missing
    terms, constants = this.matrix(list(place)), [flat.constant for flat in sums]
    if weights.all():
        product = this.graph.add("MatMul", this.graph.constant(weights), terms)
        return this.graph.add("Add", product, this.numbers(constants))
    missing = this.graph.add("IsNaN", terms)
    filled = this.graph.add("Where", missing, this.numbers(0.0), terms)
    product = this.graph.add("MatMul", this.graph.constant(weights), filled)
    total = this.graph.add("Add", product, this.numbers(constants))
    counted = this.graph.add("MatMul", this.graph.constant(uses), this.cast(missing, "FLOAT"))
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


def _bins(this: Rendering, nodes: Sequence[ex.BinCode]) -> str:
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
        codes = onnx_inputs.look_up(this.graph, value, np.array(node.levels), range(len(node.levels)), other)
        parts.append(codes if node.other is None else this.missing_with(value, codes))
    return this.in_order(parts)


def _entries(this: Rendering, nodes: Sequence[ex.TableEntry]) -> str:
    """One look-up in the concatenation of all tables."""
    code = this.matrix([node.code for node in nodes])
    sizes = [len(node.table) for node in nodes]
    first = np.cumsum([0, *sizes[:-1]])[:, None]
    table = this.graph.constant(np.concatenate([np.array(node.table) for node in nodes]))
    known = this.cast(this.where_missing(code, this.numbers(0.0), code), "INT64")
    place = this.graph.add("Add", known, this.graph.constant(first)) if first.any() else known
    return this.missing_with(code, this.graph.add("Gather", table, place))


# -- conditions ----------------------------------------------------------------------------------------------------


def _is_missing(this: Rendering, nodes: Sequence[ex.IsMissing]) -> str:
    def render(group: Sequence[ex.IsMissing]) -> str:
        if isinstance(group[0].value, ex.TextColumn):
            texts: list[Any] = [node.value for node in group]
            return this.in_order([this.inputs.is_missing_text(text) for text in texts])
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
    **dict.fromkeys((ex.BooleanColumn, ex.TimeColumn, ex.DurationColumn), _plain_columns),
    ex.TextCode: _text_codes,
    ex.Constant: _constants,
    ex.Sum: _sums,
    ex.Greatest: _greatest,
    **dict.fromkeys((ex.Arithmetic, ex.Compared), _of_two),
    ex.Function: _functions,
    ex.Filled: _filled,
    ex.Where: _where,
    ex.BinCode: _bins,
    ex.NumberCode: _number_codes,
    ex.TableEntry: _entries,
    ex.IsMissing: _is_missing,
    ex.IsBeyond: _is_beyond,
    ex.AllTrue: _combined("ReduceMin"),
    ex.AnyTrue: _combined("ReduceMax"),
}
"""Type of nodes -> the function that renders a list of them as one operation or a few."""


LABEL, PROBABILITIES = "label", "probabilities"
"""The names of the outputs; underscores are added if a column has the same name."""


def to_onnx(model: Any, missing: str = "") -> Any:
    """The label and the probabilities of a fitted classifier as an ONNX model; see the method `to_onnx` of classifiers.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from calibayes.export.onnx import to_onnx
    >>> exported = to_onnx(GaussianNB().fit([[1.0, 0.0], [2.0, 1.0], [5.0, 0.0], [7.0, 2.0]], ["a", "a", "b", "b"]))
    >>> [value.name for value in (*exported.graph.input, *exported.graph.output)]
    ['X', 'label', 'probabilities']
    """
    onnx_inputs.onnx_module()
    expressions = model_expressions(model)
    columns = onnx_inputs.UsedColumns(ex.nodes_within(expressions.probabilities))
    if not columns.names:  # a model of class frequencies alone needs the number of rows
        columns = onnx_inputs.UsedColumns([_first_column(model)])
    matrix = _matrix_names(model, columns)
    graph = onnx_inputs.Graph([onnx_inputs.MATRIX] if matrix is not None else columns.names)
    outputs = [graph.free_name(name) for name in (LABEL, PROBABILITIES)]
    inputs = onnx_inputs.Inputs(graph, matrix, missing, columns)
    try:
        rendered = Rendering(graph, inputs).outputs(expressions.probabilities)
    except TypeError as error:
        raise TypeError(f"{type(model).__name__} cannot be exported: {error}") from error
    graph.add("Identity", rendered, output=outputs[1])
    classes = np.asarray(model.classes_)
    _label(graph, outputs[1], classes, getattr(model, "costs", None), outputs[0])
    notes = {"classes": json.dumps(list(expressions.classes)), onnx_inputs.MISSING_MARKER: missing}
    return graph.model(type(model).__name__, inputs.values(), _outputs(graph, outputs, classes), notes)


def _first_column(model: Any) -> ex.NumberColumn | ex.TextColumn:
    """The first column of the table that a model was fitted to."""
    conversion = getattr(model, "estimator_", model).conversion_
    is_text = bool(conversion.types) and conversion.types[0].kind in "OUS"
    return ex.TextColumn(conversion.names[0]) if is_text else ex.NumberColumn(conversion.names[0])


def _matrix_names(model: Any, columns: onnx_inputs.UsedColumns) -> Sequence[str] | None:
    """The names of the columns if the model was fitted to an array of numbers; None if it was fitted to another table."""
    fitted = getattr(model, "estimator_", model)  # the estimator that another one has chosen
    conversion = fitted.conversion_
    is_array = not hasattr(fitted, "feature_names_in_")
    is_numeric = columns.are_numbers and all(dtype.kind in "fiu" for dtype in conversion.types)
    return conversion.names if is_array and is_numeric else None


def _label(graph: onnx_inputs.Graph, probabilities: str, classes: Array, costs: Any, output: str) -> None:
    """The most probable class, or with costs the one of lowest expected cost."""
    if costs is None:
        chosen = graph.add("ArgMax", probabilities, axis=1, keepdims=0)
    else:
        matrix = np.asarray(checked_costs(costs, len(classes)), dtype=np.float64)
        expected = graph.add("MatMul", probabilities, graph.constant(matrix))
        chosen = graph.add("ArgMin", expected, axis=1, keepdims=0)
    graph.add("Gather", graph.constant(_portable(classes)), chosen, output=output)


def _portable(classes: Array) -> Array:
    """Classes as integers, float64, booleans or strings."""
    kinds = {"i": np.int64, "u": np.int64, "f": np.float64, "b": np.bool_}
    if classes.dtype.kind in kinds:
        return classes.astype(kinds[classes.dtype.kind])
    return np.array([str(label) for label in classes.tolist()], dtype=object)


def _outputs(graph: onnx_inputs.Graph, names: Sequence[str], classes: Array) -> list[Any]:
    helper, types = graph.onnx.helper, graph.onnx.TensorProto
    kinds = {"i": types.INT64, "f": types.DOUBLE, "b": types.BOOL, "O": types.STRING}
    return [
        helper.make_tensor_value_info(names[0], kinds[_portable(classes).dtype.kind], ["n"]),
        helper.make_tensor_value_info(names[1], types.DOUBLE, ["n", len(classes)]),
    ]

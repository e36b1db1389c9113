"""Expressions as operations of ONNX.

Lists of expressions are rendered instead of single ones: all nodes of a list that have the same type and operator become one
operation on a matrix with a row for each node and a column for each of the n rows of the table; their parts are rendered as
lists in the same way. Therefore the number of operations depends on the form of a model, and hardly on its number of columns and
classes. Values that are computed once (`Once`), and functions, are rendered layer by layer. Missing numbers are NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from calibayes.export import expressions as ex
from calibayes.export.onnx.graph import Graph
from calibayes.export.onnx.inputs import Inputs
from calibayes.export.traversal import once_in_order

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
    """The operations of one model; ``renderers`` are the functions that make a matrix of a list of nodes of one type."""

    def __init__(self, graph: Graph, inputs: Inputs, renderers: Mapping[type, Renderer]) -> None:
        self.graph, self.inputs, self.renderers = graph, inputs, renderers
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
        rows = self._filled_out(self.matrix(nodes), nodes, range(len(nodes)))
        return self.graph.add("Transpose", rows, perm=[1, 0])

    def matrix(self, nodes: Sequence[Any]) -> str:
        """The values of nodes, (number of nodes, n); booleans for conditions."""
        key = tuple(map(id, nodes))
        if key not in self.lists:
            self.lists[key] = self._matrix(nodes)
        return self.lists[key]

    def _matrix(self, nodes: Sequence[Any]) -> str:
        distinct = list(dict.fromkeys(nodes))
        if len(distinct) < len(nodes):
            place = {node: j for j, node in enumerate(distinct)}
            return self._rows(self.matrix(distinct), [place[node] for node in nodes])
        groups: dict[Hashable, list[int]] = {}
        for position, node in enumerate(nodes):
            groups.setdefault(self._form(node), []).append(position)
        if len(groups) == 1:
            return self._render(nodes)
        parts = [
            self._filled_out(self._render([nodes[j] for j in group]), nodes, group)
            for group in groups.values()
        ]
        return self.in_order(parts, [j for group in groups.values() for j in group])

    def _form(self, node: Any) -> Hashable:
        """A key that is equal for nodes that become one operation."""
        if node in self.places:
            return "kept"
        return type(node), getattr(node, "operator", ""), node.name if isinstance(node, ex.Function) else ""

    def _render(self, nodes: Sequence[Any]) -> str:
        if nodes[0] in self.places:
            return self._kept([self.places[node] for node in nodes])
        rendered = self.renderers[type(nodes[0])](self, nodes)
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
        by_tensor: dict[str, list[int]] = {}
        for position, place in enumerate(places):
            by_tensor.setdefault(place.tensor, []).append(position)
        parts = [
            self._rows(tensor, [places[j].row for j in positions]) for tensor, positions in by_tensor.items()
        ]
        return self.in_order(parts, [j for positions in by_tensor.values() for j in positions])

    def _rows(self, tensor: str, rows: Sequence[int]) -> str:
        if list(rows) == list(range(self.heights.get(tensor, -1))):
            return tensor
        return self.graph.add("Gather", tensor, self.graph.constant(np.array(rows, dtype=np.int64)), axis=0)

    def in_order(self, parts: Sequence[str], positions: Sequence[int]) -> str:
        """Parts below each other, their rows moved to these positions."""
        joined = parts[0] if len(parts) == 1 else self.graph.add("Concat", *parts, axis=0)
        order = np.argsort(positions)
        if np.array_equal(order, np.arange(len(order))):
            return joined
        return self.graph.add("Gather", joined, self.graph.constant(order), axis=0)

    def _filled_out(self, tensor: str, nodes: Sequence[Any], group: Sequence[int]) -> str:
        """A matrix with a column for each row of the table; that of constants has one column and is expanded."""
        is_constant = all(isinstance(nodes[j], ex.Constant) for j in group)
        return self.expanded(tensor, len(group)) if is_constant else tensor

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

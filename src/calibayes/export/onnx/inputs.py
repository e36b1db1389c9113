"""The inputs of a graph: one matrix of numbers, or one input for each column.

Inside of the graph a column of the table is a row of a matrix: rows of a matrix are contiguous in memory, so that they are
selected and concatenated many times faster than columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod
from typing import Any

import numpy as np

from calibayes.export import expressions as ex
from calibayes.export.onnx.graph import ML, Graph

MATRIX = "X"
"""The name of the input of a model that was fitted to an array of numbers."""
CALENDAR_ZONE = (
    "months, weekdays or hours of column {name!r} are those of a clock in the time zone {zone}, which ONNX cannot compute: "
    "train on a column without a time zone"
)


class UsedColumns:
    """The names of the columns that nodes read, and whether all of them are read as numbers."""

    def __init__(self) -> None:
        self.are_numbers = True
        self.names: dict[str, None] = {}
        self.numbers: set[str] = set()
        """Names of columns that some node reads as numbers, booleans, dates or durations."""

    @singledispatchmethod
    def add(self, node: Any) -> None:
        """Add the column that a node reads; other nodes are ignored."""

    @add.register(ex.NumberColumn | ex.BooleanColumn | ex.TimeColumn | ex.DurationColumn)
    def _(self, node: Any) -> None:
        self.names[node.name] = None
        self.numbers.add(node.name)
        self.are_numbers &= isinstance(node, ex.NumberColumn)

    @add.register
    def _(self, node: ex.TextColumn) -> None:
        self.names[node.name] = None
        self.are_numbers = False


@dataclass
class Inputs:
    """The columns that a graph reads, each a tensor (n, 1) of float64 or of strings.

    Attributes
    ----------
    graph : Graph
    matrix : sequence of str or None
        Names of the columns of one matrix; None for one input for each column.
    marker : str
        The text that stands for a missing value.
    columns : UsedColumns
        The columns that the graph will read.
    kinds : dict
        Name of a column -> "number" or "text", in the order of first use.
    """

    graph: Graph
    matrix: Sequence[str] | None
    marker: str
    columns: UsedColumns
    kinds: dict[str, str] = field(default_factory=dict)
    transposed: dict[str, str] = field(default_factory=dict)
    """Name of an input of numbers -> the tensor in which its columns are rows."""

    def values(self) -> list[Any]:
        """Descriptions of the inputs."""
        helper, types = self.graph.onnx.helper, self.graph.onnx.TensorProto
        if self.matrix is not None:
            return [helper.make_tensor_value_info(MATRIX, types.DOUBLE, ["n", len(self.matrix)])]
        element = {"number": types.DOUBLE, "text": types.STRING}
        kinds = {name: "number" if name in self.columns.numbers else "text" for name in self.columns.names}
        return [
            helper.make_tensor_value_info(name, element[kind], ["n", 1])
            for name, kind in (self.kinds or kinds).items()
        ]

    def any(self) -> str:
        """The name of an input, whose shape has the number of rows."""
        return MATRIX if self.matrix is not None else next(iter(self.columns.names))

    def numbers(self, names: Sequence[str]) -> str:
        """Columns of numbers as rows, (number of names, n)."""
        if self.matrix is not None:
            places = [self.matrix.index(name) for name in names]
            if MATRIX not in self.transposed:
                self.transposed[MATRIX] = self.graph.add("Transpose", MATRIX, perm=[1, 0])
            if places == list(range(len(self.matrix))):
                return self.transposed[MATRIX]
            return self.graph.add(
                "Gather", self.transposed[MATRIX], self.graph.constant(np.array(places)), axis=0
            )
        rows = [self._number(name) for name in names]
        return rows[0] if len(rows) == 1 else self.graph.add("Concat", *rows, axis=0)

    def _number(self, name: str) -> str:
        self._use(name, "number")
        if name not in self.transposed:
            self.transposed[name] = self._as_row(name)
        return self.transposed[name]

    def _as_row(self, column: str) -> str:
        return self.graph.add("Reshape", column, self.graph.constant(np.array([1, -1])))

    def text_codes(self, node: ex.TextCode) -> str:
        """Positions of texts among levels, (1, n): NaN for the marker, and for unknown texts unless they have a code."""
        if self.marker in node.levels:
            raise ValueError(
                f"column {node.column.name!r} has the level {self.marker!r}, which is the marker of missing texts: give "
                "another one, to_onnx(missing=...)"
            )
        other = np.nan if node.other is None else node.other
        codes = [*map(float, range(len(node.levels))), np.nan]
        return self._look_up(node.column.name, [*node.levels, self.marker], codes, other)

    def is_missing_text(self, column: ex.TextColumn) -> str:
        """Whether a cell is missing, (1, n) booleans: the marker, or NaN in a column of booleans, whose input is of numbers."""
        if column.name in self.columns.numbers:
            return self.graph.add("IsNaN", self.numbers([column.name]))
        found = self._look_up(column.name, [self.marker], [1.0], 0.0)
        return self.graph.add("Cast", found, to=self.graph.onnx.TensorProto.BOOL)

    def _look_up(self, name: str, keys: Sequence[str], values: Sequence[float], default: float) -> str:
        self._use(name, "text")
        return self._as_row(look_up(self.graph, name, np.array(keys, dtype=object), values, default))

    def _use(self, name: str, kind: str) -> None:
        if self.kinds.setdefault(name, kind) != kind:
            raise TypeError(f"column {name!r} is read both as text and as numbers")


def look_up(graph: Graph, tensor: str, keys: Any, values: Sequence[float], default: float) -> str:
    """The value of the key in each cell of a tensor; the default for other cells."""
    tensors = {
        "keys_tensor": np.asarray(keys),
        "values_tensor": np.asarray(values, dtype=np.float64),
        "default_tensor": np.array([default], dtype=np.float64),
    }
    made = {name: graph.onnx.numpy_helper.from_array(array, name) for name, array in tensors.items()}
    return graph.add("LabelEncoder", tensor, domain=ML, **made)

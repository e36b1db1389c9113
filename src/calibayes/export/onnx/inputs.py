"""The inputs of a graph: one matrix of numbers, or one input for each column.

Inside of the graph a column of the table is a row of a matrix: rows of a matrix are contiguous in memory, so that they are
selected and concatenated many times faster than columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibayes.core.notices import listed
from calibayes.core.protocols import Array
from calibayes.export import expressions as ex
from calibayes.tables.read import is_frame, object_array, read_array, read_frame
from calibayes.tables.table import Table, is_missing

# -- An ONNX graph that is built operation by operation ------------------------------------------------------

OPSET, ML_OPSET, IR_VERSION = 18, 4, 9
"""Versions of the operators of ONNX and of its machine-learning domain, and of the file format."""
ML = "ai.onnx.ml"
MISSING_MARKER = "missing"
"""Key of the metadata of a model: the text that stands for a missing value."""


def onnx_module() -> Any:
    """The package onnx. Raises ImportError, with what to install, if it is not installed."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("to_onnx needs the package onnx: pip install onnx") from error
    return onnx


class Graph:
    """Operations and constants in the order in which they were added. Tensors are referred to by their names."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self.onnx = onnx_module()
        self.taken = set(taken)
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.stored: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def free_name(self, wanted: str) -> str:
        """A name that no input or tensor has: ``wanted``, with underscores added if necessary."""
        while wanted in self.taken:
            wanted += "_"
        self.taken.add(wanted)
        return wanted

    def constant(self, values: Any) -> str:
        """A constant tensor; equal ones are stored once."""
        array = np.asarray(values)
        if array.dtype.kind in "OU":
            return self._store(array.astype(object))
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self.stored:
            self.stored[key] = self._store(array)
        return self.stored[key]

    def _store(self, array: Array) -> str:
        name = self.free_name(f"constant_{len(self.initializers)}")
        self.initializers.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add an operation; returns the name of its result."""
        name = self.free_name(f"t{len(self.nodes)}") if output is None else output
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def model(
        self, name: str, inputs: Sequence[Any], outputs: Sequence[Any], notes: Mapping[str, str]
    ) -> Any:
        """The model, checked by onnx; ``notes`` are its metadata."""
        from calibayes._version import __version__

        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, name, list(inputs), list(outputs), self.initializers)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)],
            ir_version=IR_VERSION,
            producer_name="calibayes",
            producer_version=__version__,
        )
        helper.set_model_props(model, dict(notes))
        self.onnx.checker.check_model(model)
        return model


# -- The inputs of a graph: one matrix of numbers, or one input for each column ------------------------------
#
# Inside of the graph a column of the table is a row of a matrix: rows of a matrix are contiguous in memory, so that they are
# selected and concatenated many times faster than columns.

MATRIX = "X"
"""The name of the input of a model that was fitted to an array of numbers."""
CALENDAR_ZONE = (
    "months, weekdays or hours of column {name!r} are those of a clock in the time zone {zone}, which ONNX cannot compute: "
    "train on a column without a time zone"
)


class UsedColumns:
    """The columns among some nodes: their names, and which are read as numbers."""

    def __init__(self, nodes: Iterable[ex.Node]) -> None:
        columns = [node for node in nodes if isinstance(node, ex.COLUMNS)]
        self.names = list(dict.fromkeys(node.name for node in columns))
        self.numbers = {node.name for node in columns if not isinstance(node, ex.TextColumn)}
        """Names of columns that some node reads as numbers, booleans, dates or durations."""
        self.are_numbers = all(isinstance(node, ex.NumberColumn) for node in columns)


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
        return MATRIX if self.matrix is not None else self.columns.names[0]

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


# -- Rows of a table as the inputs of an exported model ------------------------------------------------------


def feeds(model: Any, X: Any) -> dict[str, Array]:
    """The inputs of a model of `to_onnx` for the rows of a table: name -> array, the argument of onnxruntime's ``run``.

    Numbers become float64, as do booleans (0 and 1), dates (microseconds since 1970) and durations (microseconds); missing
    ones are NaN. Text becomes strings, missing text the marker that was given to `to_onnx`.

    Parameters
    ----------
    model : onnx.ModelProto
        The result of `to_onnx`.
    X : data frame, array or sparse array of shape (n, d)
        All columns that the model reads.

    Raises
    ------
    ValueError
        If ``X`` has no column of the name of an input, or not as many columns as the input ``X``.

    Examples
    --------
    >>> import pandas as pd
    >>> from calibayes import NaiveBayes
    >>> from calibayes.export.onnx import feeds, to_onnx
    >>> X = pd.DataFrame({"size": [1.0, 2.0, 5.0, 7.0], "color": ["red", "red", None, "blue"]})
    >>> exported = to_onnx(NaiveBayes(rule="ml").fit(X, [0, 0, 1, 1]))
    >>> {name: array[:, 0].tolist() for name, array in feeds(exported, X).items()}
    {'size': [1.0, 2.0, 5.0, 7.0], 'color': ['red', 'red', '', 'blue']}
    """
    table = _table(X)
    marker = {entry.key: entry.value for entry in model.metadata_props}.get(MISSING_MARKER, "")
    first = model.graph.input[0]
    width = first.type.tensor_type.shape.dim[1].dim_value
    if width > 1 or (first.name == MATRIX and MATRIX not in table.names):
        return {first.name: _matrix(table, width)}
    return {value.name: _column(table, value, marker)[:, None] for value in model.graph.input}


def _matrix(table: Table, width: int) -> Array:
    """All columns as one matrix. Raises ValueError if there are not as many as the model reads."""
    if len(table.names) != width:
        raise ValueError(f"the model reads a matrix of {width} columns, but the table has {len(table.names)}")
    return np.stack([_numbers(table, j) for j in range(width)], axis=1)


def _table(X: Any) -> Table:
    if is_frame(X):
        return read_frame(X)
    dense = X.toarray() if hasattr(X, "toarray") else X
    return read_array(object_array(dense) if isinstance(dense, list) else np.asarray(dense))


def _column(table: Table, value: Any, marker: str) -> Array:
    if value.name not in table.names:
        raise ValueError(f"the table has no column {value.name!r}; its columns are {listed(table.names)}")
    j = table.names.index(value.name)
    if value.type.tensor_type.elem_type != onnx_module().TensorProto.STRING:
        return _numbers(table, j)
    cells = [marker if is_missing(cell) else str(cell) for cell in table.column(j).tolist()]
    return np.array(cells, dtype=object)


def _numbers(table: Table, j: int) -> Array:
    """A column as float64, NaN where missing. Raises ValueError if it has text that is not a number."""
    column = table.column(j)
    if column.dtype.kind in "mM":
        return np.where(np.isnat(column), np.nan, column.astype(np.int64).astype(np.float64))
    if column.dtype.kind != "O":
        return column.astype(np.float64)
    return np.array([np.nan if is_missing(cell) else float(cell) for cell in column.tolist()])

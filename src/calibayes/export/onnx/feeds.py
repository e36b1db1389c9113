"""Rows of a table as the inputs of an exported model."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.export.onnx.graph import MISSING_MARKER, onnx_module
from calibayes.export.onnx.inputs import MATRIX
from calibayes.tables.read import is_frame, object_array, read_array, read_frame
from calibayes.tables.table import Table, is_missing


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
    table, marker = _table(X), _marker(model)
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


def _marker(model: Any) -> str:
    """The text that stands for a missing value, from the metadata of the model."""
    notes: dict[str, str] = {entry.key: entry.value for entry in model.metadata_props}
    return notes.get(MISSING_MARKER, "")


def _column(table: Table, value: Any, marker: str) -> Array:
    if value.name not in table.names:
        raise ValueError(f"the table has no column {value.name!r}; its columns are {', '.join(table.names)}")
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

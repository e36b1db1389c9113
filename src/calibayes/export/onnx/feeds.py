"""Rows of a table as the inputs of an exported model."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.export.onnx.graph import MISSING_MARKER, onnx_module
from calibayes.tables.read import is_frame, object_array, read_array, read_frame
from calibayes.tables.table import Table, is_missing


def feeds(model: Any, X: Any) -> dict[str, Array]:
    """The inputs of a model of `to_onnx` for the rows of a table: name -> array, as onnxruntime takes them.

    Numbers, booleans, dates and durations become float64 (0 and 1; microseconds since 1970; microseconds), missing ones NaN,
    text becomes strings.

    Parameters
    ----------
    model : onnx.ModelProto
    X : data frame, array or sparse array of shape (n, d)
        With all columns that the model reads.

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
    inputs = list(model.graph.input)
    table, marker = _table(X), _marker(model)
    if (
        len(inputs[0].type.tensor_type.shape.dim) == 2
        and inputs[0].type.tensor_type.shape.dim[1].dim_value > 1
    ):
        columns = [_numbers(table, j) for j in range(len(table.names))]
        return {inputs[0].name: np.stack(columns, axis=1)}
    if len(inputs) == 1 and inputs[0].name not in table.names:
        return {inputs[0].name: _numbers(table, 0)[:, None]}
    return {value.name: _column(table, value, marker)[:, None] for value in inputs}


def _table(X: Any) -> Table:
    if is_frame(X):
        return read_frame(X)
    dense = X.toarray() if hasattr(X, "toarray") else X
    return read_array(object_array(dense) if isinstance(dense, list) else np.asarray(dense))


def _marker(model: Any) -> str:
    """The text that means a missing value, as the model has noted it."""
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
    column = table.column(j)
    if column.dtype.kind in "mM":
        return np.where(np.isnat(column), np.nan, column.astype(np.int64).astype(np.float64))
    if column.dtype.kind != "O":
        return column.astype(np.float64)
    return np.array([np.nan if is_missing(cell) else float(cell) for cell in column.tolist()])

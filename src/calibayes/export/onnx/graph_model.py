"""`to_onnx`: the label and the probabilities of a fitted classifier as an ONNX model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.export.expressions import ModelExpressions, NumberColumn, TextColumn, parts_of
from calibayes.export.model import model_expressions
from calibayes.export.onnx.inputs import MATRIX, MISSING_MARKER, Graph, Inputs, UsedColumns, onnx_module
from calibayes.export.onnx.nodes import RENDERERS, Rendering
from calibayes.model.decision import checked_costs

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
    onnx_module()
    expressions = model_expressions(model)
    columns = _used(expressions)
    if not columns.names:
        columns.add(_first_column(model))  # a model of class frequencies alone needs the number of rows
    matrix = _matrix_names(model, columns)
    graph = Graph([MATRIX] if matrix is not None else list(columns.names))
    outputs = [graph.free_name(name) for name in (LABEL, PROBABILITIES)]
    inputs = Inputs(graph, matrix, missing, columns)
    try:
        rendered = Rendering(graph, inputs, RENDERERS).outputs(expressions.probabilities)
    except TypeError as error:
        raise TypeError(f"{type(model).__name__} cannot be exported: {error}") from error
    graph.add("Identity", rendered, output=outputs[1])
    classes = np.asarray(model.classes_)
    _label(graph, outputs[1], classes, getattr(model, "costs", None), outputs[0])
    notes = {"classes": json.dumps(list(expressions.classes)), MISSING_MARKER: missing}
    return graph.model(type(model).__name__, inputs.values(), _outputs(graph, outputs, classes), notes)


def _used(expressions: ModelExpressions) -> UsedColumns:
    """The columns that a model reads."""
    used, seen = UsedColumns(), set()
    pending: list[Any] = list(expressions.probabilities)
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            used.add(node)
            pending.extend(parts_of(node))
    return used


def _first_column(model: Any) -> NumberColumn | TextColumn:
    """The first column of the table that a model was fitted to."""
    conversion = getattr(model, "estimator_", model).conversion_
    is_text = bool(conversion.types) and conversion.types[0].kind in "OUS"
    return TextColumn(conversion.names[0]) if is_text else NumberColumn(conversion.names[0])


def _matrix_names(model: Any, columns: UsedColumns) -> Sequence[str] | None:
    """The names of the columns if the model was fitted to an array of numbers; None if it was fitted to another table."""
    fitted = getattr(model, "estimator_", model)  # the estimator that another one has chosen
    conversion = fitted.conversion_
    is_array = not hasattr(fitted, "feature_names_in_")
    is_numeric = columns.are_numbers and all(dtype.kind in "fiu" for dtype in conversion.types)
    names: Sequence[str] = conversion.names
    return names if is_array and is_numeric else None


def _label(graph: Graph, probabilities: str, classes: Array, costs: Any, output: str) -> None:
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


def _outputs(graph: Graph, names: Sequence[str], classes: Array) -> list[Any]:
    helper, types = graph.onnx.helper, graph.onnx.TensorProto
    kinds = {"i": types.INT64, "f": types.DOUBLE, "b": types.BOOL, "O": types.STRING}
    return [
        helper.make_tensor_value_info(names[0], kinds[_portable(classes).dtype.kind], ["n"]),
        helper.make_tensor_value_info(names[1], types.DOUBLE, ["n", len(classes)]),
    ]

"""An ONNX graph that is built operation by operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibayes.core.protocols import Array

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
        raise ImportError("to_onnx needs the package onnx: pip install 'calibayes[onnx]'") from error
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
            return self._stored(array.astype(object))
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self.stored:
            self.stored[key] = self._stored(array)
        return self.stored[key]

    def _stored(self, array: Array) -> str:
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

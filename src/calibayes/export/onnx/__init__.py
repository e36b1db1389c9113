"""Fitted classifiers as ONNX graphs: many expressions of the same form become one operation on a matrix.

`to_onnx` is the method of classifiers; `calibayes.export.onnx.graph_model` describes how expressions become operations.
"""

from calibayes.export.onnx.graph_model import to_onnx
from calibayes.export.onnx.inputs import feeds

__all__ = ["feeds", "to_onnx"]

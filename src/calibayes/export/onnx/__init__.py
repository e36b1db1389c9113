"""Fitted classifiers as ONNX graphs: many expressions of the same form become one operation on a matrix.

`to_onnx` is the method of classifiers; `calibayes.export.onnx.rendering` describes how expressions become operations.
"""

from calibayes.export.onnx.feeds import feeds
from calibayes.export.onnx.model import to_onnx

__all__ = ["feeds", "to_onnx"]

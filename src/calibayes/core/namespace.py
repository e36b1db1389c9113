"""Which array library an array belongs to: kernels ask here and name none themselves."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace


def namespace(*arrays: Any) -> Any:
    """The array API namespace that the arrays share (NumPy, PyTorch, CuPy, ...)."""
    return array_namespace(*arrays)

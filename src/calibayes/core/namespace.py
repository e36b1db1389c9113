"""Which array library an array belongs to: kernels ask here and name none themselves."""

from __future__ import annotations

from typing import Any

import array_api_compat.numpy
import numpy as np
from array_api_compat import array_namespace


def namespace(*arrays: Any) -> Any:
    """The array API namespace that the arrays share (NumPy, PyTorch, CuPy, ...)."""
    if all(
        type(array) is np.ndarray for array in arrays
    ):  # most are, and asking takes longer than small sums
        return array_api_compat.numpy
    return array_namespace(*arrays)

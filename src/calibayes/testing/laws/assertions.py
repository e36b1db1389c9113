"""Assertions about statistics and parameters, array by array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from calibayes.core.named_arrays import map_leaves
from calibayes.core.protocols import Array


def assert_arrays_close(left: Any, right: Any, tolerance: float = 1e-10) -> None:
    """The same names, with arrays that are equal up to an absolute and relative tolerance."""
    map_leaves(lambda a, b: assert_allclose(a, b, rtol=tolerance, atol=tolerance), left, right)


def assert_finite(arrays: Any) -> None:
    """No array has an infinite value or NaN."""
    map_leaves(_assert_finite_array, arrays)


def assert_constant_over_classes(difference: Array, tolerance: float) -> None:
    """Each row of an (n, k) array has the same value in all classes."""
    first_class = np.repeat(difference[:, :1], difference.shape[1], axis=1)
    assert_allclose(difference, first_class, atol=tolerance)


def _assert_finite_array(array: Array) -> None:
    assert np.isfinite(array).all()

"""Row weights whose sums are exact, and therefore the same in any order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calibayes.core.protocols import Array

SUM_BITS = 51
"""Bits of the sum of all weights, in units of the rounding: with so many, sums in float64 are exact."""


ROUNDING = 1e-9
"""Relative difference between total weights that counts as rounding."""


def summable(weight: Array) -> Array:
    """Weights (n,) rounded to multiples of a power of two, so small that all sums of weights are exact.

    A weight changes by at most the rounding error of the sum of all weights. Whole numbers do not change.

    >>> weight = summable(np.array([0.1, 0.2, 0.3]))
    >>> bool(weight[0] + (weight[1] + weight[2]) == (weight[0] + weight[1]) + weight[2])
    True
    """
    return rounded(weight, rounding_unit(weight))


def rounding_unit(weight: Array) -> float:
    """The power of two whose multiples the weights (n,) of all rows are rounded to by `summable`."""
    _, exponent = math.frexp(float(weight.sum()))
    return math.ldexp(1.0, max(exponent - SUM_BITS, -1000))


def rounded(weight: Array, unit: float) -> Array:
    """Weights rounded to multiples of a power of two."""
    if len(weight) and not weight.strides[0]:  # one number for all rows
        return np.full(len(weight), rounded(weight[:1].copy(), unit)[0])
    return np.asarray(np.rint(weight / unit) * unit)


def reaches(weight: Any, least: float) -> Any:
    """Whether a total weight is at least ``least``, apart from rounding."""
    return weight >= (1.0 - ROUNDING) * least

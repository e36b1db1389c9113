"""A sample of the distinct numbers of a column, which does not depend on how often or in which order they occur.

A number is in the sample if the hash of its bits begins with enough zeros: as few as leave no more numbers than wanted.
Each zero halves the sample, so that a part of the numbers has about 2^zeros times as many distinct ones as are in the
sample (Wegman's adaptive sampling; Flajolet 1990).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_float64, twin

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class DistinctSample(NamedTuple):
    """Distinct numbers whose hashes begin with at least so many zeros."""

    values: Array
    """The numbers, ascending."""
    zeros: int


def native_distinct_sample(module: Any, x: Array, most: int, zeros: int = 0) -> Any:
    values = np.empty(most)
    count, zeros = module.distinct_sample(as_float64(x), zeros, values)
    return DistinctSample(np.sort(values[:count]), zeros)


@twin(native_distinct_sample)
def distinct_sample(x: Array, most: int, zeros: int = 0) -> DistinctSample:
    """At most ``most`` of the distinct numbers of x (n,), those whose hashes begin with at least ``zeros`` zeros, or with more.

    NaN is no number.
    """
    values = np.unique(np.asarray(x, dtype=np.float64) + 0.0)
    values = values[~np.isnan(values)]
    hashes = _hashes(values)
    while np.count_nonzero(has := hashes <= _largest(zeros)) > most:
        zeros += 1
    return DistinctSample(values[has], zeros)


def _hashes(values: Array) -> Array:
    words = values.view(np.uint64) * MULTIPLIER
    return (words ^ (words >> np.uint64(29))) * MULTIPLIER


def _largest(zeros: int) -> np.uint64:
    """The largest hash that begins with so many zeros."""
    return np.uint64((2**64 - 1) >> zeros)

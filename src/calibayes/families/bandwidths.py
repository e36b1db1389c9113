"""How wide the kernel of a density is: rules that find it in the counts of the start, after which it is fixed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibayes.core.protocols import Array


class Bandwidth(Protocol):
    """A rule for bandwidths."""

    def cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        """The bandwidth of each class in cells, (k,), from its counts on cells in order, (k, cells), and their widths.

        ``dimension`` is the number of columns of the density.
        """


@dataclass(frozen=True)
class OverBins:
    """``factor`` times the number of bins over the cube root of the average number of rows a class.

    Parameters
    ----------
    factor : float, default=0.56
    """

    factor: float = 0.56

    def __post_init__(self) -> None:
        if not 0 <= self.factor < math.inf:
            raise ValueError(f"OverBins(factor={self.factor}): the factor must be finite and not negative")

    def cells(self, counts: Array, log_volume: Array, dimension: int = 1) -> Array:
        rows = max(float(counts.sum()) / len(counts), 1.0)
        return np.full(len(counts), self.factor * counts.shape[1] / np.cbrt(rows))

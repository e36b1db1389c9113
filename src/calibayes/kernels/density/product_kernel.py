"""Kernel densities of columns and of pairs of columns at many rows, by one small matrix product a row.

For a row x let A hold the kernels K((x_j - X_lj) / h_j), one line a column and one column a kept row l. The densities
of all pairs of columns at x are A diag(w) A' / (n h_i h_j). Leaving a row out is setting its column of A to zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array

CELLS_PER_BLOCK = 2**20


@dataclass(frozen=True)
class ProductKernel:
    """Kernel densities of one class.

    Parameters
    ----------
    centers : (d, m) array
        Rows that were kept, one line a column.
    weights : (m,) array
        How many copies each stands for.
    single, double : (d,) arrays
        Bandwidths of densities of one column and of pairs.
    """

    centers: Array
    weights: Array
    single: Array
    double: Array

    def densities(self, rows: Array, pairs: Array, own: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Blocks of rows: which, the densities of the columns (b, d), and those of the pairs (b, pairs).

        ``pairs`` has shape (2, pairs); ``own`` is each row's position among the kept rows, -1 for none: one copy of
        it is left out.
        """
        d, m = self.centers.shape
        size = max(1, CELLS_PER_BLOCK // (d * m))
        for first in range(0, len(rows), size):
            block = slice(first, min(first + size, len(rows)))
            yield block, *self._block(rows[block], pairs, own[block])

    def _block(self, rows: Array, pairs: Array, own: Array) -> tuple[Array, Array]:
        gaps = rows[:, :, None] - self.centers
        np.square(gaps, out=gaps)
        mine = np.flatnonzero(own >= 0)
        left = np.zeros(len(rows))
        left[mine] = np.minimum(self.weights[own[mine]], 1.0)
        mass = np.maximum(self.weights.sum() - left, np.finfo(float).tiny)
        rest = 1.0 - left[mine] / self.weights[own[mine]]
        single = self._kernels(gaps, self.single)
        single[mine, :, own[mine]] = rest[:, None]
        ones = single @ self.weights / (mass[:, None] * (self.single * math.sqrt(2 * math.pi)))
        if not pairs.shape[1]:
            return ones, np.empty((len(rows), 0))
        double = self._kernels(gaps, self.double)
        double[mine, :, own[mine]] = np.sqrt(rest)[:, None]
        products = (double * self.weights) @ double.transpose(0, 2, 1)
        scale = 2 * math.pi * self.double[pairs[0]] * self.double[pairs[1]]
        return ones, products[:, pairs[0], pairs[1]] / (mass[:, None] * scale)

    @staticmethod
    def _kernels(squares: Array, bandwidth: Array) -> Array:
        kernels = squares * (-0.5 / bandwidth**2)[:, None]
        return np.exp(kernels, out=kernels)

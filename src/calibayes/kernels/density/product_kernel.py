"""Kernel densities of columns and of pairs of columns at many rows, by one small matrix product per row.

For a row x let A (d, m) hold the kernels K((x_j - X_lj) / h_j) of column j and training row l with weight w_l. The
densities of all pairs of columns (i, j) at x are A diag(w) A' / (n h_i h_j). Leaving row l out sets its column of A to 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_finite

CELLS_PER_BLOCK = 2**20
"""Kernels (rows times d times m) that are computed at a time."""
LEAST_BANDWIDTH = 1e-100
"""Squares of smaller bandwidths are not far from 0 in floating point."""


@dataclass(frozen=True)
class ProductKernel:
    """Kernel densities of one class.

    Parameters
    ----------
    centers : (d, m) array
        Training rows, transposed.
    weights : (m,) array
        Number of copies that each training row represents.
    single, double : (d,) arrays
        Bandwidths of the densities of one column and of pairs, in the units of the columns.
    """

    centers: Array
    weights: Array
    single: Array
    double: Array

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        d, m = require_finite("centers", self.centers, (None, None)).shape
        require(d > 0 and m > 0, "a class has no rows or no columns")
        require(bool((np.abs(self.centers) < 1e100).all()), "centers are too far away")
        require_finite("weights", self.weights, (m,))
        require(bool((self.weights > 0).all()), "weights must be positive")
        require_finite("single", self.single, (d,), LEAST_BANDWIDTH)
        require_finite("double", self.double, (d,), LEAST_BANDWIDTH)

    def densities(self, rows: Array, pairs: Array, positions: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Blocks of b rows of (n, d): their slice, densities of the columns (b, d) and of the pairs (b, pairs).

        ``pairs`` (2, pairs) are positions of columns; ``positions`` (n,) are the positions of the rows among the training
        rows, of which one copy is left out, -1 for other rows.
        """
        d, m = self.centers.shape
        size = max(1, CELLS_PER_BLOCK // (d * m))
        for first in range(0, len(rows), size):
            block = slice(first, min(first + size, len(rows)))
            yield block, *self._block_densities(rows[block], pairs, positions[block])

    def _block_densities(self, rows: Array, pairs: Array, positions: Array) -> tuple[Array, Array]:
        squares = rows[:, :, None] - self.centers
        np.square(squares, out=squares)
        training = np.flatnonzero(positions >= 0)
        left_out = np.zeros(len(rows))
        left_out[training] = np.minimum(self.weights[positions[training]], 1.0)
        mass = np.maximum(self.weights.sum() - left_out, np.finfo(float).tiny)
        remaining = 1.0 - left_out[training] / self.weights[positions[training]]
        single = self._kernels(squares, self.single)
        single[training, :, positions[training]] = remaining[:, None]
        by_column = single @ self.weights / (mass[:, None] * (self.single * math.sqrt(2 * math.pi)))
        if not pairs.shape[1]:
            return by_column, np.empty((len(rows), 0))
        double = self._kernels(squares, self.double)
        double[training, :, positions[training]] = np.sqrt(remaining)[:, None]
        products = (double * self.weights) @ double.transpose(0, 2, 1)
        scale = 2 * math.pi * self.double[pairs[0]] * self.double[pairs[1]]
        return by_column, products[:, pairs[0], pairs[1]] / (mass[:, None] * scale)

    @staticmethod
    def _kernels(squares: Array, bandwidth: Array) -> Array:
        """Unnormalized Gaussian kernels of squared gaps (b, d, m) with bandwidths (d,)."""
        kernels = squares * (-0.5 / bandwidth**2)[:, None]
        return np.exp(kernels, out=kernels)

"""The Hilbert-Schmidt independence criterion of all pairs of columns (slb-2020, section 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import stats
from scipy.linalg.blas import dsyrk

from calibayes.core.protocols import Array
from calibayes.dependence.measure import Measured
from calibayes.kernels.density.gram import gram_factor, median_squared_gaps

CELLS_PER_BLOCK = 2**21


@dataclass(frozen=True)
class HSIC:
    """tr(K H L H) / n^2 with Gaussian kernels exp(-gap^2 / median of gap^2).

    Parameters
    ----------
    exact_rows : int, default=2000
        With more rows than these the Gram matrices are replaced by thin factors.
    landmarks : int, default=120
        Most points that the factors are built on; few do where a column has no heavy tail.
    tolerance : float, default=1e-6
        What the factors may leave out of the mean of a Gram matrix's diagonal, beyond what the landmarks leave out.
    """

    exact_rows: int = 2000
    landmarks: int = 120
    tolerance: float = 1e-6

    name: ClassVar[str] = "HSIC"

    def measure(self, columns: Array, weights: Array) -> Measured:
        scale = median_squared_gaps(columns, weights)
        scale = np.where(scale > 0, scale, 1.0)
        n, share = float(weights.sum()), weights / weights.sum()
        if len(columns) <= self.exact_rows:
            statistic, mean = exact(columns, share, scale)
        else:
            statistic, mean = thin(columns, share, scale, self.landmarks, self.tolerance)
        return Measured(statistic, _gamma_p_values(statistic, mean, n))


def exact(columns: Array, share: Array, scale: Array) -> tuple[Array, Array]:
    """HSIC (d, d) and the mean of each Gram matrix (d,), from Gram matrices laid out as lines of one product.

    Gram matrices are symmetric, so the blocks right of the diagonal are enough; centering is done on the sums.
    """
    n, d = columns.shape
    values, root = columns.T, np.sqrt(share)
    product, sums = np.zeros((d, d)), np.zeros((d, n))
    size = max(1, CELLS_PER_BLOCK // (n * d))
    for first in range(0, n, size):
        mine = slice(first, min(first + size, n))
        gram = values[:, mine, None] - values[:, None, first:]
        np.square(gram, out=gram)
        gram *= (-1.0 / scale)[:, None, None]
        np.exp(gram, out=gram)
        width = mine.stop - first
        sums[:, mine] += gram @ share[first:]
        sums[:, mine.stop :] += share[mine] @ gram[:, :, width:]
        gram *= root[mine, None]
        gram *= root[first:]
        gram[:, :, width:] *= np.sqrt(2.0)
        product += dsyrk(1.0, gram.reshape(d, -1).T, trans=1)
    product = np.triu(product) + np.triu(product, 1).T
    mean = sums @ share
    return product - 2 * (sums * share) @ sums.T + np.outer(mean, mean), mean


def thin(columns: Array, share: Array, scale: Array, landmarks: int, tolerance: float) -> tuple[Array, Array]:
    """The same from thin factors of the Gram matrices, each with the diagonal that it leaves out.

    Rows far from all others are on the diagonal alone: with it heavy tails cost no accuracy.
    """
    factors = [
        gram_factor(column, share, float(width), landmarks, tolerance)
        for column, width in zip(columns.T, scale, strict=True)
    ]
    mean = np.array([float(((share @ factor) ** 2).sum()) for factor in factors])
    lines = [(factor - share @ factor) * np.sqrt(share)[:, None] for factor in factors]
    starts = np.concatenate([[0], np.cumsum([line.shape[1] for line in lines])])
    every = np.concatenate(lines, axis=1)
    statistic = np.empty((len(lines), len(lines)))
    for j, line in enumerate(lines):
        squares = ((line.T @ every[:, starts[j] :]) ** 2).sum(axis=0)
        statistic[j, j:] = np.add.reduceat(squares, starts[j:-1] - starts[j])
    lost = np.stack([1.0 - (factor**2).sum(axis=1) for factor in factors])
    held = np.stack([((factor - share @ factor) ** 2).sum(axis=1) for factor in factors])
    diagonal = (lost * share**2) @ (held + 0.5 * lost).T
    return np.triu(statistic) + np.triu(statistic, 1).T + diagonal + diagonal.T, mean + lost @ share**2


def _gamma_p_values(statistic: Array, mean: Array, n: float) -> Array:
    """The gamma approximation of Gretton et al. (2008): its mean and variance from those of the Gram matrices."""
    if n < 6:
        return np.ones_like(statistic)
    apart = (mean * n - 1.0) / (n - 1.0)
    expected = (1.0 + np.outer(apart, apart) - apart[:, None] - apart) / n
    own = np.diag(statistic)
    variance = 2 * (n - 4) * (n - 5) / (n * (n - 1) * (n - 2) * (n - 3)) * np.outer(own, own)
    varies = (expected > 0) & (variance > 0)
    expected, variance = np.where(varies, expected, 1.0), np.where(varies, variance, 1.0)
    p_value = stats.gamma.sf(statistic, expected**2 / variance, scale=variance / expected)
    return np.where(varies, p_value, 1.0)

"""The Hilbert-Schmidt independence criterion of all pairs of columns (slb-2020, section 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import stats
from scipy.linalg.blas import dsyrk

from calibayes.core.protocols import Array
from calibayes.dependence.measure import PairStatistics
from calibayes.kernels.density.gram import gram_factor, median_squared_gaps

CELLS_PER_BLOCK = 2**21


@dataclass(frozen=True)
class HSIC:
    """tr(K H L H) / n^2 with Gaussian kernels exp(-gap^2 / median of gap^2).

    Parameters
    ----------
    exact_rows : int, default=2000
        With more rows than this, low-rank factors replace the Gram matrices.
    landmarks : int, default=120
        Maximum rank of the factors; columns without heavy tails need far fewer.
    tolerance : float, default=1e-6
        Approximation error allowed in the mean of a Gram matrix's diagonal, unless ``landmarks`` is reached first.

    Examples
    --------
    >>> from calibayes import measure_dependence
    >>> from sklearn.datasets import load_iris
    >>> measure_dependence(*load_iris(return_X_y=True), measure=HSIC()).statistics.shape
    (3, 4, 4)
    """

    exact_rows: int = 2000
    landmarks: int = 120
    tolerance: float = 1e-6

    name: ClassVar[str] = "HSIC"

    def measure(self, columns: Array, weights: Array) -> PairStatistics:
        scale = median_squared_gaps(columns, weights)
        scale = np.where(scale > 0, scale, 1.0)
        n, share = float(weights.sum()), weights / weights.sum()
        if len(columns) <= self.exact_rows:
            statistic, mean = exact_hsic(columns, share, scale)
        else:
            statistic, mean = low_rank_hsic(columns, share, scale, self.landmarks, self.tolerance)
        return PairStatistics(statistic, _gamma_p_values(statistic, mean, n))


def exact_hsic(columns: Array, share: Array, scale: Array) -> tuple[Array, Array]:
    """HSIC (d, d) and the mean of each Gram matrix (d,), by one product of all Gram matrices, in blocks of rows.

    Gram matrices are symmetric, so only the blocks right of the diagonal are computed; centering uses the row sums.
    """
    n, d = columns.shape
    values, root = columns.T, np.sqrt(share)
    product, sums = np.zeros((d, d)), np.zeros((d, n))
    size = max(1, CELLS_PER_BLOCK // (n * d))
    for first in range(0, n, size):
        block = slice(first, min(first + size, n))
        gram = values[:, block, None] - values[:, None, first:]
        np.square(gram, out=gram)
        gram *= (-1.0 / scale)[:, None, None]
        np.exp(gram, out=gram)
        width = block.stop - first
        sums[:, block] += gram @ share[first:]
        sums[:, block.stop :] += share[block] @ gram[:, :, width:]
        gram *= root[block, None]
        gram *= root[first:]
        gram[:, :, width:] *= np.sqrt(2.0)
        product += dsyrk(1.0, gram.reshape(d, -1).T, trans=1)
    product = np.triu(product) + np.triu(product, 1).T
    mean = sums @ share
    return product - 2 * (sums * share) @ sums.T + np.outer(mean, mean), mean


def low_rank_hsic(
    columns: Array, share: Array, scale: Array, landmarks: int, tolerance: float
) -> tuple[Array, Array]:
    """The same from low-rank factors of the Gram matrices plus the diagonal of the approximation error.

    Rows far from all others contribute to the diagonal only, so heavy tails cost no accuracy.
    """
    factors = [
        gram_factor(column, share, float(width), landmarks, tolerance)
        for column, width in zip(columns.T, scale, strict=True)
    ]
    mean = np.array([float(((share @ factor) ** 2).sum()) for factor in factors])
    centered = [(factor - share @ factor) * np.sqrt(share)[:, None] for factor in factors]
    starts = np.concatenate([[0], np.cumsum([factor.shape[1] for factor in centered])])
    side_by_side = np.concatenate(centered, axis=1)
    statistic = np.empty((len(centered), len(centered)))
    for j, factor in enumerate(centered):
        squares = ((factor.T @ side_by_side[:, starts[j] :]) ** 2).sum(axis=0)
        statistic[j, j:] = np.add.reduceat(squares, starts[j:-1] - starts[j])
    residual = np.stack([1.0 - (factor**2).sum(axis=1) for factor in factors])
    captured = np.stack([((factor - share @ factor) ** 2).sum(axis=1) for factor in factors])
    diagonal = (residual * share**2) @ (captured + 0.5 * residual).T
    return np.triu(statistic) + np.triu(statistic, 1).T + diagonal + diagonal.T, mean + residual @ share**2


def _gamma_p_values(statistic: Array, mean: Array, n: float) -> Array:
    """p-values by the gamma approximation of Gretton et al. (2008), with the mean and variance under independence."""
    if n < 6:
        return np.ones_like(statistic)
    off_diagonal = (mean * n - 1.0) / (n - 1.0)  # mean of the Gram matrix without its diagonal
    expected = (1.0 + np.outer(off_diagonal, off_diagonal) - off_diagonal[:, None] - off_diagonal) / n
    self_hsic = np.diag(statistic)
    variance = 2 * (n - 4) * (n - 5) / (n * (n - 1) * (n - 2) * (n - 3)) * np.outer(self_hsic, self_hsic)
    valid = (expected > 0) & (variance > 0)
    expected, variance = np.where(valid, expected, 1.0), np.where(valid, variance, 1.0)
    p_value = stats.gamma.sf(statistic, expected**2 / variance, scale=variance / expected)
    return np.where(valid, p_value, 1.0)

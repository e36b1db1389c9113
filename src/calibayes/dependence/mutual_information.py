"""Mutual information of all pairs of columns, after quantile binning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import stats

from calibayes.core.protocols import Array
from calibayes.dependence.measure import PairStatistics
from calibayes.kernels.numbers.quantiles import mid_ranks


@dataclass(frozen=True)
class MutualInformation:
    """Mutual information in nats, of columns in bins of about equal weight. p-values by the G-test (chi-squared).

    Parameters
    ----------
    bins : int, optional
        Number of bins; by default the cube root of the number of rows, between 2 and 16. Equal values share a bin.

    Examples
    --------
    >>> from calibayes import measure_dependence
    >>> from sklearn.datasets import load_iris
    >>> measure_dependence(*load_iris(return_X_y=True), measure=MutualInformation()).statistics.shape
    (3, 4, 4)
    """

    bins: int | None = None

    name: ClassVar[str] = "mutual information"

    def measure(self, columns: Array, weights: Array) -> PairStatistics:
        n = float(weights.sum())
        bins = int(np.clip(round(n ** (1 / 3)), 2, 16)) if self.bins is None else self.bins
        codes = np.clip(((mid_ranks(columns, weights) - 0.5) / n * bins).astype(np.int64), 0, bins - 1)
        d = columns.shape[1]
        flags = (codes[:, :, None] == np.arange(bins)).reshape(len(codes), d * bins).astype(np.float64)
        joint = ((flags * weights[:, None]).T @ flags / n).reshape(d, bins, d, bins).transpose(0, 2, 1, 3)
        share = weights @ flags / n
        information = _information(joint, share.reshape(d, bins))
        degrees = (share.reshape(d, bins) > 0).sum(axis=1) - 1.0
        freedom = np.outer(degrees, degrees)
        p_value = stats.chi2.sf(2 * n * information, np.maximum(freedom, 1.0))
        return PairStatistics(information, np.where(freedom > 0, p_value, 1.0))


def _information(joint: Array, share: Array) -> Array:
    """Sum of p log(p / (p_i p_j)) over all pairs of bins, (d, d)."""
    independent = share[:, None, :, None] * share[None, :, None, :]
    ratio = np.divide(joint, independent, out=np.ones_like(joint), where=joint > 0)
    return np.maximum((joint * np.log(ratio)).sum(axis=(2, 3)), 0.0)

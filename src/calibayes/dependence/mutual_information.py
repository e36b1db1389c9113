"""Mutual information of all pairs of columns, in bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import stats

from calibayes.core.protocols import Array
from calibayes.dependence.measure import Measured
from calibayes.kernels.numbers.quantiles import mid_ranks


@dataclass(frozen=True)
class MutualInformation:
    """In nats, between columns cut into bins of about as many rows each.

    Parameters
    ----------
    bins : int, optional
        By default the cube root of the number of rows, between 2 and 16. Equal values share a bin.
    """

    bins: int | None = None

    name: ClassVar[str] = "mutual information"

    def measure(self, columns: Array, weights: Array) -> Measured:
        n = float(weights.sum())
        bins = int(np.clip(round(n ** (1 / 3)), 2, 16)) if self.bins is None else self.bins
        codes = np.clip(((mid_ranks(columns, weights) - 0.5) / n * bins).astype(np.int64), 0, bins - 1)
        d = columns.shape[1]
        flags = (codes[:, :, None] == np.arange(bins)).reshape(len(codes), d * bins).astype(np.float64)
        joint = ((flags * weights[:, None]).T @ flags / n).reshape(d, bins, d, bins).transpose(0, 2, 1, 3)
        share = weights @ flags / n
        found = _information(joint, share.reshape(d, bins))
        used = (share.reshape(d, bins) > 0).sum(axis=1) - 1.0
        freedom = np.outer(used, used)
        p_value = stats.chi2.sf(2 * n * found, np.maximum(freedom, 1.0))
        return Measured(found, np.where(freedom > 0, p_value, 1.0))


def _information(joint: Array, share: Array) -> Array:
    """Sum of p log(p / (p_i p_j)) over the cells, (d, d)."""
    apart = share[:, None, :, None] * share[None, :, None, :]
    ratio = np.divide(joint, apart, out=np.ones_like(joint), where=joint > 0)
    return np.maximum((joint * np.log(ratio)).sum(axis=(2, 3)), 0.0)

"""Conjugate priors of the papers, in terms of equivalent sample sizes (rc-generative-2025, appendix C)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array


@dataclass(frozen=True)
class Dirichlet:
    """Prior of the probabilities of r levels that counts as ``size`` rows, spread evenly over the levels.

    Parameters
    ----------
    size : float, optional
        Equivalent sample size m0; by default the number of levels, one row a level.
    """

    size: float | None = None

    def __post_init__(self) -> None:
        if self.size is not None and not 0 <= self.size < math.inf:
            raise ValueError(
                f"Dirichlet(size={self.size}): the equivalent sample size must be finite and not negative"
            )

    def pseudo_count(self, levels: int) -> float:
        """Rows added to each of the levels."""
        return 1.0 if self.size is None else self.size / levels


@dataclass(frozen=True)
class NormalInverseWishart:
    """Prior of a mean and a covariance that counts as ``m1`` rows for the mean and ``m2`` for the covariance.

    As in the papers the term in (sample mean - prior mean) is left out of the covariance.

    Parameters
    ----------
    m1, m2 : float
        Equivalent sample sizes.
    mean : (d,) array, optional
        Prior mean; by default the mean of the training columns.
    covariance : (d,) or (d, d) array, optional
        Prior variances or covariance; by default the variances of the training columns.
    """

    m1: float = 10.0
    m2: float = 10.0
    mean: Array | None = None
    covariance: Array | None = None

    def __post_init__(self) -> None:
        if not (0 <= self.m1 < math.inf and 0 <= self.m2 < math.inf):
            raise ValueError(
                f"NormalInverseWishart(m1={self.m1}, m2={self.m2}): sizes must be finite and not negative"
            )
        for name, given in (("mean", self.mean), ("covariance", self.covariance)):
            if given is not None and not np.isfinite(np.asarray(given, dtype=np.float64)).all():
                raise ValueError(f"NormalInverseWishart: the {name} must be finite")


@dataclass(frozen=True)
class Gamma:
    """Prior of the rate of a Poisson that counts as ``shape`` events in ``rate`` rows.

    The rate that is learned, (events + shape) / (rows + rate), is the posterior mean of the rate, and the posterior
    mode of its logarithm.

    Parameters
    ----------
    shape : float
        Pseudo-count of events.
    rate : float, optional
        Pseudo-count of rows; by default as many as bring that many events in the training column.
    """

    shape: float = 1.0
    rate: float | None = None

    def __post_init__(self) -> None:
        if not (0 <= self.shape < math.inf and (self.rate is None or 0 <= self.rate < math.inf)):
            raise ValueError(
                f"Gamma(shape={self.shape}, rate={self.rate}): both must be finite and not negative"
            )

    def rows(self, mean: Array) -> Array:
        """Pseudo-counts of rows for columns with these means, (d,)."""
        return self.shape / mean if self.rate is None else np.full(len(mean), self.rate)

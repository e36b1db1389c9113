"""Conjugate priors, parameterized by equivalent sample sizes (rc-generative-2025, appendix C)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array, Layout
from calibayes.core.verify import require, require_finite
from calibayes.families.covariance_shapes import Full


@dataclass(frozen=True)
class Dirichlet:
    """Prior of the probabilities of r levels, equivalent to ``size`` rows spread evenly over the levels.

    Parameters
    ----------
    size : float, optional
        Equivalent sample size m0; by default the number of levels, one row per level.

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> X, y = [["red"], ["red"], ["blue"], ["green"]], [0, 0, 1, 1]
    >>> NaiveBayes(prior=Dirichlet(size=2.0), rule="map").fit(X, y).predict([["green"]])
    array([1])
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
    """Prior of a mean and a covariance, equivalent to ``m1`` rows for the mean and ``m2`` for the covariance.

    As in the papers, the covariance omits the term in (sample mean - prior mean).

    Parameters
    ----------
    m1, m2 : float
        Equivalent sample sizes.
    mean : (d,) array, optional
        Prior mean; by default the mean of the training columns.
    covariance : (d,) or (d, d) array, optional
        Prior variances or covariance; by default the variances of the training columns.

    Examples
    --------
    >>> from calibayes import QuadraticDiscriminantAnalysis
    >>> X, y = [[0.0, 1.0], [1.0, 2.0], [4.0, 0.0], [5.0, 2.0]], [0, 0, 1, 1]
    >>> QuadraticDiscriminantAnalysis(prior=NormalInverseWishart(m1=1.0, m2=5.0), rule="map").fit(X, y).predict(X)
    array([0, 0, 1, 1])
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
class WithinClasses:
    """Inverse Wishart prior of each class covariance, centered on the pooled within-class covariance of the data.

    The covariance of a class of n rows becomes ``(n W + m V) / (n + m)``, where W is its sample covariance, m the
    number of pseudo-rows, and V a blend of the pooled within-class covariance and its diagonal. Means have no prior.

    Parameters
    ----------
    rows, rows_per_column : float
        m is ``rows + rows_per_column * d`` for d columns.
    diagonal : float
        Weight of the diagonal in V, from 0 to 1: how far correlations shrink towards 0.
    ridge : float
        Share of each column's variance that is added to V, so that V is positive definite for any data.
    floor : float
        Smallest variance in V as a share of the column's variance. It keeps a column that hardly varied within the
        classes, such as an indicator of a level that occurred once, from having a variance near 0.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> from calibayes.families import Full, Gaussian
    >>> X, y = [[0.0, 1.0], [1.0, 2.0], [4.0, 0.0], [5.0, 2.0]], [0, 0, 1, 1]
    >>> family = Gaussian(Full(), prior=WithinClasses(rows=10.0))
    >>> GenerativeClassifier(families=[("numbers", family, every)], rule="map").fit(X, y).predict(X)
    array([0, 0, 1, 1])
    """

    rows: float = 50.0
    rows_per_column: float = 0.0
    diagonal: float = 0.1
    ridge: float = 1e-6
    floor: float = 0.0

    def __post_init__(self) -> None:
        sizes = (self.rows, self.rows_per_column, self.ridge, self.floor)
        if not all(0 <= size < math.inf for size in sizes) or not 0 <= self.diagonal <= 1:
            raise ValueError(
                f"{self}: diagonal must lie between 0 and 1, all others must be finite and not negative"
            )

    def conjugate_to(self, within: Array, variances: Array) -> NormalInverseWishart:
        """The prior for a pooled within-class covariance (d,) or (d, d) and the variances of the columns (d,)."""
        within_variances = within if within.ndim == 1 else np.diag(within)
        scale = np.where(variances > 0, variances, variances[variances > 0].min(initial=1.0))
        to_floor = np.maximum(self.floor * scale - within_variances, 0.0)
        on_diagonal = self.diagonal * within_variances + self.ridge * scale + to_floor
        blend = (1.0 - self.diagonal) * within + (on_diagonal if within.ndim == 1 else np.diag(on_diagonal))
        symmetric = blend if blend.ndim == 1 else (blend + blend.T) / 2
        size = self.rows + self.rows_per_column * len(variances)
        return NormalInverseWishart(m1=0.0, m2=size, covariance=symmetric)


@dataclass(frozen=True)
class Gamma:
    """Prior of a Poisson rate, equivalent to ``shape`` events in ``rate`` rows.

    The estimate, (events + shape) / (rows + rate), is the posterior mean of the rate and the posterior mode of its
    logarithm.

    Parameters
    ----------
    shape : float
        Pseudo-count of events.
    rate : float, optional
        Pseudo-count of rows; by default ``shape`` divided by the mean of the training column, so that the prior mean is
        the column's mean.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> from calibayes.families import Poisson
    >>> X, y = [[0, 4], [0, 3], [5, 1], [6, 1]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("events", Poisson(Gamma(1.0, 1.0)), every)]).fit(X, y).predict([[5, 0]])
    array([1])
    """

    shape: float = 1.0
    rate: float | None = None

    def __post_init__(self) -> None:
        if not (0 <= self.shape < math.inf and (self.rate is None or 0 <= self.rate < math.inf)):
            raise ValueError(
                f"Gamma(shape={self.shape}, rate={self.rate}): both must be finite and not negative"
            )

    def pseudo_rows(self, mean: Array) -> Array:
        """Pseudo-counts of rows for columns with these means, (..., d)."""
        return self.shape / mean if self.rate is None else np.full(mean.shape, self.rate)


@dataclass(frozen=True)
class ResolvedPrior:
    """A normal inverse Wishart prior with all its parameters, in the form of a covariance shape."""

    m1: Array
    """Equivalent sample size of the mean, (k,)."""
    m2: Array
    """Equivalent sample size of the covariance, (g,)."""
    mean: Array
    """Prior mean minus the center, (d,)."""
    covariance: Array
    """Prior covariance in the shape's form, (...)."""

    def verify_size(self, k: int, d: int, covariance_shape: tuple[int, ...]) -> None:
        """Raises ValueError if it is not for k classes, d columns and covariances of this shape, (g, ...)."""
        groups, *form = covariance_shape
        require_finite("m1", self.m1, (k,), least=0.0)
        require_finite("m2", self.m2, (groups,), least=0.0)
        require_finite("prior mean", self.mean, (d,))
        covariance = require_finite("prior covariance", self.covariance, form)
        variances = covariance if covariance.ndim == 1 else np.diagonal(covariance)
        require(bool((variances >= 0).all()), "the prior covariance contains negative variances")


def resolve_prior(
    prior: NormalInverseWishart, shape: Full, layout: Layout, mean: Array, variances: Array
) -> ResolvedPrior:
    """The prior with defaults from the training columns: their mean minus the center (d,), their variances (d,).

    Raises ValueError if the prior's mean or covariance has the wrong shape.
    """
    k = len(layout.classes)
    return ResolvedPrior(
        m1=np.full(k, prior.m1),
        m2=np.full(1 if shape.tied else k, prior.m2),
        mean=mean if prior.mean is None else _prior_mean(prior.mean, layout),
        covariance=_prior_covariance(prior.covariance, shape, variances),
    )


def _prior_mean(given: Array, layout: Layout) -> Array:
    given, d = np.asarray(given, dtype=np.float64), len(layout.columns)
    if given.shape != (d,):
        raise ValueError(f"the prior mean has shape {given.shape}, expected {(d,)}")
    return given - layout.center


def _prior_covariance(given: Array | None, shape: Full, variances: Array) -> Array:
    d = len(variances)
    if given is None:
        # The scale of a constant column is unknown; the smallest variance of the others keeps the prior valid.
        smallest = variances[variances > 0].min(initial=1.0)
        given = np.where(variances > 0, variances, smallest)
    given = np.asarray(given, dtype=np.float64)
    if given.shape not in ((d,), (d, d)) or not np.array_equal(given, given.T):
        raise ValueError(
            f"the prior covariance must have shape {(d,)} or {(d, d)} and be symmetric, "
            f"got an array of shape {given.shape}"
        )
    diagonal = shape.diagonal(given if given.ndim == 1 else np.diag(given))
    covariance = given if given.shape == diagonal.shape else diagonal
    return np.asarray(shape.constrain(covariance[None], np.ones((1, 1)))[0])

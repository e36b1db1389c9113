"""Priors of a Gaussian's mean and covariance that are completed from the training columns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array, Layout
from calibayes.families.gaussian.shapes import Shape
from calibayes.families.priors import NormalInverseWishart


@dataclass(frozen=True)
class ResolvedPrior:
    """Equivalent sizes m1 (k,) and m2 (g,), mean (d,) about the center, covariance in the shape's form."""

    m1: Array
    m2: Array
    mean: Array
    covariance: Array


def resolved(
    prior: NormalInverseWishart, shape: Shape, layout: Layout, mean: Array, variances: Array
) -> ResolvedPrior:
    """The prior for columns with this mean about the center and these variances, which fill in what it leaves open."""
    k = len(layout.classes)
    return ResolvedPrior(
        m1=np.full(k, prior.m1),
        m2=np.full(1 if shape.tied else k, prior.m2),
        mean=mean if prior.mean is None else _mean(prior.mean, layout),
        covariance=_covariance(prior.covariance, shape, variances),
    )


def _mean(given: Array, layout: Layout) -> Array:
    given, d = np.asarray(given, dtype=np.float64), len(layout.columns)
    if given.shape != (d,):
        raise ValueError(f"the prior mean has shape {given.shape}, expected {(d,)}")
    return given - layout.center


def _covariance(given: Array | None, shape: Shape, variances: Array) -> Array:
    d = len(variances)
    if given is None:
        # A column that never varies still needs some width; its own scale is unknown.
        width = variances[variances > 0].min(initial=1.0)
        given = np.where(variances > 0, variances, width)
    given = np.asarray(given, dtype=np.float64)
    if given.shape not in ((d,), (d, d)) or not np.array_equal(given, given.T):
        raise ValueError(f"the prior covariance must have shape {(d,)} or {(d, d)} and be symmetric")
    plain = shape.diagonal(given if given.ndim == 1 else np.diag(given))
    form = given if given.shape == plain.shape else plain
    return np.asarray(shape.settle(form[None], np.ones((1, 1)))[0])


@dataclass(frozen=True)
class WithinClasses:
    """Rows added to each covariance that lie about their mean as the rows of all classes did at the start.

    The covariance of a class of n rows becomes ``(n W + m V) / (n + m)``, where W is its own, m the number of rows
    added, and V a blend of the scatter within all classes and its diagonal. Means have no prior.

    Parameters
    ----------
    rows, rows_per_column : float
        m is ``rows + rows_per_column * d`` for d columns.
    diagonal : float
        Share of the diagonal in V, from 0 to 1: how much of the correlations is taken back.
    ridge : float
        Share of each column's variance that is added to V, so that it is a covariance whatever the rows are.
    floor : float
        Least share of each column's variance in V: a column that hardly varied within the classes, such as an indicator
        of a level that a single row had, is not taken for one that never will.
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
                f"{self}: sizes must be finite and not negative, and a share lies between 0 and 1"
            )

    def conjugate_to(self, within: Array, variances: Array) -> NormalInverseWishart:
        """The prior for columns that scatter so within classes, (d,) or (d, d), and have these variances, (d,)."""
        own = within if within.ndim == 1 else np.diag(within)
        width = np.where(variances > 0, variances, variances[variances > 0].min(initial=1.0))
        lacking = np.maximum(self.floor * width - own, 0.0)
        straight = self.diagonal * own + self.ridge * width + lacking
        blend = (1.0 - self.diagonal) * within + (straight if within.ndim == 1 else np.diag(straight))
        symmetric = blend if blend.ndim == 1 else (blend + blend.T) / 2
        size = self.rows + self.rows_per_column * len(variances)
        return NormalInverseWishart(m1=0.0, m2=size, covariance=symmetric)

"""A normal-inverse-Wishart prior with everything filled in from the training columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array, Layout
from calibayes.families.priors import NormalInverseWishart
from calibayes.families.shapes import Shape


@dataclass(frozen=True)
class ResolvedPrior:
    """Equivalent sizes m1 (k,) and m2 (g,), mean (d,) about the centre, covariance in the shape's form."""

    m1: Array
    m2: Array
    mean: Array
    covariance: Array


def resolved(
    prior: NormalInverseWishart, shape: Shape, layout: Layout, mean: Array, variances: Array
) -> ResolvedPrior:
    """The prior for columns with this mean about the centre and these variances, which fill in what it leaves open."""
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
    return given - layout.centre


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

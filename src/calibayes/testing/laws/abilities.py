"""Abilities that rules use: gradient steps, conjugate priors and the fused pass."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
from numpy.testing import assert_allclose

from calibayes.core.abilities import (
    Conjugate,
    CountStatistics,
    FusedPass,
    NaturalParameters,
    PassInputs,
    Penalized,
)
from calibayes.core.named_arrays import map_leaves, scale
from calibayes.core.protocols import Array
from calibayes.kernels.posterior.logspace import assess
from calibayes.testing.laws.assertions import assert_finite
from calibayes.testing.laws.case import FamilyCase
from calibayes.testing.laws.fitting import prepare
from calibayes.testing.laws.law import has, law


@law(has(NaturalParameters))
def gradient_step_raises_conditional_likelihood(case: FamilyCase) -> None:
    """A small step along statistics(X, Y - P), from parameters that a step of length 0 has projected.

    Families of counts start from equal counts. The projection onto the simplex turns a step g on log p into
    g - mean(p g) / p. The gain is then sum(g^2) - mean(p g) sum(g / p), which is sure to be positive only if all p are
    equal: the papers do not guarantee an ascent after the projection either (rc-generative-2025, appendix B).
    """
    family, labels, columns = case.prepared(), case.labels(), case.columns
    assert isinstance(family, NaturalParameters)
    start = case.start()
    if isinstance(family, CountStatistics):
        start = map_leaves(np.ones_like, start)
    parameters = family.gradient_step(family.parameters(start), scale(0.0, start), 0.0).parameters
    before, posterior = _conditional_likelihood(family.log_density(columns, parameters), labels)
    direction = family.statistics(columns, labels - posterior)
    step = family.gradient_step(parameters, direction, 1e-6)
    log_density = family.log_density(columns, step.parameters)
    log_density = log_density if step.offset is None else log_density + step.offset
    assert _conditional_likelihood(log_density, labels)[0] > before


def _conditional_likelihood(log_joint: Array, labels: Array) -> tuple[float, Array]:
    """Conditional log likelihood of the labels, and the posterior (n, k)."""
    log_posterior = log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True)
    return float(np.sum(labels * log_posterior)), np.exp(log_posterior)


@law(has(Conjugate))
def default_prior_has_finite_parameters_and_density(case: FamilyCase) -> None:
    assert isinstance(case.family, Conjugate)
    family = prepare(case.family.conjugate(), case.columns, case.labels())
    parameters = family.parameters(family.statistics(case.columns, case.labels()))
    assert_finite(parameters)
    assert isinstance(family, Penalized)
    assert np.isfinite(family.log_prior(parameters))


@law(has(FusedPass))
def fused_pass_equals_separate_steps(case: FamilyCase) -> None:
    """Density, posterior, scores and statistics, with held-out rows, unlabeled rows and missing values."""
    family = case.prepared()
    assert isinstance(family, FusedPass)
    parameters, n = family.parameters(case.start()), len(case.columns)
    labels, held_out = np.arange(n) % (case.k + 1) - 1, np.arange(n) % 5 == 0
    log_prior = np.log(np.arange(1.0, case.k + 1) / np.arange(1.0, case.k + 1).sum())
    for columns, generative in product(case.tables(), (0.0, 0.4)):
        inputs = PassInputs(log_prior, labels, 1.5 * ~held_out, 1.0 * held_out, generative, 2.0**-40)
        fused = family.fused_pass(columns, parameters, inputs)
        assessment = assess(log_prior + family.log_density(columns, parameters), *inputs[1:])
        assert_allclose(np.hstack(fused.assessment[:3]), np.hstack(assessment[:3]), atol=1e-9)
        weights = np.asarray(assessment.weights)
        assert_allclose(fused.classes, weights.sum(axis=0), atol=1e-9)
        statistics = family.statistics(columns, weights, parameters)
        map_leaves(partial(assert_allclose, atol=1e-9), fused.statistics, statistics)

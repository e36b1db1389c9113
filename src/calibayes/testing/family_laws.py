"""Statistics are sums over rows, linear in the class weights."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from calibayes.core import abilities
from calibayes.core.named_arrays import add, map_leaves, scale, subtract
from calibayes.core.protocols import Array, Arrays, Family
from calibayes.kernels.posterior import assess
from calibayes.testing.law import (
    FamilyCase,
    assert_arrays_close,
    assert_constant_over_classes,
    assert_finite,
    fit,
    has,
    has_support,
    is_scale_free,
    law,
    maximizes_likelihood,
    nothing_is_hidden,
    prepare,
)


def _fitted(case: FamilyCase) -> tuple[Any, Arrays]:
    """The prepared family, with the abilities that the conditions of a law ask for, and its fitted parameters."""
    family = case.prepared()
    return family, family.parameters(case.start())


@law()
def statistics_are_linear_in_weights(case: FamilyCase) -> None:
    (family, fitted), columns, left, right = _fitted(case), case.columns, case.weights(1), case.weights(2)
    for parameters in (None, fitted):
        combined, of_left, of_right = (
            family.statistics(columns, weights, parameters)
            for weights in (2.0 * left - 0.5 * right, left, right)
        )
        assert_arrays_close(combined, add(scale(2.0, of_left), scale(-0.5, of_right)))


@law()
def statistics_are_additive_over_rows(case: FamilyCase) -> None:
    (family, fitted), columns, weights = _fitted(case), case.columns, case.weights()
    cuts = [0, 1, len(columns) // 3, len(columns)]
    for parameters in (None, fitted):
        total = family.statistics(columns, weights, parameters)
        parts = [family.statistics(columns[a:b], weights[a:b], parameters) for a, b in pairwise(cuts)]
        assert_arrays_close(total, add(*parts))
        assert_arrays_close(subtract(total, parts[0]), add(*parts[1:]))


@law()
def statistics_do_not_depend_on_row_order(case: FamilyCase) -> None:
    family, columns, weights = case.prepared(), case.columns, case.weights()
    order = case.generator(3).permutation(len(columns))
    assert_arrays_close(
        family.statistics(columns, weights), family.statistics(columns[order], weights[order])
    )


@law(has(abilities.Structured))
def structure_statistics_contain_the_statistics(case: FamilyCase) -> None:
    family: Any = case.prepared()
    for weights in (case.labels(), case.weights()):
        assert_arrays_close(
            family.statistics_of(family.structure_statistics(case.columns, weights)),
            family.statistics(case.columns, weights),
        )


@law(has(abilities.CountStatistics))
def counts_sum_to_weights(case: FamilyCase) -> None:
    """Each row adds its weight times the counts per row."""
    assert isinstance(case.family, abilities.CountStatistics)
    cells = case.family.cells(case.prepared().statistics(case.columns, case.weights()))
    n, d = case.columns.shape
    counts_per_row = np.full(n, d) if case.counts_per_row is None else case.counts_per_row
    assert_allclose(cells.sum(axis=1), case.weights().T @ counts_per_row, atol=1e-9)


@law(has(abilities.SumsByColumn))
def statistics_follow_from_single_columns(case: FamilyCase) -> None:
    """Each column may have other rows in another order; here they are reversed, and one is divided into two."""
    family, weights = case.prepared(), case.weights()
    assert isinstance(family, abilities.SumsByColumn)
    halves = [(np.append(column, column[:1]), np.vstack([weights, weights[:1]])) for column in case.columns.T]
    for _, of_rows in halves:
        of_rows[[0, -1]] /= 2.0
    by_column = family.statistics_by_column([(entries[::-1], of_rows[::-1]) for entries, of_rows in halves])
    assert_arrays_close(by_column, family.statistics(case.columns, weights))


@law(has(abilities.Movable))
def moments_can_be_recentered(case: FamilyCase) -> None:
    """Moving moments to another center gives the moments summed about that center."""
    assert isinstance(case.family, abilities.Movable)
    center = np.full(case.columns.shape[1], 1.25)
    moved: Any = case.family.move(case.start(), center)
    rebound = case.family.bind(replace(case.layout, center=center))
    assert_arrays_close(moved, rebound.statistics(case.columns, case.labels()))


@law(lambda case: not isinstance(case.family, abilities.Movable | abilities.Structured))
def sums_that_cannot_be_moved_do_not_depend_on_the_center(case: FamilyCase) -> None:
    """Models of other rows have another ``layout.center``: `merge` would add sums about two points."""
    rebound = case.family.bind(replace(case.layout, center=np.full(case.columns.shape[1], 1.25)))
    about_another = rebound.statistics(case.columns, case.labels())
    assert_arrays_close(about_another, case.family.statistics(case.columns, case.labels()))


# -- The closed-form learner: invariances, and parameters of maximum likelihood ------------------------------


@law()
def family_equals_its_copy(case: FamilyCase) -> None:
    """Families compare by constructor arguments; layout and prepared values are not compared."""
    assert copy.deepcopy(case.prepared()) == case.family


@law()
def relabeling_classes_permutes_densities(case: FamilyCase) -> None:
    """Seeds of the components, which belong to a class, are permuted with the classes."""
    labels, order = case.labels(), np.roll(np.arange(case.k), 1)
    original, relabeled = _fitted_log_density(case.family, case.columns, labels), case.family
    if case.layout.seeds:
        relabeled = relabeled.bind(replace(case.layout, seeds=tuple(case.layout.seeds[c] for c in order)))
    permuted = _fitted_log_density(relabeled, case.columns, labels[:, order])
    assert_allclose(permuted, original[:, order], rtol=1e-9, atol=1e-9)


@law(is_scale_free)
def parameters_do_not_depend_on_number_of_rows(case: FamilyCase) -> None:
    """parameters(c * S) = parameters(S) without a prior."""
    family = case.prepared()
    assert_arrays_close(family.parameters(scale(7.0, case.start())), family.parameters(case.start()))


@law(maximizes_likelihood)
def fitted_parameters_have_highest_likelihood(case: FamilyCase) -> None:
    """Higher than that of parameters fitted to noisy labels."""
    family, labels = case.prepared(), case.labels()
    noisy_labels = 0.9 * labels + 0.1 / case.k
    fitted = fit(family, case.columns, labels)
    other = family.parameters(family.statistics(case.columns, noisy_labels, fitted))
    assert _likelihood(family, case, fitted) > _likelihood(family, case, other)


@law(is_scale_free)
def em_steps_never_lower_likelihood(case: FamilyCase) -> None:
    likelihoods = _likelihoods_of_em(case)
    assert (np.diff(likelihoods) >= -1e-9 * abs(likelihoods[0])).all()


@law(is_scale_free, nothing_is_hidden)
def em_converges_in_one_step_if_nothing_is_hidden(case: FamilyCase) -> None:
    likelihoods = _likelihoods_of_em(case)
    assert_allclose(likelihoods[1:], likelihoods[1], rtol=1e-12)


def _likelihoods_of_em(case: FamilyCase) -> list[float]:
    """Log likelihood before and after each of five steps of expectation maximization, from noisy labels."""
    family, labels = case.prepared(), case.labels()
    noisy_labels = 0.6 * labels + 0.4 / case.k
    parameters = family.parameters(family.statistics(case.columns, noisy_labels))
    likelihoods = [_likelihood(family, case, parameters)]
    for _ in range(5):
        parameters = family.parameters(family.statistics(case.columns, labels, parameters))
        likelihoods.append(_likelihood(family, case, parameters))
    return likelihoods


def _likelihood(family: Family, case: FamilyCase, parameters: Arrays) -> float:
    """Log likelihood of the labeled rows."""
    return float(np.sum(case.labels() * family.log_density(case.columns, parameters)))


def _fitted_log_density(family: Family, columns: Array, labels: Array) -> Array:
    """Log density of the rows after preparing and fitting the family to them, (n, k)."""
    family = prepare(family, columns, labels)
    return family.log_density(columns, fit(family, columns, labels))


# -- The log density: normalized, row by row, and equal to its cheaper forms ---------------------------------


@law()
def log_density_of_a_row_does_not_depend_on_other_rows(case: FamilyCase) -> None:
    (family, parameters), columns = _fitted(case), case.columns
    log_density = family.log_density(columns, parameters)
    assert log_density.shape == (len(columns), case.k)
    assert_allclose(family.log_density(columns[3:5], parameters), log_density[3:5], rtol=1e-12, atol=1e-12)


@law(has_support)
def density_integrates_to_one(case: FamilyCase) -> None:
    points, widths = case.support_widths()
    family, parameters = _fitted(case)
    density = np.exp(family.log_density(points, parameters))
    assert_allclose(widths.prod(axis=1) @ density, 1.0, rtol=1e-3)


@law(has(abilities.Reasons))
def terms_sum_to_log_density(case: FamilyCase) -> None:
    """Up to a constant that all classes share, with and without missing values; each depends on its own column alone."""
    family, parameters = _fitted(case)
    for columns in case.tables():
        terms = family.terms(columns, parameters)
        if terms is not None:
            assert terms.shape == (len(columns), case.k, columns.shape[1])
            assert_constant_over_classes(terms.sum(axis=2) - family.log_density(columns, parameters), 1e-9)
            others_reversed = np.concatenate([columns[:, :1], columns[::-1, 1:]], axis=1)
            expected = np.concatenate([terms[:, :, :1], terms[::-1, :, 1:]], axis=2)
            assert_allclose(np.asarray(family.terms(others_reversed, parameters)), expected, atol=1e-12)


@law(has(abilities.ConditionalTerms))
def conditional_terms_sum_to_the_density_of_leading_columns(case: FamilyCase) -> None:
    """For an order of the columns, with and without missing values."""
    family, parameters = _fitted(case)
    for columns in case.tables():
        order = np.random.default_rng(0).permutation(columns.shape[1])
        sums, leading = np.zeros((len(columns), case.k)), np.full(columns.shape, np.nan)
        terms = family.conditional_terms(columns, parameters, order)
        for j in order:
            sums, leading[:, j] = sums + terms[:, :, j], columns[:, j]
            assert_allclose(sums, family.log_density(leading, parameters), rtol=1e-9, atol=1e-9)


@law(has(abilities.Contrasting))
def contrast_equals_log_density_up_to_a_term_of_the_row(case: FamilyCase) -> None:
    """The difference is the same for all classes, with and without missing values."""
    family, parameters = _fitted(case)
    for columns in case.tables():
        difference = family.contrast(columns, parameters) - family.log_density(columns, parameters)
        assert_constant_over_classes(difference, 1e-9)


# -- `Family.keep_valid`: valid statistics are kept, invalid ones replaced by the current ones ---------------


@law()
def valid_statistics_are_kept(case: FamilyCase) -> None:
    family, start = case.prepared(), case.start()
    valid = family.keep_valid(start, scale(1.5, start))
    assert_arrays_close(valid.statistics, scale(1.5, start))
    assert valid.frozen == 0
    assert not valid.frozen_classes.any()


@law()
def invalid_statistics_are_replaced(case: FamilyCase) -> None:
    family, start = case.prepared(), case.start()
    valid = family.keep_valid(start, scale(-1.0, start))
    assert_arrays_close(family.parameters(valid.statistics), family.parameters(start))
    assert valid.frozen > 0


@law()
def kept_statistics_have_finite_parameters(case: FamilyCase) -> None:
    """After steps of any length in random directions."""
    family, start = case.prepared(), case.start()
    for seed in range(5):
        direction = family.statistics(case.columns, case.weights(seed))
        for step in (0.1, 1.0, 100.0):
            valid = family.keep_valid(start, add(start, scale(step, direction)))
            parameters = family.parameters(valid.statistics)
            assert_finite(parameters)
            assert_finite(family.log_density(case.columns, parameters))


# -- Samples come from the fitted density and keep given values ----------------------------------------------


@law(has(abilities.Sampling))
def samples_follow_the_density(case: FamilyCase) -> None:
    """Parameters fitted to samples give the samples the same mean log density as the parameters they are drawn from.

    A structure is learned anew from the samples, so that the fitted parameters belong to another prepared family.
    """
    family, parameters = _fitted(case)
    classes = np.arange(20_000) % case.k
    samples = family.sample(parameters, classes, case.generator())
    assert samples.shape == (len(classes), case.columns.shape[1])
    labels = np.eye(case.k)[classes]
    other = prepare(family, samples, labels)
    refitted = fit(other, samples, labels, steps=10)
    true, estimated = (
        fitted.log_density(samples, p)[np.arange(len(classes)), classes]
        for fitted, p in ((family, parameters), (other, refitted))
    )
    assert abs(float(np.mean(true - estimated))) < 0.02 + 10.0 / len(case.columns)


@law(has(abilities.Sampling, abilities.AllowsMissing))
def conditional_samples_keep_given_values(case: FamilyCase) -> None:
    family, parameters = _fitted(case)
    given, classes = case.rows_with_missing(), np.arange(len(case.columns)) % case.k
    samples = family.sample(parameters, classes, case.generator(), given)
    is_known = given == case.columns
    assert_allclose(samples[is_known], case.columns[is_known])
    assert np.isfinite(samples).all()


# -- Missing values: marginalized in the density, expected in the statistics, imputed by `Filling` -----------


def _nothing_is_hidden_by_missing_values(case: FamilyCase) -> bool:
    return isinstance(case.family, abilities.AllowsMissing) and not case.family.has_hidden(
        case.rows_with_missing()
    )


@law(has(abilities.AllowsMissing))
def density_of_a_row_of_missing_values_is_one(case: FamilyCase) -> None:
    family, parameters = _fitted(case)
    assert_allclose(family.log_density(case.missing_rows()[:3], parameters), 0.0, atol=1e-12)


@law(has(abilities.AllowsMissing), has_support)
def missing_values_are_marginalized(case: FamilyCase) -> None:
    """The density of the first column alone is the integral of the joint density over the other columns."""
    family, parameters = _fitted(case)
    points, widths = case.support_widths()
    first_column = np.where(np.arange(points.shape[1]) == 0, points, case.missing_rows()[0])
    marginal = np.exp(family.log_density(first_column, parameters))
    joint = np.exp(family.log_density(points, parameters))
    for value in points[:: len(points) // 5, 0]:
        same = points[:, 0] == value
        volumes = widths[same, 1:].prod(axis=1)
        assert_allclose(volumes @ joint[same], marginal[same][0], rtol=1e-3, atol=1e-12)


@law(has(abilities.AllowsMissing))
def statistics_with_missing_values_are_sums(case: FamilyCase) -> None:
    """Additive over rows and linear in the weights, without and with parameters."""
    (family, fitted), columns, weights = _fitted(case), case.rows_with_missing(), case.weights()
    for parameters in (None, fitted):
        total = family.statistics(columns, weights, parameters)
        parts = [
            family.statistics(columns[rows], weights[rows], parameters)
            for rows in (slice(0, 40), slice(40, None))
        ]
        assert_arrays_close(total, add(*parts))
        assert_arrays_close(family.statistics(columns, 3.0 * weights, parameters), scale(3.0, total))


@law(_nothing_is_hidden_by_missing_values)
def statistics_do_not_depend_on_parameters_if_nothing_is_hidden(case: FamilyCase) -> None:
    (family, parameters), columns, weights = _fitted(case), case.rows_with_missing(), case.weights()
    assert_arrays_close(family.statistics(columns, weights), family.statistics(columns, weights, parameters))


@law(has(abilities.Filling))
def imputation_keeps_known_values(case: FamilyCase) -> None:
    imputed, is_known = _imputed(case), case.rows_with_missing() == case.columns
    assert_allclose(imputed[is_known], case.columns[is_known])
    assert np.isfinite(imputed).all()


@law(has(abilities.Filling), lambda case: case.has_codes)
def imputed_codes_are_not_missing(case: FamilyCase) -> None:
    assert (_imputed(case) >= case.columns.min()).all()


def _imputed(case: FamilyCase) -> Array:
    """The rows with missing values imputed under equal posteriors, (n, d)."""
    family, parameters = _fitted(case)
    posterior = np.full((len(case.columns), case.k), 1.0 / case.k)
    return np.asarray(family.fill(case.rows_with_missing(), parameters, posterior))


# -- Abilities that rules use: gradient steps, conjugate priors and the fused pass ---------------------------


@law(has(abilities.NaturalParameters))
def gradient_step_raises_conditional_likelihood(case: FamilyCase) -> None:
    """A small step along statistics(X, Y - P), from parameters that a step of length 0 has projected.

    Families of counts start from equal counts. The projection onto the simplex turns a step g on log p into
    g - mean(p g) / p. The gain is then sum(g^2) - mean(p g) sum(g / p), which is sure to be positive only if all p are
    equal: the papers do not guarantee an ascent after the projection either (rc-generative-2025, appendix B).
    """
    family: Any = case.prepared()
    labels, columns, start = case.labels(), case.columns, case.start()
    if isinstance(family, abilities.CountStatistics):
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


@law(has(abilities.Conjugate))
def default_prior_has_finite_parameters_and_density(case: FamilyCase) -> None:
    bound: Any = case.family
    family: Any = prepare(bound.conjugate(), case.columns, case.labels())
    parameters = family.parameters(family.statistics(case.columns, case.labels()))
    assert_finite(parameters)
    assert np.isfinite(family.log_prior(parameters))


@law(has(abilities.FusedPass))
def fused_pass_equals_separate_steps(case: FamilyCase) -> None:
    """Density, posterior, scores and statistics, with held-out rows, unlabeled rows and missing values."""
    (family, parameters), n = _fitted(case), len(case.columns)
    labels, held_out = np.arange(n) % (case.k + 1) - 1, np.arange(n) % 5 == 0
    log_prior = np.log(np.arange(1.0, case.k + 1) / np.arange(1.0, case.k + 1).sum())
    for columns, generative in product(case.tables(), (0.0, 0.4)):
        inputs = abilities.PassInputs(
            log_prior, labels, 1.5 * ~held_out, 1.0 * held_out, generative, 2.0**-40
        )
        fused = family.fused_pass(columns, parameters, inputs)
        assessment = assess(log_prior + family.log_density(columns, parameters), *inputs[1:])
        assert_allclose(np.hstack(fused.assessment[:3]), np.hstack(assessment[:3]), atol=1e-9)
        weights = np.asarray(assessment.weights)
        assert_allclose(fused.classes, weights.sum(axis=0), atol=1e-9)
        statistics = family.statistics(columns, weights, parameters)
        map_leaves(partial(assert_allclose, atol=1e-9), fused.statistics, statistics)

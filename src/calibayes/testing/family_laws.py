"""One body for each law, whatever the family."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from calibayes.core.abilities import (
    AllowsMissing,
    Conjugate,
    Contrasting,
    CountStatistics,
    Filling,
    FusedPass,
    Movable,
    NaturalParameters,
    PassInputs,
    Penalized,
    Reasons,
    Sampling,
    Structured,
)
from calibayes.core.named_arrays import add, map_leaves, scale, subtract
from calibayes.core.protocols import Array, Arrays, Family, Layout
from calibayes.posterior import assess


@dataclass(frozen=True)
class FamilyCase:
    """A bound family, some rows that it can read, and the number of classes.

    Parameters
    ----------
    family : Family
        Already bound to its columns.
    columns : (n, d) array
    k : int
        Number of classes.
    support : (points, volume), optional
        Points that cover all of the density and the volume that each stands for: one for all, or the width of each
        point along each column, (points, d), in the units of the density.
    scale_free : bool
        Whether the family has no prior, so that its parameters do not depend on the number of rows.
    likeliest : bool
        Whether the parameters are those of the highest likelihood (or posterior). Those of a smoothed density are not.
    counted : (n,) array, optional
        How much each row adds to the counts of a family that counts; by default one for each column.
    """

    family: Family
    columns: Array
    k: int
    support: tuple[Array, float | Array] | None = None
    scale_free: bool = True
    counted: Array | None = None
    likeliest: bool = True

    @property
    def layout(self) -> Layout:
        """What the family was bound to."""
        layout: Layout = getattr(self.family, "layout")  # noqa: B009 - no part of the protocol
        return layout

    def covered(self) -> tuple[Array, Array]:
        """Points of the support, and how wide each is along each column, (points, d)."""
        points, volume = self.support or (self.columns[:0], 1.0)
        d = points.shape[1]
        widths = volume if np.ndim(volume) else np.full(points.shape, float(volume) ** (1.0 / d))
        return points, np.asarray(widths)

    def labels(self) -> Array:
        """Rows dealt out to the classes in turn, (n, k)."""
        return np.eye(self.k)[np.arange(len(self.columns)) % self.k]

    def weights(self, seed: int = 0) -> Array:
        """Class weights of both signs, (n, k)."""
        return np.random.default_rng(seed).normal(size=(len(self.columns), self.k))

    def prepared(self) -> Family:
        return _prepared(self.family, self.columns, self.labels())

    def start(self) -> Arrays:
        return self.prepared().statistics(self.columns, self.labels())

    @property
    def has_hidden(self) -> bool:
        """Whether the statistics of complete rows depend on the parameters."""
        return isinstance(self.family, AllowsMissing) and self.family.has_hidden(self.columns)


def _prepared(family: Family, columns: Array, weights: Array) -> Family:
    """The family, with what stays fixed found in these rows."""
    return family.prepare(
        (family.structure_statistics if isinstance(family, Structured) else family.statistics)(
            columns, weights
        )
    )


def _same(left: Any, right: Any, tolerance: float = 1e-10) -> None:
    map_leaves(lambda a, b: assert_allclose(a, b, rtol=tolerance, atol=tolerance), left, right)


def _given(case: FamilyCase) -> tuple[Arrays | None, ...]:
    """Parameters that statistics may be expected under: none, as at the start, and those that come of the data."""
    return None, case.prepared().parameters(case.start())


def equal_to_a_copy_of_itself(case: FamilyCase) -> None:
    """By what it was made with: what it was bound to and has found is no part of it."""
    assert copy.deepcopy(case.prepared()) == case.family


def linear_in_the_weights(case: FamilyCase) -> None:
    family, columns, (left, right) = case.prepared(), case.columns, (case.weights(1), case.weights(2))
    for given in _given(case):
        together, one, other = (
            family.statistics(columns, weights, given) for weights in (2.0 * left - 0.5 * right, left, right)
        )
        _same(together, add(scale(2.0, one), scale(-0.5, other)))


def additive_over_rows(case: FamilyCase) -> None:
    family, columns, weights = case.prepared(), case.columns, case.weights()
    cuts = [0, 1, len(columns) // 3, len(columns)]
    for given in _given(case):
        whole = family.statistics(columns, weights, given)
        parts = [family.statistics(columns[a:b], weights[a:b], given) for a, b in pairwise(cuts)]
        _same(whole, add(*parts))
        _same(subtract(whole, parts[0]), add(*parts[1:]))


def indifferent_to_the_order_of_rows(case: FamilyCase) -> None:
    family, columns, weights = case.prepared(), case.columns, case.weights()
    order = np.random.default_rng(3).permutation(len(columns))
    _same(family.statistics(columns, weights), family.statistics(columns[order], weights[order]))


def classes_can_be_relabeled(case: FamilyCase) -> None:
    """What the layout says of each class (where its components begin) moves with it."""
    labels, order = case.labels(), np.roll(np.arange(case.k), 1)
    plain, moved = _learned(case.family, case.columns, labels), case.family
    if case.layout.seeds:
        moved = moved.bind(replace(case.layout, seeds=tuple(case.layout.seeds[c] for c in order)))
    again = _learned(moved, case.columns, labels[:, order])
    assert_allclose(again, plain[:, order], rtol=1e-9, atol=1e-9)


def _learned(family: Family, columns: Array, labels: Array) -> Array:
    """Log density of the rows after learning from labels, all of it."""
    family = _prepared(family, columns, labels)
    return family.log_density(columns, _likeliest(family, columns, labels))


def _likeliest(family: Family, columns: Array, labels: Array, steps: int = 100) -> Arrays:
    """Parameters of maximum likelihood: the closed form, or where expectation maximization ends."""
    parameters = family.parameters(family.statistics(columns, labels))
    if isinstance(family, AllowsMissing) and family.has_hidden(columns):
        for _ in range(steps):
            parameters = family.parameters(family.statistics(columns, labels, parameters))
    return parameters


def expected_statistics_raise_the_likelihood(case: FamilyCase) -> None:
    """A step of expectation maximization never lowers it, from anywhere; where nothing is hidden one step is the end."""
    if not case.scale_free:
        return
    family, labels = case.prepared(), case.labels()
    mixed = 0.6 * labels + 0.4 / case.k
    parameters = family.parameters(family.statistics(case.columns, mixed))
    likelihood = [_likelihood(family, case, parameters)]
    for _ in range(5):
        parameters = family.parameters(family.statistics(case.columns, labels, parameters))
        likelihood.append(_likelihood(family, case, parameters))
    assert (np.diff(likelihood) >= -1e-9 * abs(likelihood[0])).all()
    if not case.has_hidden:
        assert_allclose(likelihood[1:], likelihood[1], rtol=1e-12)


def _likelihood(family: Family, case: FamilyCase, parameters: Arrays) -> float:
    return float(np.sum(case.labels() * family.log_density(case.columns, parameters)))


def a_survey_holds_the_statistics(case: FamilyCase) -> None:
    family = case.prepared()
    if isinstance(family, Structured):
        for weights in (case.labels(), case.weights()):
            _same(
                family.statistics_of(family.structure_statistics(case.columns, weights)),
                family.statistics(case.columns, weights),
            )


def rows_are_judged_one_by_one(case: FamilyCase) -> None:
    family, columns = case.prepared(), case.columns
    parameters = family.parameters(case.start())
    whole = family.log_density(columns, parameters)
    assert whole.shape == (len(columns), case.k)
    assert_allclose(family.log_density(columns[3:5], parameters), whole[3:5], rtol=1e-12, atol=1e-12)


def indifferent_to_the_number_of_rows(case: FamilyCase) -> None:
    if case.scale_free:
        family = case.prepared()
        _same(family.parameters(scale(7.0, case.start())), family.parameters(case.start()))


def likelihood_is_highest_at_its_own_parameters(case: FamilyCase) -> None:
    if not (case.scale_free and case.likeliest):
        return
    family, labels = case.prepared(), case.labels()
    mixed = 0.9 * labels + 0.1 / case.k
    own = _likeliest(family, case.columns, labels)
    other = family.parameters(family.statistics(case.columns, mixed, own))
    assert _likelihood(family, case, own) > _likelihood(family, case, other)


def density_sums_to_one(case: FamilyCase) -> None:
    if case.support is not None:
        points, widths = case.covered()
        family = case.prepared()
        density = np.exp(family.log_density(points, family.parameters(case.start())))
        assert_allclose(widths.prod(axis=1) @ density, 1.0, rtol=1e-3)


def valid_statistics_are_admitted(case: FamilyCase) -> None:
    family, start = case.prepared(), case.start()
    admission = family.keep_valid(start, scale(1.5, start))
    _same(admission.statistics, scale(1.5, start))
    assert admission.frozen == 0
    assert not admission.frozen_classes.any()


def admitted_statistics_have_finite_parameters(case: FamilyCase) -> None:
    family, start = case.prepared(), case.start()
    for seed in range(5):
        direction = family.statistics(case.columns, case.weights(seed))
        for step in (0.1, 1.0, 100.0):
            admission = family.keep_valid(start, add(start, scale(step, direction)))
            parameters = family.parameters(admission.statistics)
            map_leaves(lambda leaf: _finite(leaf), parameters)
            _finite(family.log_density(case.columns, parameters))


def _finite(leaf: Array) -> None:
    assert np.isfinite(leaf).all()


def a_refused_step_leaves_everything(case: FamilyCase) -> None:
    family, start = case.prepared(), case.start()
    admission = family.keep_valid(start, scale(-1.0, start))
    _same(family.parameters(admission.statistics), family.parameters(start))
    assert admission.frozen > 0


def samples_have_the_density_they_came_from(case: FamilyCase) -> None:
    family = case.prepared()
    if isinstance(family, Sampling):
        parameters = family.parameters(case.start())
        classes = np.arange(20_000) % case.k
        drawn = family.sample(parameters, classes, np.random.default_rng(0))
        assert drawn.shape == (len(classes), case.columns.shape[1])
        again = _prepared(family, drawn, np.eye(case.k)[classes])
        learned = _likeliest(again, drawn, np.eye(case.k)[classes], steps=10)
        true, found = (
            family.log_density(drawn, p)[np.arange(len(classes)), classes] for p in (parameters, learned)
        )
        assert abs(float(np.mean(true - found))) < 0.02 + 10.0 / len(case.columns)


def counts_add_up_to_the_weights(case: FamilyCase) -> None:
    if isinstance(case.family, CountStatistics):
        cells = case.family.cells(case.prepared().statistics(case.columns, case.weights()))
        counted = np.full(len(case.columns), case.columns.shape[1]) if case.counted is None else case.counted
        assert_allclose(cells.sum(axis=1), case.weights().T @ counted, atol=1e-9)


def a_gradient_step_raises_the_conditional_likelihood(case: FamilyCase) -> None:
    family = case.prepared()
    if not isinstance(family, NaturalParameters):
        return
    labels, columns = case.labels(), case.columns
    parameters = family.gradient_step(
        family.parameters(case.start()), scale(0.0, case.start()), 0.0
    ).parameters
    before, posterior = _conditional(family.log_density(columns, parameters), labels)
    direction = family.statistics(columns, labels - posterior)
    after = family.gradient_step(parameters, direction, 1e-6)
    log_density = family.log_density(columns, after.parameters)
    log_density = log_density if after.offset is None else log_density + after.offset
    assert _conditional(log_density, labels)[0] > before


def _conditional(log_joint: Array, labels: Array) -> tuple[float, Array]:
    log_posterior = log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True)
    return float(np.sum(labels * log_posterior)), np.exp(log_posterior)


def a_default_prior_is_a_prior(case: FamilyCase) -> None:
    if isinstance(case.family, Conjugate):
        family = _prepared(case.family.conjugate(), case.columns, case.labels())
        parameters = family.parameters(family.statistics(case.columns, case.labels()))
        map_leaves(_finite, parameters)
        assert isinstance(family, Penalized)
        assert np.isfinite(family.log_prior(parameters))


def _with_gaps(case: FamilyCase) -> Array:
    """The rows with every seventh cell missing."""
    gaps = np.arange(case.columns.size).reshape(case.columns.shape) % 7 == 3
    return np.where(gaps, -1 if case.columns.dtype.kind in "iu" else np.nan, case.columns)


def missing_cells_are_marginalized(case: FamilyCase) -> None:
    """The density of known cells is the sum of the density over the missing ones."""
    family = case.prepared()
    if not isinstance(family, AllowsMissing):
        return
    parameters = family.parameters(case.start())
    nothing = np.full_like(case.columns, -1 if case.columns.dtype.kind in "iu" else np.nan)
    assert_allclose(family.log_density(nothing[:3], parameters), 0.0, atol=1e-12)
    if case.support is None:
        return
    points, widths = case.covered()
    first = np.where(np.arange(points.shape[1]) == 0, points, nothing[0])
    marginal = np.exp(family.log_density(first, parameters))
    joint = np.exp(family.log_density(points, parameters))
    for value in points[:: len(points) // 5, 0]:
        same = points[:, 0] == value
        others = widths[same, 1:].prod(axis=1)
        assert_allclose(others @ joint[same], marginal[same][0], rtol=1e-3, atol=1e-12)


def statistics_with_missing_cells_are_sums(case: FamilyCase) -> None:
    family = case.prepared()
    if not isinstance(family, AllowsMissing):
        return
    columns, parameters, weights = _with_gaps(case), family.parameters(case.start()), case.weights()
    for given in (None, parameters):
        whole = family.statistics(columns, weights, given)
        parts = [
            family.statistics(columns[rows], weights[rows], given) for rows in (slice(0, 40), slice(40, None))
        ]
        _same(whole, add(*parts))
        _same(family.statistics(columns, 3.0 * weights, given), scale(3.0, whole))
    if not family.has_hidden(columns):
        _same(family.statistics(columns, weights), family.statistics(columns, weights, parameters))


def reasons_sum_to_the_density(case: FamilyCase) -> None:
    """Up to a constant that all classes share, with missing cells and without."""
    family = case.prepared()
    if not isinstance(family, Reasons):
        return
    parameters = family.parameters(case.start())
    tables = [case.columns, _with_gaps(case)] if isinstance(family, AllowsMissing) else [case.columns]
    for columns in tables:
        terms = family.terms(columns, parameters)
        assert terms.shape == (len(columns), case.k, len(family.groups))
        off = terms.sum(axis=2) - family.log_density(columns, parameters)
        assert_allclose(off, np.repeat(off[:, :1], case.k, axis=1), atol=1e-9)


def contrasts_differ_as_densities_do(case: FamilyCase) -> None:
    """From class to class, with missing cells and without."""
    family = case.prepared()
    if isinstance(family, Contrasting):
        parameters = family.parameters(case.start())
        tables = [case.columns, _with_gaps(case)] if isinstance(family, AllowsMissing) else [case.columns]
        for columns in tables:
            off = family.contrast(columns, parameters) - family.log_density(columns, parameters)
            assert_allclose(off, np.repeat(off[:, :1], case.k, axis=1), atol=1e-9)


def a_look_is_what_its_parts_are(case: FamilyCase) -> None:
    """Density, posterior, scores and statistics, with held-out rows, rows without a label and missing cells."""
    family = case.prepared()
    if not isinstance(family, FusedPass):
        return
    parameters, n = family.parameters(case.start()), len(case.columns)
    labels, held = np.arange(n) % (case.k + 1) - 1, np.arange(n) % 5 == 0
    log_prior = np.log(np.arange(1.0, case.k + 1) / np.arange(1.0, case.k + 1).sum())
    for columns in (case.columns, _with_gaps(case)) if isinstance(family, AllowsMissing) else (case.columns,):
        for generative in (0.0, 0.4):
            given = PassInputs(log_prior, labels, 1.5 * ~held, 1.0 * held, generative, 2.0**-40)
            seen = family.fused_pass(columns, parameters, given)
            found = assess(log_prior + family.log_density(columns, parameters), *given[1:])
            assert_allclose(np.hstack(seen.assessment[:3]), np.hstack(found[:3]), atol=1e-9)
            weights = np.asarray(found.weights)
            assert_allclose(seen.classes, weights.sum(axis=0), atol=1e-9)
            parts = family.statistics(columns, weights, parameters)
            map_leaves(partial(assert_allclose, atol=1e-9), seen.statistics, parts)


def filling_keeps_what_is_known(case: FamilyCase) -> None:
    family = case.prepared()
    if isinstance(family, Filling):
        columns, parameters = _with_gaps(case), family.parameters(case.start())
        posterior = np.full((len(columns), case.k), 1.0 / case.k)
        filled = family.fill(columns, parameters, posterior)
        known = columns == case.columns
        assert_allclose(filled[known], case.columns[known])
        assert np.isfinite(filled).all()
        assert (filled >= case.columns.min()).all() or case.columns.dtype.kind == "f"


def given_cells_stay_in_samples(case: FamilyCase) -> None:
    family = case.prepared()
    if isinstance(family, Sampling) and isinstance(family, AllowsMissing):
        given, classes = _with_gaps(case), np.arange(len(case.columns)) % case.k
        drawn = family.sample(family.parameters(case.start()), classes, np.random.default_rng(0), given)
        known = given == case.columns
        assert_allclose(drawn[known], case.columns[known])
        assert np.isfinite(drawn).all()


def moments_can_move(case: FamilyCase) -> None:
    if isinstance(case.family, Movable):
        elsewhere = np.full(case.columns.shape[1], 1.25)
        moved: Any = case.family.move(case.start(), elsewhere)
        there = case.family.bind(replace(case.layout, center=elsewhere))
        _same(moved, there.statistics(case.columns, case.labels()))


FAMILY_LAWS: tuple[Callable[[FamilyCase], None], ...] = (
    equal_to_a_copy_of_itself,
    linear_in_the_weights,
    additive_over_rows,
    indifferent_to_the_order_of_rows,
    classes_can_be_relabeled,
    a_survey_holds_the_statistics,
    rows_are_judged_one_by_one,
    indifferent_to_the_number_of_rows,
    likelihood_is_highest_at_its_own_parameters,
    expected_statistics_raise_the_likelihood,
    density_sums_to_one,
    valid_statistics_are_admitted,
    admitted_statistics_have_finite_parameters,
    a_refused_step_leaves_everything,
    samples_have_the_density_they_came_from,
    counts_add_up_to_the_weights,
    a_gradient_step_raises_the_conditional_likelihood,
    a_default_prior_is_a_prior,
    missing_cells_are_marginalized,
    statistics_with_missing_cells_are_sums,
    reasons_sum_to_the_density,
    contrasts_differ_as_densities_do,
    a_look_is_what_its_parts_are,
    filling_keeps_what_is_known,
    given_cells_stay_in_samples,
    moments_can_move,
)

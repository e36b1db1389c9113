"""The closed-form learner: invariances, and parameters of maximum likelihood."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose

from calibayes.core.named_arrays import scale
from calibayes.core.protocols import Array, Arrays, Family
from calibayes.testing.laws.assertions import assert_arrays_close
from calibayes.testing.laws.case import FamilyCase
from calibayes.testing.laws.fitting import fit, prepare
from calibayes.testing.laws.law import is_scale_free, law, maximizes_likelihood, nothing_is_hidden


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

"""The log density: normalized, row by row, and equal to its cheaper forms."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from calibayes.core.abilities import ConditionalTerms, Contrasting, Reasons
from calibayes.testing.laws.assertions import assert_constant_over_classes
from calibayes.testing.laws.case import FamilyCase
from calibayes.testing.laws.law import has, has_support, law


@law()
def log_density_of_a_row_does_not_depend_on_other_rows(case: FamilyCase) -> None:
    family, columns = case.prepared(), case.columns
    parameters = family.parameters(case.start())
    log_density = family.log_density(columns, parameters)
    assert log_density.shape == (len(columns), case.k)
    assert_allclose(family.log_density(columns[3:5], parameters), log_density[3:5], rtol=1e-12, atol=1e-12)


@law(has_support)
def density_integrates_to_one(case: FamilyCase) -> None:
    points, widths = case.support_widths()
    family = case.prepared()
    density = np.exp(family.log_density(points, family.parameters(case.start())))
    assert_allclose(widths.prod(axis=1) @ density, 1.0, rtol=1e-3)


@law(has(Reasons))
def terms_sum_to_log_density(case: FamilyCase) -> None:
    """Up to a constant that all classes share, with and without missing values; each depends on its own column alone."""
    family = case.prepared()
    assert isinstance(family, Reasons)
    parameters = family.parameters(case.start())
    for columns in case.tables():
        terms = family.terms(columns, parameters)
        if terms is not None:
            assert terms.shape == (len(columns), case.k, columns.shape[1])
            assert_constant_over_classes(terms.sum(axis=2) - family.log_density(columns, parameters), 1e-9)
            others_reversed = np.concatenate([columns[:, :1], columns[::-1, 1:]], axis=1)
            expected = np.concatenate([terms[:, :, :1], terms[::-1, :, 1:]], axis=2)
            assert_allclose(np.asarray(family.terms(others_reversed, parameters)), expected, atol=1e-12)


@law(has(ConditionalTerms))
def conditional_terms_sum_to_the_density_of_leading_columns(case: FamilyCase) -> None:
    """For an order of the columns, with and without missing values."""
    family = case.prepared()
    assert isinstance(family, ConditionalTerms)
    parameters = family.parameters(case.start())
    for columns in case.tables():
        order = np.random.default_rng(0).permutation(columns.shape[1])
        sums, leading = np.zeros((len(columns), case.k)), np.full(columns.shape, np.nan)
        terms = family.conditional_terms(columns, parameters, order)
        for j in order:
            sums, leading[:, j] = sums + terms[:, :, j], columns[:, j]
            assert_allclose(sums, family.log_density(leading, parameters), rtol=1e-9, atol=1e-9)


@law(has(Contrasting))
def contrast_equals_log_density_up_to_a_term_of_the_row(case: FamilyCase) -> None:
    """The difference is the same for all classes, with and without missing values."""
    family = case.prepared()
    assert isinstance(family, Contrasting)
    parameters = family.parameters(case.start())
    for columns in case.tables():
        difference = family.contrast(columns, parameters) - family.log_density(columns, parameters)
        assert_constant_over_classes(difference, 1e-9)

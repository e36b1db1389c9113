"""The laws themselves: each applies to a case, and a family that breaks a law is found."""

from dataclasses import replace

import numpy as np
import pytest

from calibayes.core.named_arrays import map_leaves
from calibayes.core.protocols import ValidStatistics
from calibayes.families import Bernoulli, KernelDensity, OverBins
from calibayes.testing import FAMILY_LAWS, applicable_laws
from tests.cases import FAMILIES, K

LAWS = {law.name: law for law in FAMILY_LAWS}


def test_names_of_laws_are_unique():
    assert len(LAWS) == len(FAMILY_LAWS)


@pytest.mark.parametrize("law", FAMILY_LAWS, ids=str)
def test_every_law_applies_to_a_case(law):
    assert any(law.applies(case) for case in FAMILIES.values())


@pytest.mark.parametrize("name", FAMILIES)
def test_applicable_laws_are_those_whose_conditions_are_met(name):
    laws = applicable_laws(FAMILIES[name])
    assert laws == tuple(law for law in FAMILY_LAWS if law.applies(FAMILIES[name]))
    assert {law.name for law in FAMILY_LAWS if not law.conditions} <= {law.name for law in laws}


def test_check_raises_where_a_law_does_not_apply():
    with pytest.raises(
        ValueError, match="'fused_pass_equals_separate_steps' does not apply to a case of Poi"
    ):
        LAWS["fused_pass_equals_separate_steps"].check(FAMILIES["poisson"])


def absolute_weights(self, columns, weights, parameters=None):
    return Bernoulli.statistics(self, columns, np.abs(weights), parameters)


def weights_by_position(self, columns, weights, parameters=None):
    return Bernoulli.statistics(self, columns, np.arange(len(weights))[:, None] * weights, parameters)


def smoothed_parameters(self, statistics):
    return Bernoulli.parameters(self, map_leaves(lambda leaf: leaf + 1.0, statistics))


def unnormalized(self, columns, parameters):
    return Bernoulli.log_density(self, columns, parameters) + 0.1


def zero_where_missing(self, columns, parameters):
    return Bernoulli.log_density(self, np.nan_to_num(columns), parameters)


def never_proposed(self, current, proposed):
    return ValidStatistics(current, 1, np.ones(K, dtype=bool))


def always_proposed(self, current, proposed):
    return ValidStatistics(proposed, 0, np.zeros(K, dtype=bool))


def doubled_terms(self, columns, parameters):
    return 2.0 * Bernoulli.terms(self, columns, parameters)


def zeros(self, columns, parameters, posterior):
    return np.zeros(columns.shape)


def samples_of_other_classes(self, parameters, classes, rng, given=None):
    return Bernoulli.sample(self, parameters, (classes + 1) % K, rng)


def no_counts(self, statistics):
    return 0.0 * Bernoulli.cells(self, statistics)


def downhill(self, parameters, direction, rate, **options):
    return Bernoulli.gradient_step(self, parameters, direction, -rate, **options)


def first_column_alone(self, columns):
    others = [(entries, 0 * weights) for entries, weights in columns[1:]]
    return KernelDensity.statistics_by_column(self, [columns[0], *others])


def accept(self, arrays=None):
    return None


def refuse(self, arrays=None):
    raise ValueError("refused")


@pytest.mark.parametrize(
    ("law", "method", "replacement"),
    [
        ("statistics_are_linear_in_weights", "statistics", absolute_weights),
        ("statistics_are_additive_over_rows", "statistics", weights_by_position),
        ("statistics_do_not_depend_on_row_order", "statistics", weights_by_position),
        ("statistics_with_missing_values_are_sums", "statistics", weights_by_position),
        ("counts_sum_to_weights", "cells", no_counts),
        ("parameters_do_not_depend_on_number_of_rows", "parameters", smoothed_parameters),
        ("density_integrates_to_one", "log_density", unnormalized),
        ("density_of_a_row_of_missing_values_is_one", "log_density", zero_where_missing),
        ("missing_values_are_marginalized", "log_density", zero_where_missing),
        ("valid_statistics_are_kept", "keep_valid", never_proposed),
        ("invalid_statistics_are_replaced", "keep_valid", always_proposed),
        ("terms_sum_to_log_density", "terms", doubled_terms),
        ("imputation_keeps_known_values", "fill", zeros),
        ("samples_follow_the_density", "sample", samples_of_other_classes),
        ("conditional_samples_keep_given_values", "sample", samples_of_other_classes),
        ("gradient_step_raises_conditional_likelihood", "gradient_step", downhill),
        ("damaged_parameters_are_refused", "verify_parameters", accept),
        ("damaged_statistics_are_refused", "verify_statistics", accept),
    ],
)
@pytest.mark.filterwarnings(
    "ignore::RuntimeWarning"
)  # invalid statistics have logarithms of negative numbers
def test_a_family_that_breaks_a_law_is_found(law, method, replacement):
    case = FAMILIES["bernoulli"]
    broken = type("Broken", (Bernoulli,), {method: replacement})().bind(case.layout)
    LAWS[law].check(case)
    with pytest.raises(AssertionError):
        LAWS[law].check(replace(case, family=broken))


def test_a_family_whose_columns_do_not_add_by_themselves_is_found():
    case, law = FAMILIES["kernel-bins"], LAWS["statistics_follow_from_single_columns"]
    broken = type("Broken", (KernelDensity,), {"statistics_by_column": first_column_alone})(OverBins(), 0.0)
    law.check(case)
    with pytest.raises(AssertionError):
        law.check(replace(case, family=broken.bind(case.layout)))


@pytest.mark.parametrize("method", ["verify", "verify_parameters", "verify_statistics"])
def test_a_family_that_refuses_what_it_has_learned_is_found(method):
    case, law = FAMILIES["bernoulli"], LAWS["trained_values_are_accepted"]
    broken = type("Broken", (Bernoulli,), {method: refuse})().bind(case.layout)
    with pytest.raises(ValueError, match="refused"):
        law.check(replace(case, family=broken))


@pytest.mark.parametrize(
    ("law", "method"),
    [
        ("damaged_prepared_values_are_refused", "verify"),
        ("layouts_larger_than_their_arrays_are_refused", "verify_statistics"),
    ],
)
def test_a_kernel_density_that_accepts_damaged_values_is_found(law, method):
    case = FAMILIES["kernel-bins"]
    broken = type("Broken", (KernelDensity,), {method: accept})(OverBins(), 0.0).bind(case.layout)
    LAWS[law].check(case)
    with pytest.raises(AssertionError):
        LAWS[law].check(replace(case, family=broken))

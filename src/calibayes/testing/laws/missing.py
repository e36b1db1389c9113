"""Missing values: marginalized in the density, expected in the statistics, imputed by `Filling`."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from calibayes.core.abilities import AllowsMissing, Filling
from calibayes.core.named_arrays import add, scale
from calibayes.core.protocols import Array
from calibayes.testing.laws.assertions import assert_arrays_close
from calibayes.testing.laws.case import FamilyCase
from calibayes.testing.laws.law import has, has_support, law


def _nothing_is_hidden_by_missing_values(case: FamilyCase) -> bool:
    return isinstance(case.family, AllowsMissing) and not case.family.has_hidden(case.rows_with_missing())


def _has_codes(case: FamilyCase) -> bool:
    return case.has_codes


@law(has(AllowsMissing))
def density_of_a_row_of_missing_values_is_one(case: FamilyCase) -> None:
    family = case.prepared()
    parameters = family.parameters(case.start())
    assert_allclose(family.log_density(case.missing_rows()[:3], parameters), 0.0, atol=1e-12)


@law(has(AllowsMissing), has_support)
def missing_values_are_marginalized(case: FamilyCase) -> None:
    """The density of the first column alone is the integral of the joint density over the other columns."""
    family = case.prepared()
    parameters = family.parameters(case.start())
    points, widths = case.support_widths()
    first_column = np.where(np.arange(points.shape[1]) == 0, points, case.missing_rows()[0])
    marginal = np.exp(family.log_density(first_column, parameters))
    joint = np.exp(family.log_density(points, parameters))
    for value in points[:: len(points) // 5, 0]:
        same = points[:, 0] == value
        volumes = widths[same, 1:].prod(axis=1)
        assert_allclose(volumes @ joint[same], marginal[same][0], rtol=1e-3, atol=1e-12)


@law(has(AllowsMissing))
def statistics_with_missing_values_are_sums(case: FamilyCase) -> None:
    """Additive over rows and linear in the weights, without and with parameters."""
    family = case.prepared()
    columns, weights = case.rows_with_missing(), case.weights()
    for parameters in (None, family.parameters(case.start())):
        total = family.statistics(columns, weights, parameters)
        parts = [
            family.statistics(columns[rows], weights[rows], parameters)
            for rows in (slice(0, 40), slice(40, None))
        ]
        assert_arrays_close(total, add(*parts))
        assert_arrays_close(family.statistics(columns, 3.0 * weights, parameters), scale(3.0, total))


@law(_nothing_is_hidden_by_missing_values)
def statistics_do_not_depend_on_parameters_if_nothing_is_hidden(case: FamilyCase) -> None:
    family = case.prepared()
    columns, weights = case.rows_with_missing(), case.weights()
    parameters = family.parameters(case.start())
    assert_arrays_close(family.statistics(columns, weights), family.statistics(columns, weights, parameters))


@law(has(Filling))
def imputation_keeps_known_values(case: FamilyCase) -> None:
    imputed, is_known = _imputed(case), case.rows_with_missing() == case.columns
    assert_allclose(imputed[is_known], case.columns[is_known])
    assert np.isfinite(imputed).all()


@law(has(Filling), _has_codes)
def imputed_codes_are_not_missing(case: FamilyCase) -> None:
    assert (_imputed(case) >= case.columns.min()).all()


def _imputed(case: FamilyCase) -> Array:
    """The rows with missing values imputed under equal posteriors, (n, d)."""
    family = case.prepared()
    assert isinstance(family, Filling)
    posterior = np.full((len(case.columns), case.k), 1.0 / case.k)
    return family.fill(case.rows_with_missing(), family.parameters(case.start()), posterior)

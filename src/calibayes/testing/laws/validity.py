"""`Family.keep_valid`: valid statistics are kept, invalid ones replaced by the current ones."""

from __future__ import annotations

from calibayes.core.named_arrays import add, scale
from calibayes.testing.laws.assertions import assert_arrays_close, assert_finite
from calibayes.testing.laws.case import FamilyCase
from calibayes.testing.laws.law import law


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

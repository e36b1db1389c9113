"""All laws for families, one file per group, and the selection of those that apply to a case."""

from __future__ import annotations

from calibayes.testing.laws import (
    abilities,
    density,
    missing,
    parameters,
    sampling,
    sums,
    validity,
    verification,
)
from calibayes.testing.laws.case import FamilyCase
from calibayes.testing.laws.law import Law

__all__ = ["FAMILY_LAWS", "FamilyCase", "Law", "applicable_laws"]

FAMILY_LAWS: tuple[Law, ...] = tuple(
    value
    for group in (sums, parameters, density, validity, missing, sampling, abilities, verification)
    for value in vars(group).values()
    if isinstance(value, Law)
)


def applicable_laws(case: FamilyCase) -> tuple[Law, ...]:
    """Laws of `FAMILY_LAWS` that apply to the case."""
    return tuple(law for law in FAMILY_LAWS if law.applies(case))

"""All laws for families, one file per group, and the selection of those that apply to a case."""

from __future__ import annotations

from calibayes.testing import family_laws, verification_laws
from calibayes.testing.law import FamilyCase, Law

__all__ = ["FAMILY_LAWS", "FamilyCase", "Law", "applicable_laws"]

FAMILY_LAWS: tuple[Law, ...] = tuple(
    value
    for group in (family_laws, verification_laws)
    for value in vars(group).values()
    if isinstance(value, Law)
)


def applicable_laws(case: FamilyCase) -> tuple[Law, ...]:
    """Laws of `FAMILY_LAWS` that apply to the case.

    Examples
    --------
    >>> import numpy as np
    >>> from calibayes.core.protocols import Layout
    >>> from calibayes.families import Poisson
    >>> from calibayes.testing import FamilyCase
    >>> case = FamilyCase(Poisson().bind(Layout(("a", "b"), ("x0",))), np.array([[1], [0], [4]]), k=2)
    >>> len(applicable_laws(case)) > 10
    True
    """
    return tuple(law for law in FAMILY_LAWS if law.applies(case))

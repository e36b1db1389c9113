"""Laws that every family must satisfy, and random tables for estimators, for the tests of this package and of others.

In a test module::

    CASE = FamilyCase(MyFamily().bind(layout), columns, k=3)

    @pytest.mark.parametrize("law", applicable_laws(CASE), ids=str)
    def test_family_satisfies_law(law):
        law.check(CASE)

    @given(tables())
    def test_classifier_on_any_table(table):
        assert_posterior_or_clear_error(MyClassifier(), table)
"""

from calibayes.testing import family_laws, verification_laws
from calibayes.testing.law import FamilyCase, Law
from calibayes.testing.random_tables import LabeledTable, assert_posterior_or_clear_error, tables

__all__ = [
    "FAMILY_LAWS",
    "FamilyCase",
    "LabeledTable",
    "Law",
    "applicable_laws",
    "assert_posterior_or_clear_error",
    "tables",
]

_values = (*vars(family_laws).values(), *vars(verification_laws).values())
FAMILY_LAWS: tuple[Law, ...] = tuple(value for value in _values if isinstance(value, Law))


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

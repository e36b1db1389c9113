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

from calibayes.testing.all_laws import FAMILY_LAWS, applicable_laws
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

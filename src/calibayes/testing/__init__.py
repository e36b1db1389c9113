"""Laws that every family must satisfy, for the tests of this package and of families defined elsewhere.

CASE = FamilyCase(MyFamily().bind(layout), columns, k=3)

@pytest.mark.parametrize("law", applicable_laws(CASE), ids=str)
def test_family_satisfies_law(law):
    law.check(CASE)
"""

from calibayes.testing.laws import FAMILY_LAWS, FamilyCase, Law, applicable_laws

__all__ = ["FAMILY_LAWS", "FamilyCase", "Law", "applicable_laws"]

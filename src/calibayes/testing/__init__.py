"""Laws that every family must keep, for the tests of this package and of families written elsewhere.

from calibayes.testing import FAMILY_LAWS, FamilyCase

@pytest.mark.parametrize("law", FAMILY_LAWS)
def test_law(law):
    law(FamilyCase(family, columns, k=3))
"""

from calibayes.testing.family_laws import FAMILY_LAWS, FamilyCase

__all__ = ["FAMILY_LAWS", "FamilyCase"]

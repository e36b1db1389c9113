"""Every law for every family."""

import pytest

from calibayes.testing import FAMILY_LAWS
from tests.cases import FAMILIES


@pytest.mark.parametrize("law", FAMILY_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", FAMILIES)
def test_family_keeps_the_law(name, law):
    law(FAMILIES[name])

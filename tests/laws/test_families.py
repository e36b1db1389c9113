"""Every family satisfies every law that applies to it."""

import pytest

from calibayes.testing import applicable_laws
from tests.cases import FAMILIES


@pytest.mark.parametrize(
    ("name", "law"),
    [
        pytest.param(name, law, id=f"{name}-{law}")
        for name, case in FAMILIES.items()
        for law in applicable_laws(case)
    ],
)
def test_family_satisfies_law(name, law):
    law.check(FAMILIES[name])

"""Every family satisfies every law that applies to it."""

from dataclasses import replace

import pytest

from calibayes.testing import applicable_laws
from tests.cases import FAMILIES
from tests.seeds import SEED


@pytest.mark.parametrize(
    ("name", "law"),
    [
        pytest.param(name, law, id=f"{name}-{law}")
        for name, case in FAMILIES.items()
        for law in applicable_laws(case)
    ],
)
def test_family_satisfies_law(name, law):
    law.check(replace(FAMILIES[name], seed=SEED))

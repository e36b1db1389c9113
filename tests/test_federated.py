"""A model that is calibrated by sums of several sites is that of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calibayes import GaussianNB
from calibayes.datasets import load_penguins
from calibayes.federated import Site, calibrate

COLUMNS = ["bill_length_mm", "body_mass_g"]


def rows() -> tuple[Any, Any, Any]:
    data = load_penguins()
    return data.data[COLUMNS], data.target, np.arange(len(data.target)) % 3 + 0.5


def parts() -> list[tuple[Any, ...]]:
    return [tuple(part[i::2] for part in rows()) for i in range(2)]


@pytest.fixture
def merged() -> GaussianNB:
    one, other = (GaussianNB(rule="ml", max_iter=5, stop=None).fit(*part) for part in parts())
    return one.merge(other)


@pytest.mark.parametrize("rule", ["rc", "ml"])
def test_the_model_of_all_sites_is_that_of_all_rows(merged: GaussianNB, rule: str) -> None:
    X, y, weight = rows()
    found = calibrate(merged, [Site(merged, *part) for part in parts()], rule)
    pooled = GaussianNB(rule=rule, max_iter=5, stop=None).fit(X, y, weight)
    assert_allclose(found.predict_log_proba(X), pooled.predict_log_proba(X), rtol=0, atol=1e-9)
    assert found.n_iter_ == pooled.n_iter_
    assert (found.rule, merged.rule) == (rule, "ml")
    if rule == "rc":
        assert_allclose(found.history_["objective"], pooled.history_["objective"], rtol=1e-9)


def test_what_cannot_be_trained_is_refused(merged: GaussianNB) -> None:
    with pytest.raises(ValueError, match="there are no sites"):
        calibrate(merged, [])
    with pytest.raises(ValueError, match=r"GDT needs families with another prior"):
        calibrate(merged, [Site(merged, *parts()[0])], "gdt")
    with pytest.raises(ValueError, match="do not exist in the initial classes"):
        Site(merged, rows()[0], np.full(len(rows()[1]), "Emperor"))

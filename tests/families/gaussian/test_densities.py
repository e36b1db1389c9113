"""Gaussian log densities against SciPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from tests.cases import FAMILIES


@pytest.mark.parametrize("name", [name for name in FAMILIES if name.startswith("gaussian")])
def test_gaussian_log_density(name):
    case = FAMILIES[name]
    family = case.prepared()
    parameters = family.parameters(case.start())
    found = family.log_density(case.columns, parameters)
    for c in range(case.k):
        if "covariance" in parameters:
            covariance = parameters["covariance"][min(c, len(parameters["covariance"]) - 1)]
        else:
            covariance = np.diag(parameters["variance"][c])
        expected = stats.multivariate_normal(parameters["mean"][c], covariance).logpdf(case.columns)
        assert_allclose(found[:, c], expected, rtol=1e-10)

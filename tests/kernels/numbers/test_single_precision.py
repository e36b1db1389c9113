"""float32 rows have the posterior of the same rows in float64, however far apart the classes are."""

import numpy as np
import pytest

from calibayes.kernels.gaussian_density import full_gaussian, linear_discriminants, whiteners
from calibayes.kernels.posterior import log_normalize

ROWS, COLUMNS, CLASSES = 200, 3, 4


@pytest.mark.parametrize("apart", [0.0, 30.0, 300.0, 3000.0])
@pytest.mark.parametrize("density", ["tied", "full", "linear"])
def test_the_posterior_is_that_of_float64(density, apart):
    """Two near pairs of classes: the distances of a pair nearly cancel, beside large ones."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(CLASSES, COLUMNS))
    mean[2:] += apart
    root = rng.normal(size=(COLUMNS, COLUMNS))
    covariance = np.stack([root @ root.T + np.eye(COLUMNS)] * (CLASSES if density == "full" else 1))
    whitener, log_determinant = whiteners(covariance)
    rows = (mean[rng.integers(CLASSES, size=ROWS)] + rng.normal(size=(ROWS, COLUMNS))).astype(np.float32)

    def posterior(x):
        if density == "linear":
            variance = np.diagonal(covariance[0])
            joint = linear_discriminants(x, mean, variance, lambda r: r @ np.linalg.inv(covariance[0]))
        else:
            joint = full_gaussian(x, mean, covariance, whitener, log_determinant)
        return np.exp(log_normalize(joint)[0])

    np.testing.assert_allclose(posterior(rows), posterior(rows.astype(np.float64)), rtol=0, atol=5e-4)

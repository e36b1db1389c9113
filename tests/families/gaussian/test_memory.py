"""Memory of diagonal Gaussians: linear in the number of columns."""

import tracemalloc

import numpy as np
import pytest

import calibayes as cb
from calibayes.families import (
    Diagonal,
    Gaussian,
    NormalInverseWishart,
    Spherical,
    TiedDiagonal,
    TiedSpherical,
)

COLUMNS, MOST_BYTES = 5_000, 2.5e7
"""A matrix of 5,000 x 5,000 numbers is 2e8 bytes."""


def of_shape(shape):
    family = Gaussian(shape, prior=NormalInverseWishart())
    return cb.GenerativeClassifier(families=[("numbers", family, cb.every)])


@pytest.mark.parametrize("is_missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize(
    "model",
    [cb.GaussianNB(), *map(of_shape, (Diagonal(), Spherical(), TiedDiagonal(), TiedSpherical()))],
    ids=["GaussianNB", "Diagonal", "Spherical", "TiedDiagonal", "TiedSpherical"],
)
def test_diagonal_gaussians_need_no_square_matrix(model, is_missing):
    X, y = np.random.default_rng(0).normal(size=(6, COLUMNS)), np.arange(6) % 2
    if is_missing:
        X[0, ::7] = np.nan
    tracemalloc.start()
    try:
        model.fit(X, y).predict_proba(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST_BYTES

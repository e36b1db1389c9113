"""One-dimensional k-means."""

import numpy as np
from numpy.testing import assert_allclose

from calibayes.kernels import cut_points
from tests.seeds import generator


def test_kmeans_agrees_with_scikit_learn():
    from sklearn.cluster import KMeans

    rng = generator(0)
    column = np.concatenate([rng.normal(size=300), rng.exponential(5.0, 100)])
    even = np.linspace(column.min(), column.max(), 6)
    start = (even[1:] + even[:-1]) / 2
    theirs = KMeans(5, init=start[:, None], n_init=1).fit(column[:, None]).cluster_centers_[:, 0]
    values = np.sort(column)
    assert_allclose(cut_points.kmeans_centers(values, np.ones(400), start), np.sort(theirs), rtol=1e-8)

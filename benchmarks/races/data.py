"""Simulated tables of the sizes that the races need: rows (n, d) and classes (n,)."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def codes(n, d, k, levels=5, seed=0):
    """Level codes whose frequencies differ slightly between classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    edges = np.cumsum(rng.dirichlet(np.full(levels, 5.0), size=(k, d)), axis=2)[:, :, :-1]
    X = np.empty((n, d), dtype=np.uint8)
    for c in range(k):
        rows = np.flatnonzero(y == c)
        shared = np.where(rng.random(d) < 0.9, 0, c)  # most columns carry no information
        uniform = rng.random((len(rows), d))
        X[rows] = sum((uniform > edges[shared, np.arange(d), level]) for level in range(levels - 1))
    return X, y


def numbers(n, d, k, separation=0.5, seed=0):
    """Correlated Gaussian columns; class means and variances differ."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    mixing = np.eye(d) + 0.5 * rng.normal(size=(d, d)) / np.sqrt(d)
    width = rng.uniform(0.5, 1.5, size=k)
    return separation * rng.normal(size=(k, d))[y] + (rng.normal(size=(n, d)) * width[y, None]) @ mixing, y


def ellipses(n, d, k, separation=0.08, class_share=0.05, seed=0):
    """Gaussian classes that differ slightly in mean and covariance; a tenth of the rows lies between two classes."""
    rng = np.random.default_rng(seed)
    y, shared = np.arange(n) % k, np.eye(d) + 0.5 * rng.normal(size=(d, d)) / np.sqrt(d)
    means, X = separation * rng.normal(size=(k, d)), np.empty((n, d))
    for c in range(k):
        rows = np.flatnonzero(y == c)
        mixing = shared + class_share * rng.normal(size=(d, d)) / np.sqrt(d)
        X[rows] = means[c] + rng.normal(size=(len(rows), d)) @ mixing
    between = np.flatnonzero(rng.random(n) < 0.1)
    X[between] = 0.5 * (X[between] + X[rng.permutation(between)])
    return X, y


def words(n, d, k, length=150, seed=0):
    """Word counts, CSR: a Zipf background and a topic for each class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    document = np.repeat(np.arange(n), rng.poisson(length, n))
    zipf = np.arange(1, d + 1) ** -1.1
    word = rng.choice(d, size=len(document), p=zipf / zipf.sum())
    topical = rng.random(len(document)) < 0.2
    word[topical] = (word[topical] + 7919 * y[document[topical]]) % d
    table = sparse.coo_array((np.ones(len(document)), (document, word)), shape=(n, d)).tocsr()
    table.sum_duplicates()
    return sparse.csr_matrix(table), y

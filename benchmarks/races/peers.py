"""Peers beyond scikit-learn: plain implementations of the same work, and optional packages."""

from __future__ import annotations

import importlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from calibayes.kernels.gaussian_density import multiply_triangular


def optional(name):
    """A package, or None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def softmax(log_joint):
    shifted = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


class PlainCalibration:
    """Risk-based calibration of naive Bayes over levels, written directly from the paper, on one-hot indicators.

    ``encode`` makes the indicators Z, dense, sparse or `ByLevel`, with Z @ log table = log density and Z' W = counts.
    """

    def __init__(self, X, y, levels, encode, step=0.1):
        self.Z, self.Y, self.levels, self.step = encode(X, levels), np.eye(y.max() + 1)[y], levels, step
        self.counts, self.sizes = self.Z.T @ self.Y, self.Y.sum(axis=0)

    def one_pass(self):
        columns = np.maximum(self.counts.reshape(-1, self.levels, self.Y.shape[1]), 1e-12)
        table = np.log(columns / columns.sum(axis=1, keepdims=True)).reshape(self.counts.shape)
        W = self.Y - softmax(self.Z @ table + np.log(self.sizes / self.sizes.sum()))
        self.counts = self.counts + self.step * (self.Z.T @ W)
        self.sizes = self.sizes + self.step * W.sum(axis=0)


class PlainQuadratic:
    """Risk-based calibration of QDA, written directly from the paper."""

    def __init__(self, X, y, step=1e-12):
        self.X, self.Y, self.step = X, np.eye(y.max() + 1)[y], step
        self.counts, self.sums, self.squares = self._moments(self.Y)

    def _moments(self, W):
        return W.sum(axis=0), W.T @ self.X, np.stack([(self.X * w[:, None]).T @ self.X for w in W.T])

    def one_pass(self):
        means = self.sums / self.counts[:, None]
        joint = []
        for mean, square, count in zip(means, self.squares, self.counts, strict=True):
            covariance, centered = square / count - np.outer(mean, mean), self.X - mean
            distance = np.sum(centered @ np.linalg.inv(covariance) * centered, axis=1)
            joint.append(np.log(count) - 0.5 * (distance + np.linalg.slogdet(covariance)[1]))
        direction = self._moments(self.Y - softmax(np.stack(joint, axis=1)))
        old = (self.counts, self.sums, self.squares)
        self.counts, self.sums, self.squares = (
            a + self.step * b for a, b in zip(old, direction, strict=True)
        )


class Pomegranate:
    """pomegranate's naive Bayes of independent Gaussians, which uses PyTorch."""

    def __init__(self, k):
        from pomegranate.bayes_classifier import BayesClassifier
        from pomegranate.distributions import Normal

        self.model = BayesClassifier([Normal(covariance_type="diag") for _ in range(k)])

    def fit(self, X, y):
        self.model.fit(X.astype(np.float32), y)

    def predict(self, X):
        return self.model.predict(X.astype(np.float32))


def dense_indicators(X, levels):
    return np.eye(levels)[X].reshape(len(X), -1)


def sparse_indicators(X, levels):
    n, d = X.shape
    columns = (X + levels * np.arange(d)).ravel()
    return sparse.csr_matrix((np.ones(n * d), columns, np.arange(0, n * d + 1, d)), shape=(n, d * levels))


class ByLevel:
    """One-hot indicators made level by level in each product; all of them in memory would take forty times the codes."""

    def __init__(self, codes, levels):
        self.codes, self.levels = codes, levels
        self.T = _Transposed(self)

    def indicators(self):
        return ((self.codes == level).astype(np.float64) for level in range(self.levels))

    def __matmul__(self, table):
        return sum(Z @ table[level :: self.levels] for level, Z in enumerate(self.indicators()))


class _Transposed:
    def __init__(self, by_level):
        self.by_level = by_level

    def __matmul__(self, weights):
        sums = [Z.T @ weights for Z in self.by_level.indicators()]
        return np.stack(sums, axis=1).reshape(-1, weights.shape[1])


class BareProducts:
    """Only the BLAS calls that a pass of QDA needs, on a given number of threads.

    A triangular product of all rows with each class's factor, in place in blocks of a megabyte, and for each class the product
    of its undecided rows with their own transpose. The rows are zeros: BLAS does the same work on them, and products in
    place need no fresh copy.
    """

    def __init__(self, X, factors, undecided, threads):
        self.factors, self.threads = factors, threads
        self.count = max(X.size // 2**17, 1)
        self.shape = (-(-len(X) // self.count), X.shape[1])
        self.undecided = [np.zeros((size, X.shape[1])) for size in undecided if size]

    def run(self):
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(self._products, np.array_split(np.arange(self.count), self.threads)))
            list(pool.map(lambda rows: rows.T @ rows, self.undecided))

    def _products(self, which):
        rows = np.zeros(self.shape)
        for _ in which:
            for factor in self.factors:
                multiply_triangular(rows, factor)

"""The updates that the paper of 2024 prints or evidently used where they differ from those of this library.

They give the published numbers. Calibration of QDA admits covariances that are not positive definite; gradient descent adds
the trace of a covariance to every entry of a matrix, as the printed formula does if NumPy evaluates it. Gradient descent of
naive Bayes gives every column the same number of bins, and moves probability to bins without rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from calibayes.core.protocols import Array
from calibayes.reproduction.procedures import TableTask, bins_of


class Gaussians(NamedTuple):
    """Logarithms of class sizes (k,), means (k, d) and covariances (k, d, d)."""

    log_sizes: Array
    means: Array
    covariances: Array


@dataclass(frozen=True)
class QuadraticCurve(TableTask):
    """Task: train QDA from the maximum likelihood estimate on all rows of a data set."""

    step: float = 0.1
    updates: int = 63

    def run(self) -> dict[str, Any]:
        """The training errors; entry 0 is the start."""
        columns, target = self.cleaning.apply(self.data)
        classes, true_class = np.unique(target, return_inverse=True)
        labels = np.eye(len(classes))[true_class]
        moments = _moments(columns, labels)
        model, state, errors = _gaussians(moments), self.start(moments), []
        for _ in range(self.updates + 1):
            posterior = _posterior(columns, model)
            errors.append(float(np.mean(posterior.argmax(axis=1) != true_class)))
            state = self.update(state, _moments(columns, labels - posterior), len(columns))
            model = self.model(state)
        return {"error": errors, "shape": list(columns.shape), "notes": []}

    @abstractmethod
    def start(self, moments: Sequence[Array]) -> Sequence[Array]:
        """The state of the maximum likelihood estimate."""

    @abstractmethod
    def model(self, state: Sequence[Array]) -> Gaussians:
        """The parameters of a state."""

    @abstractmethod
    def update(self, state: Sequence[Array], change: Sequence[Array], n: int) -> Sequence[Array]:
        """The next state; ``change`` are the moments of ``n`` rows under labels minus posteriors."""


class UncheckedCalibration(QuadraticCurve):
    """Risk-based calibration that admits every covariance; a state is the moments. A class keeps its moments instead of
    becoming empty."""

    def start(self, moments: Sequence[Array]) -> Sequence[Array]:
        return moments

    def model(self, state: Sequence[Array]) -> Gaussians:
        return _gaussians(state)

    def update(self, state: Sequence[Array], change: Sequence[Array], n: int) -> Sequence[Array]:
        proposed = [part + self.step * added for part, added in zip(state, change, strict=True)]
        is_valid = proposed[0] > 0
        return [
            np.where(is_valid.reshape(-1, *[1] * (part.ndim - 1)), new, part)
            for part, new in zip(state, proposed, strict=True)
        ]


class PrintedGradient(QuadraticCurve):
    """Gradient descent by the formulae of Appendix C; a state is the natural parameters.

    The paper also describes a least eigenvalue of covariances, with which two data sets have other numbers than published.
    """

    def start(self, moments: Sequence[Array]) -> Sequence[Array]:
        log_sizes, means, covariances = _gaussians(moments)
        precisions = np.linalg.inv(covariances)
        return log_sizes, np.einsum("kij,kj->ki", precisions, means), -0.5 * precisions

    def model(self, state: Sequence[Array]) -> Gaussians:
        log_sizes, first, second = state
        covariances = -0.5 * np.linalg.inv(second)
        return Gaussians(log_sizes, np.einsum("kij,kj->ki", covariances, first), covariances)

    def update(self, state: Sequence[Array], change: Sequence[Array], n: int) -> Sequence[Array]:
        log_sizes, first, second = state
        sizes, sums, squares = (self.step / n * part for part in change)
        inverse = np.linalg.inv(second)
        center = 0.5 * np.einsum("kij,kj->ki", inverse, first)  # minus the mean
        trace = 0.5 * np.trace(inverse, axis1=1, axis2=2)
        matrices = trace[:, None, None] - _outer(center, center)
        return (
            log_sizes + sizes,
            first + sums + sizes[:, None] * center,
            second + squares + sizes[:, None, None] * matrices,
        )


def _gaussians(moments: Sequence[Array]) -> Gaussians:
    sizes, sums, squares = moments
    means = sums / sizes[:, None]
    return Gaussians(np.log(sizes), means, squares / sizes[:, None, None] - _outer(means, means))


def _outer(a: Array, b: Array) -> Array:
    """The matrix of each class."""
    return np.asarray(a[:, :, None] * b[:, None, :])


def _moments(columns: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Weights, weighted sums and weighted sums of products of each class."""
    squares = np.stack([(columns * weight[:, None]).T @ columns for weight in weights.T])
    return weights.sum(axis=0), weights.T @ columns, squares


def _posterior(columns: Array, model: Gaussians) -> Array:
    """Class probabilities (n, k), with the logarithm of the absolute determinant."""
    inverses, (_, log_determinants) = np.linalg.inv(model.covariances), np.linalg.slogdet(model.covariances)
    distances = [
        np.einsum("ni,ni->n", (columns - mean) @ inverse, columns - mean)
        for mean, inverse in zip(model.means, inverses, strict=True)
    ]
    log_joint = model.log_sizes - 0.5 * (np.stack(distances, axis=1) + log_determinants)
    return np.asarray(softmax(log_joint, axis=1))


# -- Gradient descent of naive Bayes --------------------------------------------------------------------------


@dataclass(frozen=True)
class BinnedGradient(TableTask):
    """Task: gradient descent of naive Bayes on all rows; probabilities are projected to the simplex after each update.

    ``prior_rows`` is the size of the prior of each class, of which each bin of a column has the same part. The levels of the
    library are those with rows; here every column has all bins, and the projection may give probability to those without.
    """

    prior_rows: float = 0.0
    bins: int = 5
    step: float = 0.1
    updates: int = 63

    def run(self) -> dict[str, Any]:
        """The training errors; entry 0 is the start."""
        columns, target = self.cleaning.apply(self.data)
        classes, true_class = np.unique(target, return_inverse=True)
        levels = np.eye(self.bins)[bins_of(columns, self.bins)].reshape(len(columns), -1)
        labels, errors = np.eye(len(classes))[true_class], []
        sizes = labels.sum(axis=0) + self.prior_rows
        tables = (levels.T @ labels + self.prior_rows / self.bins) / sizes
        prior = sizes / sizes.sum()
        for _ in range(self.updates + 1):
            posterior = softmax(levels @ _log(tables) + _log(prior), axis=1)
            errors.append(float(np.mean(posterior.argmax(axis=1) != true_class)))
            change = self.step / len(columns) * (labels - posterior)
            moved = np.exp(_log(tables) + levels.T @ change).reshape(-1, self.bins, len(classes))
            tables = np.swapaxes(_on_simplex(np.swapaxes(moved, 1, 2)), 1, 2).reshape(tables.shape)
            prior = _on_simplex(np.exp(_log(prior) + change.sum(axis=0)))
        return {"error": errors, "shape": list(columns.shape), "notes": []}


def _log(probabilities: Array) -> Array:
    return np.asarray(np.log(np.maximum(probabilities, np.finfo(float).tiny)))


def _on_simplex(values: Array) -> Array:
    """The nearest probabilities along the last axis (Held, Wolfe and Crowder 1974)."""
    descending = -np.sort(-values, axis=-1)
    excess = (np.cumsum(descending, axis=-1) - 1.0) / np.arange(1, values.shape[-1] + 1)
    last = np.sum(descending > excess, axis=-1, keepdims=True) - 1
    return np.maximum(values - np.take_along_axis(excess, last, axis=-1), 0.0)

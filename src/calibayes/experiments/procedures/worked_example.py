"""Two Gaussian classes with known parameters, so that the Bayes rule is known (generative-models-notes)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import multivariate_normal

from calibayes.core.protocols import Array
from calibayes.experiments.procedures.fitting import fit_clone


@dataclass(frozen=True)
class TwoGaussianClasses:
    """Two classes with Gaussian columns: probability of the second class, means and covariances of both."""

    probability: float
    means: tuple[tuple[float, float], tuple[float, float]]
    covariances: tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...]]

    def draw(self, n: int, seed: int) -> tuple[Array, Array]:
        """Columns (n, 2) and classes (n,)."""
        rng = np.random.default_rng(seed)
        target = (rng.uniform(size=n) < self.probability).astype(int)
        noise = rng.normal(size=(n, 2))
        roots = np.linalg.cholesky(np.array(self.covariances))
        columns = np.array(self.means)[target] + np.einsum("nij,nj->ni", roots[target], noise)
        return columns, target

    def posterior(self, columns: Array) -> Array:
        """True p(class | x), (n, 2)."""
        prior = (1.0 - self.probability, self.probability)
        joint = np.stack(
            [
                share * multivariate_normal(mean, covariance).pdf(columns)
                for share, mean, covariance in zip(prior, self.means, self.covariances, strict=True)
            ],
            axis=1,
        )
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class WorkedExample:
    """Task: errors and costs of models and of the Bayes rule on a large sample."""

    distribution: TwoGaussianClasses
    models: tuple[tuple[str, Any], ...]
    costs: tuple[tuple[float, float], tuple[float, float]]
    training_rows: int
    test_rows: int

    def inputs(self) -> tuple[str, ...]:
        """No data set."""
        return ()

    def run(self) -> dict[str, Any]:
        """Under "scores": label -> error, mean cost of the most probable class, mean cost of the lowest expected cost."""
        columns, target = self.distribution.draw(self.test_rows, seed=1)
        posteriors = {"Bayes rule": self.distribution.posterior(columns)}
        for label, model in self.models:
            trained, _ = fit_clone(model, *self.distribution.draw(self.training_rows, seed=0))
            posteriors[label] = trained.predict_proba(columns)
        return {"scores": {label: self._scores(p, target) for label, p in posteriors.items()}}

    def _scores(self, posterior: Array, target: Array) -> list[float]:
        costs = np.array(self.costs)
        most_probable = np.argmax(posterior, axis=1)
        cheapest = np.argmin(posterior @ costs, axis=1)
        return [
            float(np.mean(most_probable != target)),
            float(np.mean(costs[target, most_probable])),
            float(np.mean(costs[target, cheapest])),
        ]

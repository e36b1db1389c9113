"""Simulated data for which the logistic model is correct (gdt-2004, section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from calibayes.core.protocols import Array
from calibayes.experiments.procedures.fitting import fit_clone

TEST_SEED = 10**6
"""Differs from the seeds of all training samples."""


class Simulation(Protocol):
    """A joint distribution of columns and class."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Columns (n, 4) and classes (n,)."""


@dataclass(frozen=True)
class TwoGaussians:
    """Two Gaussians with unit covariance and means at plus and minus ``distance`` in the first column."""

    distance: float = 1.25

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        target = rng.integers(0, 2, n)
        columns = rng.normal(size=(n, 4))
        columns[:, 0] += self.distance * (2 * target - 1)
        return columns, target


@dataclass(frozen=True)
class UniformChain:
    """Each column is uniform between the previous column and that plus one; the class depends on the first.

    p(class 1 | x) = 1 / (1 + exp(-slope x)); the paper prints 1 / exp(-slope x), which is not a probability.
    """

    slope: float = 2.5

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        columns = np.cumsum(rng.uniform(size=(n, 4)), axis=1)
        probability = 1.0 / (1.0 + np.exp(-self.slope * columns[:, 0]))
        return columns, (rng.uniform(size=n) < probability).astype(int)


@dataclass(frozen=True)
class SimulatedTrials:
    """Task: log loss of several models on a large test sample, trained on a new small sample in each trial."""

    simulation: Simulation
    models: tuple[tuple[str, Any], ...]
    training_rows: int
    test_rows: int
    trials: tuple[int, ...]

    def inputs(self) -> tuple[str, ...]:
        """No data set."""
        return ()

    def run(self) -> dict[str, Any]:
        """Label of the model -> losses, one for each trial."""
        columns, target = self.simulation.draw(self.test_rows, np.random.default_rng(TEST_SEED))
        rows = np.arange(len(target))
        losses: dict[str, list[float]] = {label: [] for label, _ in self.models}
        for trial in self.trials:
            sample = self.simulation.draw(self.training_rows, np.random.default_rng(trial))
            for label, estimator in self.models:
                model, _ = fit_clone(estimator, *sample)
                log_posterior = model.predict_log_proba(columns)
                losses[label].append(float(-np.mean(log_posterior[rows, target])))
        return {"loss": losses}

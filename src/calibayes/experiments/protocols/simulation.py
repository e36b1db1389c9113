"""Simulated data whose logistic model is true (gdt-2004, section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from calibayes.core.protocols import Array
from calibayes.experiments.protocols.fitting import fitted

TEST_SEED = 10**6
"""Apart from all seeds of training samples."""


class Simulated(Protocol):
    """A distribution of rows and classes."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Columns (n, 4) and classes (n,)."""


@dataclass(frozen=True)
class TwoGaussians:
    """Two unit spheres, ``distance`` from the middle each."""

    distance: float = 1.25

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        target = rng.integers(0, 2, n)
        columns = rng.normal(size=(n, 4))
        columns[:, 0] += self.distance * (2 * target - 1)
        return columns, target


@dataclass(frozen=True)
class UniformChain:
    """Uniform columns, each from the one before to one more; the class follows the first with this slope.

    The paper prints 1 / exp(-slope x), which is no probability; meant is 1 / (1 + exp(-slope x)).
    """

    slope: float = 2.5

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        columns = np.cumsum(rng.uniform(size=(n, 4)), axis=1)
        probability = 1.0 / (1.0 + np.exp(-self.slope * columns[:, 0]))
        return columns, (rng.uniform(size=n) < probability).astype(int)


@dataclass(frozen=True)
class SimulatedTrials:
    """Log loss on a large test sample of models trained on small ones."""

    world: Simulated
    models: tuple[tuple[str, Any], ...]
    training_rows: int
    test_rows: int
    trials: tuple[int, ...]

    def inputs(self) -> tuple[str, ...]:
        """It reads no data set."""
        return ()

    def run(self) -> dict[str, Any]:
        """Label -> losses, one for each trial."""
        columns, target = self.world.draw(self.test_rows, np.random.default_rng(TEST_SEED))
        rows = np.arange(len(target))
        losses: dict[str, list[float]] = {label: [] for label, _ in self.models}
        for trial in self.trials:
            sample = self.world.draw(self.training_rows, np.random.default_rng(trial))
            for label, estimator in self.models:
                model, _ = fitted(estimator, *sample)
                log_posterior = model.predict_log_proba(columns)
                losses[label].append(float(-np.mean(log_posterior[rows, target])))
        return {"loss": losses}

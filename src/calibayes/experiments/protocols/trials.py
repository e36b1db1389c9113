"""Small training samples, all other rows for the test (gdt-2004, Table 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.experiments.protocols.data_entry import Cleaning, DataEntry
from calibayes.experiments.protocols.directions import find_directions
from calibayes.experiments.protocols.fitting import fitted


@dataclass(frozen=True)
class Trials:
    """Some trials of several models on one data set.

    Parameters
    ----------
    data : DataEntry
    cleaning : Cleaning
    models : pairs of label and estimator
    training_rows, directions : int
    trials : numbers of the trials; each is the seed of its sample
    costs : (k, k) nested tuples, optional
        Costs of decisions; by default each mistake costs 1.
    """

    data: DataEntry
    cleaning: Cleaning
    models: tuple[tuple[str, Any], ...]
    training_rows: int
    directions: int
    trials: tuple[int, ...]
    costs: tuple[tuple[float, ...], ...] | None = None

    def inputs(self) -> tuple[str, ...]:
        """Names of the data sets it reads."""
        return (self.data.name,)

    def run(self) -> dict[str, Any]:
        """Label -> losses on the test rows, and the lam that was chosen where one was."""
        columns, target = self.cleaning.apply(self.data)
        losses: dict[str, list[float]] = {label: [] for label, _ in self.models}
        chosen: dict[str, list[float]] = {}
        for trial in self.trials:
            training, test = self._split(len(target), trial)
            view = find_directions(columns[training], target[training], self.directions)
            for label, estimator in self.models:
                model, _ = fitted(estimator, view.apply(columns[training]), target[training], trial)
                losses[label].append(self._loss(model, view.apply(columns[test]), target[test]))
                if hasattr(model, "lam_"):
                    chosen.setdefault(label, []).append(model.lam_)
        return {"loss": losses, "lam": chosen}

    def _split(self, n: int, trial: int) -> tuple[Array, Array]:
        order = np.random.default_rng(trial).permutation(n)
        return order[: self.training_rows], order[self.training_rows :]

    def _loss(self, model: Any, columns: Array, target: Array) -> float:
        truth = np.searchsorted(model.classes_, target)
        if self.costs is None:
            return float(np.mean(model.predict(columns) != target))
        costs = np.asarray(self.costs)
        decided = np.argmin(model.predict_proba(columns) @ costs, axis=1)
        return float(np.mean(costs[truth, decided]))

"""Test errors of models trained on small random samples; all other rows are test rows (gdt-2004, Table 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.experiments.procedures.data_entry import Cleaning, DataEntry
from calibayes.experiments.procedures.fitting import fit_clone
from calibayes.experiments.procedures.projection import fit_projection


@dataclass(frozen=True)
class SubsampleTrials:
    """Task: some trials of several models on one data set.

    Parameters
    ----------
    data : DataEntry
    cleaning : Cleaning
    models : pairs of label and estimator
    training_rows : int
    directions : int
        Number of directions of the projection, which is fitted on the training rows.
    trials : tuple of int
        Numbers of the trials, which are the seeds of their samples.
    costs : (k, k) nested tuples, optional
        Cost of each decision (column) for each true class (row); by default each error costs 1.
    """

    data: DataEntry
    cleaning: Cleaning
    models: tuple[tuple[str, Any], ...]
    training_rows: int
    directions: int
    trials: tuple[int, ...]
    costs: tuple[tuple[float, ...], ...] | None = None

    def inputs(self) -> tuple[str, ...]:
        """The data set."""
        return (self.data.name,)

    def run(self) -> dict[str, Any]:
        """Label of the model -> mean costs on the test rows; and the chosen lam of models that choose one."""
        columns, target = self.cleaning.apply(self.data)
        losses: dict[str, list[float]] = {label: [] for label, _ in self.models}
        lams: dict[str, list[float]] = {}
        for trial in self.trials:
            training, test = self._split(len(target), trial)
            projection = fit_projection(columns[training], target[training], self.directions)
            for label, estimator in self.models:
                model, _ = fit_clone(estimator, projection.apply(columns[training]), target[training], trial)
                losses[label].append(self._loss(model, projection.apply(columns[test]), target[test]))
                if hasattr(model, "lam_"):
                    lams.setdefault(label, []).append(model.lam_)
        return {"loss": losses, "lam": lams}

    def _split(self, n: int, trial: int) -> tuple[Array, Array]:
        order = np.random.default_rng(trial).permutation(n)
        return order[: self.training_rows], order[self.training_rows :]

    def _loss(self, model: Any, columns: Array, target: Array) -> float:
        truth = np.searchsorted(model.classes_, target)
        if self.costs is None:
            return float(np.mean(model.predict(columns) != target))
        costs = np.asarray(self.costs)
        decisions = np.argmin(model.predict_proba(columns) @ costs, axis=1)
        return float(np.mean(costs[truth, decisions]))

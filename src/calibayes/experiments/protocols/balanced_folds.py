"""Balanced errors of stratified cross-validation (slb-2020, section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from calibayes.core.protocols import Array
from calibayes.experiments.protocols.data_entry import Cleaning, DataEntry
from calibayes.experiments.protocols.fitting import fitted


@dataclass(frozen=True)
class BalancedFolds:
    """One model on the folds of one seed, which are the same for all models."""

    data: DataEntry
    cleaning: Cleaning
    model: Any
    seed: int
    folds: int = 5

    def inputs(self) -> tuple[str, ...]:
        """Names of the data sets it reads."""
        return (self.data.name,)

    def run(self) -> dict[str, Any]:
        """Balanced error and error of each fold, and notes."""
        columns, target = self.cleaning.apply(self.data)
        splitter = StratifiedKFold(self.folds, shuffle=True, random_state=self.seed)
        balanced, plain, said = [], [], set()
        for training, test in splitter.split(columns, target):
            model, notes = fitted(self.model, columns[training], target[training])
            wrong = model.predict(columns[test]) != target[test]
            balanced.append(balanced_error(wrong, target[test]))
            plain.append(float(np.mean(wrong)))
            said |= set(notes)
        return {"balanced": balanced, "error": plain, "notes": sorted(said)}


def balanced_error(wrong: Array, target: Array) -> float:
    """Mean over the classes of the share of rows that are decided wrongly."""
    return float(np.mean([np.mean(wrong[target == label]) for label in np.unique(target)]))

"""Balanced errors by stratified cross-validation (slb-2020, section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from calibayes.core.protocols import Array
from calibayes.experiments.procedures.data_entry import Cleaning, DataEntry
from calibayes.experiments.procedures.fitting import fit_clone


@dataclass(frozen=True)
class BalancedFolds:
    """Task: cross-validate one model; folds of the same seed are the same for all models."""

    data: DataEntry
    cleaning: Cleaning
    model: Any
    seed: int
    folds: int = 5

    def inputs(self) -> tuple[str, ...]:
        """The data set."""
        return (self.data.name,)

    def run(self) -> dict[str, Any]:
        """Balanced error and error of each fold, and warnings of the fits (notes)."""
        columns, target = self.cleaning.apply(self.data)
        splitter = StratifiedKFold(self.folds, shuffle=True, random_state=self.seed)
        balanced_errors, errors, all_notes = [], [], set()
        for training, test in splitter.split(columns, target):
            model, notes = fit_clone(self.model, columns[training], target[training])
            wrong = model.predict(columns[test]) != target[test]
            balanced_errors.append(balanced_error(wrong, target[test]))
            errors.append(float(np.mean(wrong)))
            all_notes |= set(notes)
        return {"balanced": balanced_errors, "error": errors, "notes": sorted(all_notes)}


def balanced_error(wrong: Array, target: Array) -> float:
    """Mean over the classes of the error within the class."""
    return float(np.mean([np.mean(wrong[target == label]) for label in np.unique(target)]))

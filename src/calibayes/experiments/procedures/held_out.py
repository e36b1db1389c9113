"""Training and test errors on a random split (rc-generative-2025); test rows are used only for the test error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from calibayes.experiments.procedures.data_entry import Cleaning, DataEntry
from calibayes.experiments.procedures.fitting import fit_clone


@dataclass(frozen=True)
class HeldOutSplit:
    """Task: fit one model on the training rows of one split and score it on both parts.

    Parameters
    ----------
    data : DataEntry
    cleaning : Cleaning
        Applied before the split; it does not use the target: drops rows with missing values and constant columns.
    model : estimator
    split : int
        Seed of the split, which is the same for all models.
    standardize : bool
        Standardize columns by means and standard deviations of the training rows.
    share : float
        Share of the rows that are held out, stratified by class.
    """

    data: DataEntry
    cleaning: Cleaning
    model: Any
    split: int
    standardize: bool = False
    share: float = 0.25

    def inputs(self) -> tuple[str, ...]:
        """The data set."""
        return (self.data.name,)

    def run(self) -> dict[str, Any]:
        """Errors on both parts, the best iteration (from 1), soft errors over the iterations, and warnings (notes)."""
        columns, target = self.cleaning.apply(self.data)
        training, test, training_target, test_target = train_test_split(
            columns, target, test_size=self.share, stratify=target, random_state=self.split
        )
        if self.standardize:
            scaler = StandardScaler().fit(training)
            training, test = scaler.transform(training), scaler.transform(test)
        model, notes = fit_clone(self.model, training, training_target, self.split)
        inner = getattr(model, "estimator_", model)
        true_class = model.predict_proba(training)[
            np.arange(len(training_target)), np.searchsorted(model.classes_, training_target)
        ]
        start = {"soft_error": np.array([np.mean(1.0 - true_class)])}  # closed forms have no history_
        return {
            "training": float(np.mean(model.predict(training) != training_target)),
            "test": float(np.mean(model.predict(test) != test_target)),
            "iter": int(inner.best_iter_) + 1,
            "soft_error": getattr(inner, "history_", start)["soft_error"].tolist(),
            "notes": notes,
        }

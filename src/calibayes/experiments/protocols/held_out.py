"""Training and test errors on a random split (rc-generative-2025): nothing sees the test rows but the last count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from calibayes.experiments.protocols.data_entry import Cleaning, DataEntry
from calibayes.experiments.protocols.fitting import fitted


@dataclass(frozen=True)
class HeldOut:
    """One model on one split.

    Parameters
    ----------
    data : DataEntry
    cleaning : Cleaning
        Of what does not look at the target: rows with gaps, columns that never vary.
    model : estimator
    split : int
        Seed of the split, which is the same for all models.
    standardize : bool
        By the means and deviations of the training rows.
    share : float
        Of the rows that are held out, of each class alike.
    """

    data: DataEntry
    cleaning: Cleaning
    model: Any
    split: int
    standardize: bool = False
    share: float = 0.25

    def inputs(self) -> tuple[str, ...]:
        """Names of the data sets it reads."""
        return (self.data.name,)

    def run(self) -> dict[str, Any]:
        """Errors on both parts, the iteration that was kept (from 1), soft errors over the iterations, notes."""
        columns, target = self.cleaning.apply(self.data)
        training, test, known, unknown = train_test_split(
            columns, target, test_size=self.share, stratify=target, random_state=self.split
        )
        if self.standardize:
            scaler = StandardScaler().fit(training)
            training, test = scaler.transform(training), scaler.transform(test)
        model, notes = fitted(self.model, training, known, self.split)
        inner = getattr(model, "estimator_", model)
        of_truth = model.predict_proba(training)[
            np.arange(len(known)), np.searchsorted(model.classes_, known)
        ]
        start = {"soft_error": np.array([np.mean(1.0 - of_truth)])}  # a closed form keeps no history
        return {
            "training": float(np.mean(model.predict(training) != known)),
            "test": float(np.mean(model.predict(test) != unknown)),
            "iter": int(inner.best_iter_) + 1,
            "soft_error": getattr(inner, "history_", start)["soft_error"].tolist(),
            "notes": notes,
        }

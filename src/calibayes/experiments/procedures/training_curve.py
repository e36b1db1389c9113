"""Training errors over the updates of a rule, on all rows (rc-probabilistic-2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibayes.experiments.procedures.data_entry import Cleaning, DataEntry
from calibayes.experiments.procedures.fitting import fit_clone


@dataclass(frozen=True)
class TrainingCurve:
    """Task: fit one model on all rows of a data set; entry 0 of the curve is the start."""

    data: DataEntry
    cleaning: Cleaning
    model: Any

    def inputs(self) -> tuple[str, ...]:
        """The data set."""
        return (self.data.name,)

    def run(self) -> dict[str, Any]:
        """The training errors, the shape of the columns and warnings (notes)."""
        columns, target = self.cleaning.apply(self.data)
        model, notes = fit_clone(self.model, columns, target)
        return {"error": model.history_["error"].tolist(), "shape": list(columns.shape), "notes": notes}

"""Training errors over the updates of a rule, on all rows (rc-probabilistic-2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibayes.experiments.protocols.data_entry import Cleaning, DataEntry
from calibayes.experiments.protocols.fitting import fitted


@dataclass(frozen=True)
class TrainingCurve:
    """One model on all rows of a data set; entry 0 of the curve is the start."""

    data: DataEntry
    cleaning: Cleaning
    model: Any

    def inputs(self) -> tuple[str, ...]:
        """Names of the data sets it reads."""
        return (self.data.name,)

    def run(self) -> dict[str, Any]:
        """The curve, the size of the table and notes."""
        columns, target = self.cleaning.apply(self.data)
        model, notes = fitted(self.model, columns, target)
        return {"error": model.history_["error"].tolist(), "shape": list(columns.shape), "notes": notes}

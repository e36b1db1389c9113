"""Base of families over event counts: the number of events of each column in each class."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array, Arrays, ValidStatistics
from calibayes.core.verify import require_arrays
from calibayes.families.counts.pseudo_counts import PseudoCounts
from calibayes.kernels.numbers import events, moments, sparse


@dataclass(frozen=True)
class EventCounts(PseudoCounts):
    """Statistics: events of each class and column (k, d), and rows of each class (k,)."""

    reads = "counts"

    @property
    def _pseudo(self) -> Array:
        d = len(self.layout.columns)
        return self.pseudo_counts([d] * d)

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        return {"count": events.totals(columns, weights), "rows": moments.zeroth(weights)}

    def verify_statistics(self, statistics: Arrays) -> None:
        k, d = len(self.layout.classes), len(self.layout.columns)
        require_arrays("statistics", statistics, {"count": (k, d), "rows": (k,)}, least=0.0)

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """An event count that would be negative, or a row count that would not be positive, keeps its value."""
        invalid = {"count": ~(proposed["count"] >= 0), "rows": ~(proposed["rows"] > 0)}
        counts = {name: np.where(invalid[name], current[name], value) for name, value in proposed.items()}
        frozen = sum(int(mask.sum()) for mask in invalid.values())
        return ValidStatistics(counts, frozen, np.zeros(len(counts["rows"]), dtype=bool))

    @abstractmethod
    def event_weights(self, parameters: Arrays) -> Array:
        """Contribution of one event of each column to the log density of each class, (k, d)."""

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        dense = sparse.as_dense(columns, len(self.layout.classes))
        return np.asarray(dense[:, None, :] * self.event_weights(parameters))

    def cells(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"])

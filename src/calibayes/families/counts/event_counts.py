"""What families over counts of events share: how often each column's event occurred in each class."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array, Arrays, ValidStatistics
from calibayes.families.counts.pseudo_counts import PseudoCounts
from calibayes.kernels.numbers import events, moments, sparse


@dataclass(frozen=True)
class EventCounts(PseudoCounts):
    """Events of each column (k, d), and the rows that they came in (k,)."""

    reads = "counts"

    @property
    def _pseudo(self) -> Array:
        d = len(self.layout.columns)
        return self.pseudo_counts([d] * d)

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        return {"count": events.totals(columns, weights), "rows": moments.zeroth(weights)}

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """A count that would fall below zero keeps its value."""
        keep = {"count": ~(proposed["count"] >= 0), "rows": ~(proposed["rows"] > 0)}
        kept = {name: np.where(keep[name], current[name], value) for name, value in proposed.items()}
        frozen = sum(int(mask.sum()) for mask in keep.values())
        return ValidStatistics(kept, frozen, np.zeros(len(kept["rows"]), dtype=bool))

    @abstractmethod
    def weights_of(self, parameters: Arrays) -> Array:
        """What an event of each column adds to a class's log density, (k, d)."""

    @property
    def groups(self) -> tuple[str, ...]:
        return self.layout.columns

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        dense = sparse.as_dense(columns, len(self.layout.classes))
        return np.asarray(dense[:, None, :] * self.weights_of(parameters))

    def cells(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"])

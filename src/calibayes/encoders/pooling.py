"""The rule by which rare levels of a column are pooled into one level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.summaries.weights import reaches


@dataclass(frozen=True)
class Pooling:
    """Which levels of a column are pooled into one level, "other".

    Parameters
    ----------
    rare : float, default=0
        Levels with a smaller total weight (fewer rows) than this are pooled.
    most : int, optional
        Number of most frequent levels that are not pooled; of levels with equal weight the first in sorted order stay.
    """

    rare: float = 0.0
    most: int | None = None

    def __post_init__(self) -> None:
        if not self.rare >= 0 or (self.most is not None and self.most < 1):
            raise ValueError(
                "to pool levels, rare must be at least 0 and most at least 1 (or None), "
                f"got rare={self.rare}, most={self.most}"
            )

    @property
    def is_active(self) -> bool:
        """Whether any level may be pooled."""
        return self.rare > 0 or self.most is not None

    def unpooled(self, weights: Array) -> Array:
        """Which levels, of these total weights (levels,), are not pooled, (levels,) booleans."""
        if not self.is_active:
            return np.ones(len(weights), dtype=bool)
        is_frequent = np.zeros(len(weights), dtype=bool)
        is_frequent[np.argsort(-weights, kind="stable")[: self.most]] = True
        return is_frequent & reaches(weights, self.rare)

"""Levels that are too rare or too many, pooled into one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array


@dataclass(frozen=True)
class Pooling:
    """Which levels keep to themselves; the others become one level, "other".

    Parameters
    ----------
    rare : float, default=0
        Levels of less weight (seen fewer times) than this are pooled.
    most : int, optional
        Levels beyond this many most frequent ones are pooled; among equals the first in order stay.
    """

    rare: float = 0.0
    most: int | None = None

    def __post_init__(self) -> None:
        if not self.rare >= 0 or (self.most is not None and self.most < 1):
            raise ValueError(
                f"levels are pooled below a weight from 0 on and beyond a number from 1 on, got {self}"
            )

    @property
    def on(self) -> bool:
        return self.rare > 0 or self.most is not None

    def kept(self, mass: Array) -> Array:
        """Which levels of these weights stay, (levels,) booleans."""
        if not self.on:
            return np.ones(len(mass), dtype=bool)
        stays = np.zeros(len(mass), dtype=bool)
        stays[np.argsort(-mass, kind="stable")[: self.most]] = True
        return stays & (mass >= self.rare)

"""Many columns as few: the directions along which a whole table varies most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.dense import Dense
from calibayes.encoders.numbers import DataIndependent, Encoder
from calibayes.tables.read import Table


@dataclass(frozen=True)
class PrincipalComponents(DataIndependent):
    """The principal components of another encoder's columns, each with variance 1.

    Parameters
    ----------
    most : int, default=64
        Number of components, those of largest variance; fewer where the columns have no more.
    inner : Encoder
        Of complete numbers.
    """

    most: int = 64
    inner: Encoder = field(default_factory=Dense)
    indices: tuple[int, ...] = ()
    mean: Array = field(default_factory=lambda: np.zeros(0))
    directions: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """(columns, components)"""

    data_dependence = "principal components are found in the training rows"

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"a table needs at least one component, got {self.most}")

    def fit(
        self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None
    ) -> PrincipalComponents:
        inner = self.inner.fit(table, indices, weight, codes)
        x = inner.encode(table)
        mean = weight @ x / weight.sum()
        away = (x - mean) * np.sqrt(weight / weight.sum())[:, None]
        variances, vectors = np.linalg.eigh(away.T @ away)
        order = np.argsort(-variances, kind="stable")[: self.most]
        order = order[variances[order] > 1e-10 * max(variances[-1], 1e-300)]
        order = order if len(order) else np.array([len(variances) - 1])
        found = vectors[:, order] / np.sqrt(np.where(variances[order] > 0, variances[order], 1.0))
        return replace(self, inner=inner, indices=tuple(indices), mean=mean, directions=found)

    def encode(self, table: Table) -> Array:
        return (self.inner.encode(table) - self.mean) @ self.directions

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        raise ValueError("components are not turned back into a table: sample another model")

    def layout(self) -> Mapping[str, Any]:
        d = self.directions.shape[1]
        names = tuple(f"component {number + 1}" for number in range(d))
        return {"columns": names, "center": np.zeros(d), "variance": np.ones(d)}

    def unite(self, other: PrincipalComponents) -> tuple[PrincipalComponents, None, None]:
        raise ValueError("components that were found apart cannot be added up")

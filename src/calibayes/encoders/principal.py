"""Principal components of encoded columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.dense import Dense
from calibayes.encoders.encoder import Encoder, FixedLayout
from calibayes.tables.table import Table


@dataclass(frozen=True)
class PrincipalComponents(FixedLayout):
    """The leading principal components of the columns of another encoder, as in `PCA(whiten=True)` of scikit-learn.

    The encoded columns are uncorrelated over the training rows, with mean 0 and variance 1 (unless ``whiten`` is False),
    in descending order of the variance that they explain. Components whose variance is below 1e-10 of the largest are left
    out. With n rows there are fewer than n components: all of them span the rows of the table.

    Parameters
    ----------
    most : int, default=64
        Largest number of components.
    inner : Encoder, default=Dense()
        An encoder of numbers without missing values.
    whiten : bool, default=True
        Whether to divide the components by their standard deviations. Without it distances between rows stay the same.
    """

    most: int = 64
    inner: Encoder = field(default_factory=Dense)
    whiten: bool = True
    indices: tuple[int, ...] = ()
    mean: Array = field(default_factory=lambda: np.zeros(0))
    directions: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """Eigenvectors, divided by their standard deviations if whitened, (inner columns, components)."""
    variance: Array = field(default_factory=lambda: np.zeros(0))
    """Of each component over the training rows."""

    mixes_columns = True
    data_dependence = "principal components are found in the training rows"

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"the number of components (most) must be at least one, got {self.most}")

    def fit(
        self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None
    ) -> PrincipalComponents:
        inner = self.inner.fit(table, indices, weight, codes)
        x = inner.encode(table)
        mean = weight @ x / weight.sum()
        centered = (x - mean) * np.sqrt(weight / weight.sum())[:, None]
        variances, vectors = _variances_and_directions(centered)
        order = np.argsort(-variances, kind="stable")[: self.most]
        order = order[variances[order] > 1e-10 * max(variances[-1], 1e-300)]
        order = order if len(order) else np.array([len(variances) - 1])
        directions, variance = vectors[:, order], variances[order]
        if self.whiten:
            directions, variance = (
                directions / np.sqrt(np.where(variance > 0, variance, 1.0)),
                np.ones(len(order)),
            )
        return replace(
            self, inner=inner, indices=tuple(indices), mean=mean, directions=directions, variance=variance
        )

    def encode(self, table: Table) -> Array:
        return (self.inner.encode(table) - self.mean) @ self.directions

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        raise ValueError("principal components cannot be decoded into a table: sample from another model")

    def layout(self) -> Mapping[str, Any]:
        d = self.directions.shape[1]
        names = tuple(f"component {number + 1}" for number in range(d))
        return {"columns": names, "center": np.zeros(d), "variance": self.variance}

    def unite(self, other: PrincipalComponents) -> tuple[PrincipalComponents, None, None]:
        raise ValueError(
            "models of principal components cannot be merged: each was fitted with its own components"
        )


def _variances_and_directions(centered: Array) -> tuple[Array, Array]:
    """Ascending variances and their directions, (d, directions), of centered rows (n, d); no (d, d) matrix if n < d."""
    n, d = centered.shape
    if n < d:
        _, roots, rows = np.linalg.svd(centered, full_matrices=False)
        return roots[::-1] ** 2, rows[::-1].T
    variances, vectors = np.linalg.eigh(centered.T @ centered)
    return variances, vectors

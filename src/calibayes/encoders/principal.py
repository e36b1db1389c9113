"""Principal components of encoded columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_columns, require_finite, require_number
from calibayes.encoders.dense import Dense
from calibayes.encoders.encoder import Derived, Encoder, FixedLayout, ImputesTraining, verify_nested
from calibayes.kernels import gaussian_density
from calibayes.tables.summary import TableSummary
from calibayes.tables.table import Table

LEAST_NOISE = 1e-3
"""Least variance of the noise, as a share of the average variance of the inner columns, and in their units."""


@dataclass(frozen=True)
class PrincipalComponents(FixedLayout):
    """The leading principal components of the columns of another encoder, as in `PCA(whiten=True)` of scikit-learn.

    The encoded columns are uncorrelated over the training rows, with mean 0 and variance 1 (unless ``whiten`` is False),
    in descending order of the variance that they explain. Components whose variance is below 1e-10 of the largest are left
    out. Of more than 131,072 training rows, about as many are used, drawn by row number. With n rows there are fewer than n components: all of them span the rows of the table.

    Where the inner encoder leaves a value missing in a new row, it is replaced by its conditional mean given the known
    ones, in a Gaussian model of the components and uncorrelated noise (probabilistic principal components).

    Parameters
    ----------
    most : int, default=64
        Largest number of components.
    inner : Encoder, default=Dense()
        An encoder of numbers that has no missing values in training rows.
    whiten : bool, default=True
        Whether to divide the components by their standard deviations. Without it distances between rows stay the same.

    Examples
    --------
    >>> from calibayes import LinearDiscriminantAnalysis
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> LinearDiscriminantAnalysis(encoder=PrincipalComponents(2)).fit(X, y).score(X, y) > 0.85
    True
    """

    most: int = 64
    inner: Encoder = field(default_factory=Dense)
    whiten: bool = True
    indices: tuple[int, ...] = ()
    mean: Array = field(default_factory=lambda: np.zeros(0))
    directions: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """Eigenvectors, divided by their standard deviations if whitened, (inner columns, components)."""
    variances: Array = field(default_factory=lambda: np.zeros(0))
    """Variances of the components before scaling, (components,)."""
    noise: float = 1.0
    """Average variance of the inner columns that the components do not explain."""

    data_dependence = "principal components are found in the training rows"

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"the number of components (most) must be at least one, got {self.most}")

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> PrincipalComponents:
        inner, (table, weight, _) = self.inner.fit(summary, indices), summary.sample
        x = inner.encode(table)
        mean = weight @ x / weight.sum()
        centered = (x - mean) * np.sqrt(weight / weight.sum())[:, None]
        variances, vectors = _variances_and_directions(centered)
        order = np.argsort(-variances, kind="stable")[: self.most]
        order = order[variances[order] > 1e-10 * max(variances[-1], 1e-300)]
        order = order if len(order) else np.array([len(variances) - 1])
        positive = np.where(variances[order] > 0, variances[order], 1.0)
        total, d = float(np.sum(centered**2)), centered.shape[1]
        return replace(
            self,
            inner=inner,
            indices=tuple(indices),
            mean=mean,
            directions=vectors[:, order] / np.sqrt(positive) if self.whiten else vectors[:, order],
            variances=positive,
            noise=max((total - float(variances[order].sum())) / d, LEAST_NOISE * total / d, LEAST_NOISE),
        )

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require_columns("indices", self.indices)
        inner = verify_nested(self.inner, self.indices, is_codes=False)
        d, count = len(inner.get("columns", self.indices)), np.size(self.variances)
        require_finite("variances", self.variances, (count,))
        require(bool((self.variances > 0).all()), "variances must be positive")
        require(count <= self.most and (count > 0) == (d > 0), f"there are {count} components of {d} columns")
        require_finite("mean", self.mean, (d,))
        require_finite("directions", self.directions, (d, count))
        require_number("noise", self.noise, np.finfo(np.float64).tiny)

    def for_new_rows(self) -> PrincipalComponents:
        inner = self.inner
        return replace(self, inner=inner.for_new_rows()) if isinstance(inner, ImputesTraining) else self

    def encode(self, table: Table) -> Array:
        return self._components(self.inner.encode(table) - self.mean)

    def encode_known(self, table: Table, known: Array) -> Array:
        sources = self.inner.sources if isinstance(self.inner, Derived) else range(len(self.indices))
        centered = self.inner.encode(table) - self.mean
        rows = np.where(known[:, None, np.array(sources)], centered, np.nan)
        return self._components(rows.reshape(-1, centered.shape[1]))

    def _components(self, centered: Array) -> Array:
        """The components of rows (n, inner columns), with missing values imputed from the known ones."""
        if np.isnan(np.min(centered, initial=np.inf)):
            scale = self.variances if self.whiten else np.sqrt(self.variances)
            centered = gaussian_density.impute_from_factors(centered, self.directions * scale, self.noise)
        return np.asarray(centered @ self.directions)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        raise ValueError("principal components cannot be decoded into a table: sample from another model")

    def layout(self) -> Mapping[str, Any]:
        d = self.directions.shape[1]
        names = tuple(f"component {number + 1}" for number in range(d))
        return {
            "columns": names,
            "center": np.zeros(d),
            "variance": np.ones(d) if self.whiten else self.variances,
        }

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

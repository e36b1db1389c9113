"""Kernel densities of the classes over all columns of a table together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.reading import Rows
from calibayes.estimators.splits import units
from calibayes.kernels import joint_kernel
from calibayes.kernels.relevance import relevance
from calibayes.tables.dense import Dense
from calibayes.tables.read import Table

UNKNOWN = 0.05
"""A row of which the class is not known, at the place of the nearest one: so much of it counts for all classes."""
LEAST_RELEVANCE = 0.02
"""What a column counts at least, in shares of the most relevant one: it may yet matter together with others."""
LEAST_OF_CLASS = 50
"""Rows of a class that are kept at least, if there are so many."""


@dataclass(frozen=True)
class JointDensity:
    """Rows that were kept, in units in which columns count by how much they say of the class.

    Attributes
    ----------
    encoder : Dense
    scale : (d,) array
        What the encoded columns are multiplied with.
    kept : (m, d) array
    shares : (m, k) array
        The weight that each kept row stands for, in its class.
    square : float
        The square of the widest bandwidth: the variance of all rows, added up over columns.
    """

    encoder: Dense
    scale: Array
    kept: Array
    shares: Array
    square: float

    @property
    def prior(self) -> Array:
        return np.asarray(self.shares.sum(axis=0) / self.shares.sum())

    def encode(self, table: Table) -> Array:
        return self.encoder.encode(table) * self.scale

    def log_posteriors(self, table: Table) -> Array:
        """log p(class | x) for each bandwidth, (steps, n, k)."""
        return self._smoothed(joint_kernel.votes(self.encode(table), self.kept, self.shares, self.square))

    def log_posterior(self, table: Table, step: int) -> Array:
        """That of one bandwidth, (n, k)."""
        found = joint_kernel.votes_at(self.encode(table), self.kept, self.shares, self.square / 2.0**step)
        return self._smoothed(found)

    def left_out(self, most: int) -> tuple[Array, Array]:
        """log p(class | x) of some kept rows, each left out, for each bandwidth, and which they are."""
        chosen = np.arange(min(most, len(self.kept)))
        found = joint_kernel.votes(self.kept[chosen], self.kept, self.shares, self.square, chosen)
        return self._smoothed(found), chosen

    def log_density(self, table: Table, step: int) -> Array:
        """Log density of the columns as they are seen here, (n,)."""
        weight = self.shares.sum(axis=1) / self.shares.sum()
        return joint_kernel.log_densities(self.encode(table), self.kept, weight, self.square / 2.0**step)

    def terms(self, table: Table, step: int) -> tuple[tuple[str, ...], Array]:
        """Columns, the most relevant first, and what log p(class | x) changes as each comes in, (n, k, columns)."""
        sources, size = np.array(self.encoder.sources), self.scale**2
        owners = sorted(set(sources.tolist()), key=lambda owner: -size[sources == owner].sum())
        groups = [np.flatnonzero(sources == owner).tolist() for owner in owners]
        found = joint_kernel.votes_by_columns(
            self.encode(table), self.kept, self.shares, self.square / 2.0**step, groups
        )
        start = np.broadcast_to(np.log(self.prior), (1, *found.shape[1:]))
        names = tuple(table.names[self.encoder.indices[owner]] for owner in owners)
        return names, np.diff(np.concatenate([start, self._smoothed(found)]), axis=0).transpose(1, 2, 0)

    def _smoothed(self, votes: Array) -> Array:
        whole = votes + UNKNOWN * self.shares.sum() / len(self.shares) * self.prior
        return np.asarray(np.log(whole) - np.log(whole.sum(axis=-1, keepdims=True)))


def joint_density(rows: Rows, k: int, most: int, seed: int) -> JointDensity:
    """Densities of some rows: all, or about ``most`` of them, each class with its weight."""
    rows = units(rows, seed)
    rows = rows._replace(weight=rows.weight / rows.weight.max())
    chosen = _some(rows.codes, most)
    shares = np.eye(k)[rows.codes] * rows.weight[:, None]
    held = shares[chosen]
    held *= shares.sum(axis=0) / np.maximum(held.sum(axis=0), np.finfo(np.float64).tiny)
    encoder = Dense().fit(rows.table, range(len(rows.table.names)), rows.weight)
    x = encoder.encode(rows.table.rows(chosen))
    told = relevance(x, held)
    top = float(told.max())
    scale = np.sqrt(np.maximum(told / top, LEAST_RELEVANCE)) if top > 0 else np.ones(len(told))
    return JointDensity(encoder, scale, x * scale, held, float(np.sum(scale**2)))


def _some(codes: Array, most: int) -> Array:
    """Positions of the rows to keep: the first of each class."""
    share = min(most / len(codes), 1.0)
    kept = []
    for code in np.unique(codes):
        mine = np.flatnonzero(codes == code)
        kept.append(mine[: max(int(np.ceil(share * len(mine))), LEAST_OF_CLASS)])
    return np.sort(np.concatenate(kept))

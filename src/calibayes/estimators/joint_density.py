"""Kernel densities of the classes over all columns of a table together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.dense import Dense
from calibayes.estimators.patience import lower
from calibayes.estimators.reading import Rows
from calibayes.estimators.splits import unit_weight, units
from calibayes.kernels.density import joint_kernel
from calibayes.kernels.density.joint_kernel import KernelRows, Votes, path_to, posteriors
from calibayes.kernels.density.relevance import relevance
from calibayes.tables.read import Table

BACKINGS = np.array([0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0])
"""Rows' worth of what wider kernels say, to choose from."""
LEAST_RELEVANCE = 0.02
"""What a column counts at least, in shares of the most relevant one: it may yet matter together with others."""
LEAST_OF_CLASS = 50
"""Rows of a class that are kept at least, if there are so many."""
MOST_SUMS = 2**22
"""Sums of kernels that are held at a time: 32 megabytes."""
MOST_ROWS, LEAST_ROWS, MOST_CELLS = 20_000, 10_000, 1e6
"""Rows that are kept if nobody says how many: so many, fewer where they would have more cells, but not below the second."""


class Choice(NamedTuple):
    """How narrow kernels are, and how many rows stand behind them."""

    narrowing: int
    backing: float


@dataclass(frozen=True)
class JointDensity:
    """Rows that were kept, in units in which columns count by how much they say of the class.

    Attributes
    ----------
    encoder : Dense
    scale : (d,) array
        What the encoded columns are multiplied with.
    kept : KernelRows
        A row that was seen once has weight one, times class weights, and more where rows stand for others.
    square : float
        The square of the widest bandwidth: the variance of all rows, added up over columns.
    """

    encoder: Dense
    scale: Array
    kept: KernelRows
    square: float

    @property
    def codes(self) -> Array:
        """The class of each kept row."""
        return np.repeat(np.arange(len(self.kept.ends) - 1), np.diff(self.kept.ends))

    @property
    def prior(self) -> Array:
        sums = np.bincount(self.codes, self.kept.weight, minlength=len(self.kept.ends) - 1)
        return np.asarray(sums / sums.sum())

    def encode(self, table: Table) -> Array:
        return self.encoder.encode(table) * self.scale

    def votes(self, table: Table, which: Array) -> Votes:
        """What lies about some rows of a table, for every bandwidth."""
        return joint_kernel.votes(self.encoder.encode(table)[which] * self.scale, self.kept, self.square)

    def log_posterior(self, table: Table, choice: Choice) -> Array:
        """log p(class | x), (n, k)."""
        x, steps = self.encode(table), path_to(choice.narrowing)

        def told(part: slice) -> Array:
            return log_posterior(
                joint_kernel.votes(x[part], self.kept, self.square, steps), self.prior, choice
            )

        return np.concatenate([told(part) for part in self._parts(len(x), len(steps))])

    def _parts(self, n: int, sums: int) -> Iterator[slice]:
        """Rows of which so many sums a class are not too many."""
        rows = max(int(MOST_SUMS / (sums * len(self.prior))), 1)
        return (slice(start, start + rows) for start in range(0, max(n, 1), rows))

    def left_out(self, most: int) -> tuple[Votes, Array]:
        """What lies about some kept rows, each left out, and which they are."""
        some = evenly(len(self.codes), most)
        return joint_kernel.votes(self.kept.rows[some], self.kept, self.square, own=some), some

    def log_density(self, table: Table, choice: Choice) -> Array:
        """Log density of the columns as they are seen here, (n,): that of all bandwidths that have a say, averaged."""
        squares = [self.square / 2.0**step for step in path_to(choice.narrowing)]
        return joint_kernel.log_densities(self.encode(table), self.kept, squares)

    def terms(self, table: Table, choice: Choice) -> tuple[tuple[str, ...], Array]:
        """Columns, the most relevant first, and what log p(class | x) changes as each comes in, (n, k, columns)."""
        sources, size = np.array(self.encoder.sources), self.scale**2
        owners = sorted(set(sources.tolist()), key=lambda owner: -size[sources == owner].sum())
        groups = [np.flatnonzero(sources == owner).tolist() for owner in owners]
        x, steps = self.encode(table), path_to(choice.narrowing)
        names = tuple(table.names[self.encoder.indices[owner]] for owner in owners)

        def told(part: slice) -> Array:
            found = joint_kernel.votes_by_columns(x[part], self.kept, self.square, steps, groups)
            along = [log_posterior(votes, self.prior, choice) for votes in found]
            start = np.broadcast_to(np.log(self.prior), along[0].shape)
            return np.diff(np.stack([start, *along], axis=2), axis=2)

        parts = self._parts(len(x), len(steps) * len(groups))
        return names, np.concatenate([told(part) for part in parts])


def log_posterior(found: Votes, prior: Array, choice: Choice) -> Array:
    """log p(class | x) by the votes up to the bandwidth that was chosen, (n, k)."""
    along = zip(found.steps, posteriors(found, prior, np.array([choice.backing])), strict=True)
    return np.asarray(np.log(next(told for step, told in along if step == choice.narrowing)[0]))


def judged(
    found: Votes, prior: Array, codes: Array, weight: Array, backings: Array = BACKINGS
) -> tuple[Array, Array]:
    """Log losses and errors of rows by the votes of others, (backings, steps) each."""
    rows, share = np.arange(len(codes)), weight / weight.sum()
    losses, errors = np.empty((2, len(backings), len(found.steps)))
    for place, told in enumerate(posteriors(found, prior, backings)):
        losses[:, place] = -np.log(told[:, rows, codes]) @ share
        errors[:, place] = (told.argmax(axis=2) != codes) @ share
    return losses, errors


def chosen(losses: Array) -> tuple[int, int]:
    """Which backing and which step to take: the most backing that does no worse than the best, and its best bandwidth."""
    least = losses.min(axis=1)
    backing = int(np.flatnonzero(~lower(least.min(), least))[-1])
    return backing, int(np.argmin(losses[backing]))


def evenly(n: int, most: int) -> Array:
    """Positions of all rows, or of about so many, from the first to the last."""
    return np.arange(n) if n <= most else np.unique(np.linspace(0, n - 1, most).astype(int))


def joint_density(rows: Rows, k: int, most: int | None, seed: int) -> JointDensity:
    """Densities of some rows: all, or about ``most`` of them, each class with its weight."""
    encoder = Dense().fit(rows.table, range(len(rows.table.names)), rows.weight)
    if most is None:
        most = min(MOST_ROWS, max(int(MOST_CELLS / max(len(encoder.names), 1)), LEAST_ROWS))
    if most < len(rows.codes):
        rows = units(rows, seed)  # in an order that is as good as random
        drawn = _some(rows.codes, most)
        x = encoder.encode(rows.table.rows(drawn))
    else:
        drawn = np.argsort(rows.codes, kind="stable")
        x = encoder.encode(rows.table)[drawn]  # which others may want as well
    codes, weight = rows.codes[drawn], rows.weight[drawn] / unit_weight(rows)
    share = weight * _shortfall(rows, codes, weight, k)
    scale = _scale(relevance(x, np.eye(k)[codes] * share[:, None], float(weight.sum())))
    ends = tuple(np.searchsorted(codes, np.arange(k + 1)).tolist())
    kept = KernelRows(x * scale, share * (weight.sum() / share.sum()), ends)
    return JointDensity(encoder, scale, kept, float(np.sum(scale**2)))


def _shortfall(rows: Rows, codes: Array, weight: Array, k: int) -> Array:
    """What the weight of drawn rows is multiplied with, so that classes are as frequent as among all, (n,)."""
    whole = np.bincount(rows.codes, rows.weight / rows.weight.max(), minlength=k)
    part = np.bincount(codes, weight, minlength=k)
    return np.asarray((whole / np.maximum(part, np.finfo(np.float64).tiny))[codes])


def _scale(told: Array) -> Array:
    """What columns are multiplied with that say so much of the class."""
    top = float(told.max())
    return np.sqrt(np.maximum(told / top, LEAST_RELEVANCE)) if top > 0 else np.ones(len(told))


def _some(codes: Array, most: int) -> Array:
    """Positions of the rows to keep, class by class: the first of each."""
    share = min(most / len(codes), 1.0)
    kept = []
    for code in np.unique(codes):
        mine = np.flatnonzero(codes == code)
        kept.append(mine[: max(int(np.ceil(share * len(mine))), LEAST_OF_CLASS)])
    return np.concatenate(kept)

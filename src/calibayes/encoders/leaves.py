"""The leaves of trees as levels: columns that separate what a model of the classes leaves unexplained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_array, require_columns, require_finite, require_positions
from calibayes.encoders.encoder import FixedLayout
from calibayes.encoders.ordered_bytes import OrderedBytes
from calibayes.kernels.levels.places import places_in_class
from calibayes.kernels.partitions.forest import ONE_LEAF, Forest, forest_of, leaf_codes
from calibayes.kernels.partitions.growth import (
    GrownForest,
    GrowthSettings,
    Report,
    Sample,
    by_first_row,
    fold_of,
    grow_forests,
)
from calibayes.kernels.partitions.path_terms import path_terms
from calibayes.kernels.posterior.logspace import log_normalize
from calibayes.tables.summaries.summary import TableSummary
from calibayes.tables.table import Table

HELD_OUT = 10
"""Of each class one row in so many is held out, to find out how many trees to grow."""
FEW_ROWS, FOLDS = 500, 5
"""Of fewer rows a tenth is too few to tell: so many folds are held out in turn, and then trees are grown on all rows."""


def _silent(trees: int, loss: float) -> bool:
    return False


@dataclass(frozen=True)
class Leaves(FixedLayout):
    """Trees grown on the residuals of the classes; each tree becomes a column, whose levels are its leaves.

    One tree for all classes is grown at a time, where the residuals Y - P of the trees before it can still be told apart
    (see `calibayes.kernels.partitions.growth`). A tenth of the rows of each class, evenly spaced, is held out: growth ends
    when their log loss falls no more. Of fewer than 500 rows, five folds are held out in turn, and then as many trees as
    are best for all of them are grown on all rows. With fewer than five rows in every class none is held out, and at most
    ``settings.patience`` trees are grown. If no split gains, there is one tree with one leaf.

    A missing value goes to the side where it gains; where none was missing in a node, to the side with more training rows.
    Decoding is not possible.

    Parameters
    ----------
    settings : GrowthSettings, default=GrowthSettings()
    monotone : tuple of (int, int), default=()
        Position of a column in the table, and 1 (-1) if the log odds of the second of two classes may only rise (fall)
        with it.

    Examples
    --------
    >>> from calibayes import CalibratedTrees
    >>> X, y = [[row % 7, row % 5] for row in range(400)], [int(row % 7 > 3) for row in range(400)]
    >>> CalibratedTrees(random_state=0).fit(X, y).score(X, y)  # its encoder is Leaves
    1.0
    """

    settings: GrowthSettings = field(default_factory=GrowthSettings)
    monotone: tuple[tuple[int, int], ...] = ()
    indices: tuple[int, ...] = ()
    bytes: OrderedBytes = field(default_factory=OrderedBytes)
    forest: Forest = field(default_factory=lambda: forest_of([ONE_LEAF]))
    log_factor: Array = field(default_factory=lambda: np.zeros((2, 1)))
    """The factor by which growth has multiplied p(leaf | class), as a logarithm, (k, leaves of all trees)."""
    log_start: Array = field(default_factory=lambda: np.zeros(2))
    """Log class probabilities with which growth has begun, (k,)."""
    losses: Array = field(default_factory=lambda: np.zeros(1))
    """Log loss of the held-out rows before the first tree and after each, also of trees that were left out."""

    data_dependence = "trees are grown on the training rows"

    def fit(
        self, summary: TableSummary, indices: Sequence[int], report: Report = _silent, unit: float = 1.0
    ) -> Leaves:
        """This encoder fitted to the columns at ``indices``; weights are divided by ``unit``, the weight of one row."""
        codes, weight = summary.codes, summary.weight / unit
        if codes is None:
            raise ValueError("Leaves needs the class codes of the rows")
        encoder = OrderedBytes().fit(summary, indices)
        columns, labeled = summary.encoded(encoder), codes >= 0
        mass = np.bincount(codes[labeled], weight[labeled], minlength=1)
        if len(mass) < 2:
            raise ValueError("Leaves needs rows of two classes")
        log_start = np.log(np.maximum(mass / mass.sum(), np.finfo(np.float64).tiny))
        order = by_first_row(codes[labeled], len(log_start))
        begin = np.broadcast_to(log_start[order], (len(codes), len(log_start)))
        sample = Sample(columns, np.argsort(order)[codes], weight, begin).only(labeled)
        sign = 1 if order[0] == 0 else -1  # the direction is that of the second of two classes in this order
        grown, losses = _grown(sample, self.settings, sign * self._direction(indices), report)
        return replace(
            self,
            indices=tuple(indices),
            bytes=encoder,
            forest=grown.forest if grown.forest.count else forest_of([ONE_LEAF]),
            log_factor=grown.log_factor[np.argsort(order)]
            if grown.forest.count
            else np.zeros((len(log_start), 1)),
            log_start=log_start,
            losses=losses,
        )

    def _direction(self, indices: Sequence[int]) -> Array:
        signs = dict(self.monotone)
        return np.array([signs.get(j, 0) for j in indices], dtype=np.int8)

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require_columns("indices", self.indices)
        require(self.forest.count >= 1, "there must be a tree")
        require(self.bytes.indices == self.indices, "the bytes are those of other columns")
        require_positions("column", self.forest.column[self.forest.column >= 0], len(self.indices))
        k = len(require_finite("log_start", self.log_start, (None,)))
        require(k >= 2, "log_start has fewer than two classes")
        require_finite("log_factor", self.log_factor, (k, sum(self.forest.leaves)))
        require(len(require_array("losses", self.losses, (None,))) >= 1, "losses are empty")
        for position, sign in self.monotone:
            require(position >= 0 and sign in (-1, 1), "monotone must be pairs of a column and 1 or -1")

    def encode(self, table: Table) -> Array:
        return leaf_codes(self.bytes.encode(table), self.forest)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        raise ValueError("leaves of trees cannot be decoded into a table: sample from another model")

    def layout(self) -> Mapping[str, Any]:
        names = tuple(f"tree {number + 1}" for number in range(self.forest.count))
        return {"columns": names, "levels": self.forest.leaves}

    def unite(self, other: Leaves) -> tuple[Leaves, None, None]:
        is_same = all(
            np.array_equal(getattr(self.forest, name), getattr(other.forest, name))
            for name in ("column", "most", "missing_left", "children", "first")
        )
        if not is_same or not self.bytes.same_codes(other.bytes):
            raise ValueError("models with different trees cannot be merged")
        return self, None, None

    def path_terms(self, table: Table, values: Array, mass: Array) -> tuple[Array, Array]:
        return path_terms(self.bytes.encode(table), self.forest, values, mass)

    def start_probabilities(self, mass: Array) -> tuple[Array, Array]:
        """Log p(leaf | class) (k, leaves) and log p(class) (k,) with which the posterior is that of the grown trees.

        ``mass`` (leaves,) are the weights of the training rows in each leaf: p(leaf | class) is their share times the
        factor of the leaf, normalized; what normalizes it belongs to the class.
        """
        return self.normalized(
            self.log_factor + np.log(np.maximum(mass, np.finfo(np.float64).tiny)), self.log_start
        )

    def normalized(self, log_leaf: Array, log_class: Array) -> tuple[Array, Array]:
        """Log p(leaf | class) (k, leaves) and log p(class) (k,) in proportion to numbers that do not sum to 1."""
        first = np.concatenate([[0], np.cumsum(self.forest.leaves)]).astype(np.intp)
        trees = [log_normalize(log_leaf[:, a:b]) for a, b in pairwise(first)]
        log_probability = np.concatenate([probability for probability, _ in trees], axis=1)
        shifts = np.sum([evidence for _, evidence in trees], axis=0)
        return log_probability, log_normalize((log_class + shifts)[None])[0][0]


def _grown(
    sample: Sample, settings: GrowthSettings, direction: Array, report: Report
) -> tuple[GrownForest, Array]:
    """Trees grown on a sample, and the log loss of held-out rows by number of trees."""
    place = places_in_class(sample.labels)
    if len(place) < FEW_ROWS and place.max() >= FOLDS - 1:
        folds = [fold_of(sample, place % FOLDS == number) for number in range(FOLDS)]
        losses = grow_forests(folds, settings, direction, report).losses
        settings, held_out = replace(settings, trees=_best_round(losses)), np.zeros(len(place), dtype=bool)
        return grow_forests([fold_of(sample, held_out)], settings, direction).forests[0], losses
    held_out = place % HELD_OUT == HELD_OUT // 2 - 1
    if not sample.weight[held_out].any():
        settings = replace(settings, trees=min(settings.trees, settings.patience))
    (grown,), losses = grow_forests([fold_of(sample, held_out)], settings, direction, report)
    return grown, losses


def _best_round(losses: Array) -> int:
    return 0 if np.isnan(losses).all() else int(np.nanargmin(losses))

"""Grow trees round by round, each where the residuals that the trees before it leave can still be told apart.

A round adds a tree to a model with log scores F (n, k) and posterior P: the tree splits the rows where the sums of
W = Y - P differ most, and the log score of class c moves by ``rate * sum(W) / (sum(P (1 - P)) + prior)`` in each leaf. This
is one damped step of Newton's method on the log loss, and one calibration step on the counts of a column whose levels are
the leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require_number
from calibayes.kernels import tree_nodes
from calibayes.kernels.dispatch import map_items, map_ranges, most_threads, reused_threads
from calibayes.kernels.forests import (
    MANY_CELLS,
    MOST_LEAVES,
    Forest,
    TreeNodes,
    forest_of,
    grow_tree,
    leaf_codes,
)
from calibayes.kernels.level_counts import look_up, offsets

MOST_TREES = 100_000
"""Largest number of trees."""
LARGEST_STEP = 4.0
"""Largest full step of a log score, before it is multiplied by the rate."""
MANY_TREES, FASTER, FASTEST = 100, 1.5, 3.0
"""After each hundred trees the rate grows by a half, to three times what it was at most."""
LEAST_GAIN = 1e-3
"""Growth ends if the held-out log loss falls by a smaller share than this in as many rounds as its patience."""
LATEST = 6
"""One round in so many, the last ones, is the patience if these are more: an interaction is found once in many rounds."""


@dataclass(frozen=True)
class GrowthSettings:
    """How trees are grown.

    Parameters
    ----------
    trees : int, default=1000
        Largest number of trees.
    leaves : int, default=31
        Largest number of leaves of a tree, from 2 to 127.
    rate : float, default=0.1
        Share of a full step that a tree moves the log scores; after each hundred trees it grows by a half, up to three
        times.
    prior : float, default=5
        Precision of a normal prior, with mean 0, of the log factors of a leaf, as a sum of variances P (1 - P) of rows.
    least_variance : float, default=1
        Smallest sum of these variances in a leaf, over all classes.
    patience : int, default=20
        Number of trees without a clear gain on held-out rows after which growth ends; after many trees a sixth of them.
    """

    trees: int = 1000
    leaves: int = 31
    rate: float = 0.1
    prior: float = 5.0
    least_variance: float = 1.0
    patience: int = 20

    def __post_init__(self) -> None:
        limits = {"trees": (0, MOST_TREES), "leaves": (2, MOST_LEAVES), "rate": (1e-6, 1.0)}
        limits |= {"prior": (1e-6, 1e9), "least_variance": (1e-6, 1e12), "patience": (1, MOST_TREES)}
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"{name} must be from {least:g} to {most:g}, got {value!r}")

    def verify(self) -> None:
        """Raises ValueError unless the numbers are finite; their ranges are checked when it is made."""
        for name in ("rate", "prior", "least_variance"):
            require_number(name, getattr(self, name), 1e-6)


def full_steps(sums: tree_nodes.LeafSums, prior: float) -> Array:
    """The full step of each leaf and class, (leaves, k)."""
    return np.asarray(np.clip(sums.residual / (sums.variance + prior), -LARGEST_STEP, LARGEST_STEP))


class GrowthRows(NamedTuple):
    """Rows with labels, and the log scores (n, k) that growth begins with."""

    columns: tree_nodes.ByteColumns
    labels: Array
    weight: Array
    log_scores: Array

    def only(self, rows: Array) -> GrowthRows:
        """The rows where ``rows`` is true."""
        return GrowthRows(self.columns.rows(rows), *(array[rows] for array in self[1:]))


def by_first_row(labels: Array, k: int) -> Array:
    """The classes in the order of their first rows, (k,): in this order, sums over classes do not depend on their names."""
    distinct, first = np.unique(labels, return_index=True)
    position = np.full(k, len(labels))
    position[distinct] = first
    return np.argsort(position, kind="stable")


class GrowthFold(NamedTuple):
    """Rows to grow trees on, and rows that tell how many."""

    training: GrowthRows
    held_out: GrowthRows


def fold_of(sample: GrowthRows, held_out: Array) -> GrowthFold:
    """The fold that holds out the rows where ``held_out`` (n,) is true."""
    return GrowthFold(sample.only(~held_out), sample.only(held_out))


class GrownForest(NamedTuple):
    """Trees and the log factors of their leaves."""

    forest: Forest
    log_factor: Array
    """Of each class and leaf, the leaves of all trees side by side, (k, leaves)."""
    mass: Array
    """Weights of the training rows in these leaves, (leaves,)."""
    held_out_scores: Array
    """Log scores of the held-out rows, (n, k)."""


class GrownForests(NamedTuple):
    """The trees of each fold, and the log loss of all held-out rows together."""

    forests: list[GrownForest]
    losses: Array
    """Before the first round, and after each, also of rounds whose trees were left out; NaN without held-out rows."""


@dataclass
class Growth:
    """Trees while they are grown on the rows of a fold."""

    fold: GrowthFold
    settings: GrowthSettings
    direction: Array
    trees: list[TreeNodes] = field(default_factory=list)
    log_factors: list[Array] = field(default_factory=list)
    """Of each tree, (leaves, k)."""
    masses: list[Array] = field(default_factory=list)
    """Weights of the training rows in the leaves of each tree, (leaves,)."""
    held_out_scores: Array = field(init=False)
    """Log scores of the held-out rows, (n, k)."""

    def __post_init__(self) -> None:
        columns, _, weight, log_scores = self.fold.training
        self._scale, k = tree_nodes.scale_of(weight), log_scores.shape[1]
        self._rows = np.arange(columns.n, dtype=np.int32)
        self._fractions = columns.fractions()
        prior = self.settings.prior * self._scale
        least = self.settings.least_variance * self._scale * tree_nodes.packed_classes(k) / k
        self._options = tree_nodes.SplitOptions(columns.order(), self.direction, prior, least)
        self._scores, self.held_out_scores = log_scores, self.fold.held_out.log_scores
        self.remember()

    def advance(self) -> bool:
        """Grow a tree and apply it; False if no split gains."""
        columns, labels, weight, _ = self.fold.training
        packed = tree_nodes.packed_residuals(self._scores, labels, weight, self._scale, self._fractions)
        grown = grow_tree(columns, self._rows, packed, self._options, self.settings.leaves)
        if len(grown.bounds) < 2:
            return False
        sums = tree_nodes.leaf_sums(self._scores, grown.codes, labels, weight, len(grown.bounds), self._scale)
        # Larger after many trees, since a table that gains from so many has much to learn.
        rate = self.settings.rate * min(FASTER ** (len(self.trees) // MANY_TREES), FASTEST)
        log_factor = rate * self._steps(sums, grown.bounds)
        self._scores = tree_nodes.with_factors(self._scores, grown.codes, log_factor)
        self.masses.append(sums.mass)
        self.trees.append(grown.tree)
        self.log_factors.append(log_factor)
        if self.fold.held_out.columns.n:
            codes = leaf_codes(self.fold.held_out.columns, forest_of([grown.tree]))[:, 0]
            self.held_out_scores = tree_nodes.with_factors(self.held_out_scores, codes, log_factor)
        return True

    def _steps(self, sums: tree_nodes.LeafSums, bounds: Array) -> Array:
        """The full step of each leaf and class, (leaves, k), within the bounds of the leaves."""
        steps = full_steps(sums, self.settings.prior)
        if self.direction.any():
            change = steps[:, 1] - steps[:, 0]
            excess = np.clip(change, *bounds.T) - change
            steps += np.outer(excess, [-0.5, 0.5])
        return np.asarray(steps)

    def remember(self) -> None:
        """Note that the trees so far are the best."""
        self._best, self._best_scores = len(self.trees), self.held_out_scores

    def result(self) -> GrownForest:
        """The trees up to the best round."""
        factors = [np.zeros((0, self._scores.shape[1])), *self.log_factors[: self._best]]
        log_factor = np.ascontiguousarray(np.concatenate(factors).T)
        mass = np.concatenate([np.zeros(0), *self.masses[: self._best]])
        return GrownForest(forest_of(self.trees[: self._best]), log_factor, mass, self._best_scores)


Report = Callable[[int, float], bool]
"""Called after each round with the number of rounds and the held-out log loss; a true result ends the growth."""


def silent(rounds: int, loss: float) -> bool:
    """The report that does nothing."""
    return False


def grow_forests(
    folds: Sequence[GrowthFold],
    settings: GrowthSettings,
    direction: Array | None = None,
    report: Report = silent,
) -> GrownForests:
    """Grow a tree in each fold, round by round, until the held-out rows of all folds together gain no more.

    So many rounds are used in every fold as are best for all held-out rows: the choice is less noisy than one by fold.
    ``direction`` (d,) is 1 or -1 for columns with which the log odds of the second class may only rise or fall.
    """
    signs = np.zeros(folds[0].training.columns.d, dtype=np.int8) if direction is None else direction
    growths = [Growth(fold, settings, signs) for fold in folds]
    weight = np.concatenate([fold.held_out.weight for fold in folds])
    units = tree_nodes.scale_of(weight) * tree_nodes.LOSS_UNITS
    held_out = units, int(np.floor(weight * units + 0.5).astype(np.int64).sum())
    losses, cells = [_mean_loss(growths, *held_out)], folds[0].training.columns.n * len(signs)
    # Threads share the rows of each fold if they are many and some threads would be idle otherwise, else the folds.
    one_by_one = cells >= MANY_CELLS and len(growths) % most_threads() > 0
    for_each: Callable[..., Iterable[bool]] = map if one_by_one else map_items
    with reused_threads(most_threads()):
        while len(losses) <= settings.trees and not _is_over(losses, settings.patience):
            if not any([*for_each(Growth.advance, growths)]):
                break
            losses.append(_mean_loss(growths, *held_out))
            if not losses[-1] >= min(losses[:-1]):
                for growth in growths:
                    growth.remember()
            if report(len(losses) - 1, losses[-1]):
                break
    return GrownForests([growth.result() for growth in growths], np.array(losses))


def _mean_loss(growths: Sequence[Growth], scale: float, weight: int) -> float:
    """Log loss of all held-out rows, of so much weight in units of 1 / scale: sums of whole numbers. NaN if there are none."""
    total = 0
    for growth in growths:
        _, labels, weights, _ = growth.fold.held_out
        total += tree_nodes.whole_loss(growth.held_out_scores, labels, weights, scale)
    return total / weight if weight else np.nan


def _is_over(losses: Sequence[float], patience: int) -> bool:
    """Whether the last rounds, as many as the patience or a sixth of all, have gained hardly anything on held-out rows."""
    latest = max(patience, (len(losses) - 1) // LATEST)
    if len(losses) <= latest:
        return False
    before, after = min(losses[:-latest]), min(losses[-latest:])
    return after > (1.0 - LEAST_GAIN) * before


def forest_scores(columns: tree_nodes.ByteColumns, forest: Forest, log_factor: Array) -> Array:
    """Sum over the trees of the log factors (k, leaves) at the leaves of rows, (n, k)."""
    if not forest.count:
        return np.zeros((columns.n, len(log_factor)))
    first = offsets(forest.leaves)

    def of_rows(rows: slice) -> Array:
        return look_up(leaf_codes(columns.rows(rows), forest), log_factor, first)

    return np.concatenate(map_ranges(of_rows, columns.n, forest.count))


# -- Move the log factors of the leaves of given trees by what further rows show -----------------------------


def leaf_changes(
    codes: Array,
    leaves: Sequence[int],
    labels: Array,
    weight: Array,
    log_scores: Array,
    rate: float,
    prior: float,
) -> Array:
    """Changes of the log factors, (k, leaves of all trees), tree by tree as in growth.

    Rows have leaves ``codes`` (n, trees), class codes ``labels`` (n,) and log scores (n, k) under all trees. Each tree
    takes a step on the residuals that the changes of the trees before it leave. With a negative rate, which takes rows
    away, all trees take theirs on the same residuals: these would grow from tree to tree, without bound.
    """
    scores, changes = log_scores.copy(), [np.zeros((0, log_scores.shape[1]))]
    scale = tree_nodes.scale_of(weight)
    for own, count in zip(codes.T, leaves, strict=True):
        sums = tree_nodes.leaf_sums(scores, own.astype(np.int32), labels, weight, count, scale)
        changes.append(rate * full_steps(sums, prior))
        if rate > 0:
            scores += changes[-1][own]
    return np.ascontiguousarray(np.concatenate(changes).T)

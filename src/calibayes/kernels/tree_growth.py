"""Grow trees round by round, each where the residuals that the trees before it leave can still be told apart.

A round adds a tree to a model with log scores F (n, k) and posterior P: the tree splits the rows where the sums of
W = Y - P differ most, and the log score of class c moves by ``rate * sum(W) / (sum(P (1 - P)) + prior)`` in each leaf. This
is one damped step of Newton's method on the log loss, and one calibration step on the counts of a column whose levels are
the leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require_number
from calibayes.kernels import tree_nodes
from calibayes.kernels.dispatch import map_items, map_ranges, most_threads, reused_threads
from calibayes.kernels.forests import MANY_CELLS, MOST_LEAVES, Forest, TreeNodes, forest_of, leaf_codes
from calibayes.kernels.growth_rows import FoldRows, GrowthBlocks, GrowthRows, new_growth
from calibayes.kernels.level_counts import offsets
from calibayes.kernels.row_keys import Keys
from calibayes.kernels.tree_nodes import LabeledScores, LeafSums, SplitOptions, Units, packed_classes

MOST_TREES = 100_000
"""Largest number of trees."""
LARGEST_STEP = 4.0
"""Largest full step of a log score, before it is multiplied by the rate."""
MANY_TREES, FASTER, FASTEST = 100, 1.5, 3.0
"""After each hundred trees the rate grows by a half, to three times what it was at most."""
LEAST_GAIN = 5e-4
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


def full_steps(sums: LeafSums, units: float, prior: float) -> Array:
    """The full step of each leaf and class, (leaves, k)."""
    return np.asarray(
        np.clip((sums.residual / units) / (sums.variance / units + prior), -LARGEST_STEP, LARGEST_STEP)
    )


class GrownForest(NamedTuple):
    """Trees and the log factors of their leaves."""

    forest: Forest
    log_factor: Array
    """Of each class and leaf, the leaves of all trees side by side, (k, leaves)."""
    mass: Array
    """Weights of all rows in these leaves by class, (k, leaves)."""


class GrownForests(NamedTuple):
    """The trees of each fold, and the log loss of all held-out rows together."""

    forests: list[GrownForest]
    losses: Array
    """Before the first round, and after each, also of rounds whose trees were left out; NaN without held-out rows."""


class AddedTree(NamedTuple):
    """A tree, the log factors of its leaves (leaves, k), and the weights of all rows in them by class (leaves, k)."""

    tree: TreeNodes
    log_factor: Array
    mass: Array


@dataclass
class Growth:
    """Trees while they are grown on the rows of a fold."""

    rows: FoldRows
    units: Units
    settings: GrowthSettings
    options: SplitOptions
    k: int
    trees: list[AddedTree] = field(default_factory=list)
    loss: int = field(init=False)
    """Log loss of the held-out rows."""

    def __post_init__(self) -> None:
        self.loss = self.rows.loss()
        self.remember()

    def advance(self) -> bool:
        """Grow a tree and apply it; False if no split gains."""
        grown = self.rows.grow(self.options, self.settings.leaves)
        if len(grown.bounds) < 2:
            return False
        sums = LeafSums(*self.rows.leaf_sums(grown.tree))
        # Larger after many trees, since a table that gains from so many has much to learn.
        rate = self.settings.rate * min(FASTER ** (len(self.trees) // MANY_TREES), FASTEST)
        log_factor = rate * self._steps(sums, grown.bounds)
        self.trees.append(AddedTree(grown.tree, log_factor, sums.mass / self.units.leaf))
        self.loss = self.rows.move(log_factor)
        return True

    def _steps(self, sums: LeafSums, bounds: Array) -> Array:
        """The full step of each leaf and class, (leaves, k), within the bounds of the leaves."""
        steps = full_steps(sums, self.units.leaf, self.settings.prior)
        if self.options.direction.any():
            change = steps[:, 1] - steps[:, 0]
            excess = np.clip(change, *bounds.T) - change
            steps += np.outer(excess, [-0.5, 0.5])
        return np.asarray(steps)

    def remember(self) -> None:
        """Note that the trees so far are the best."""
        self._best = len(self.trees)

    def result(self) -> GrownForest:
        """The trees up to the best round."""
        none = np.zeros((0, self.k))
        trees, *arrays = zip(*self.trees[: self._best], strict=True) if self._best else ((), (), ())
        log_factor, mass = (np.ascontiguousarray(np.concatenate([none, *parts]).T) for parts in arrays)
        return GrownForest(forest_of(trees), log_factor, mass)


Report = Callable[[int, float], bool]
"""Called after each round with the number of rounds and the held-out log loss; a true result ends the growth."""


def silent(rounds: int, loss: float) -> bool:
    """The report that does nothing."""
    return False


def grow_forests(
    blocks: GrowthBlocks,
    folds: int,
    settings: GrowthSettings,
    keys: Keys,
    direction: Array | None = None,
    report: Report = silent,
    knows_end: bool = False,
) -> GrownForests:
    """Grow trees on all rows but those of each fold, round by round, until all held-out rows together gain no more.

    So many rounds are used in every fold as are best for all held-out rows: the choice is less noisy than one by fold. The
    ``keys`` of the columns are their order. Unless one ``knows_end``, so that all trees of the settings are wanted, there are at
    most as many as their patience if no row is held out. ``direction`` (d,) is 1 or -1 for columns with which the log odds of the second
    class may only rise or fall.
    """
    signs = np.zeros(len(keys.columns), dtype=np.int8) if direction is None else direction
    units, sizes = units_of_blocks(blocks)
    held_out, k, growth = sizes["held_out"], len(keys.classes), new_growth()
    prior, least = (
        settings.prior * units.packed,
        settings.least_variance * units.packed * packed_classes(k) / k,
    )
    options = SplitOptions(np.argsort(keys.columns, kind="stable").astype(np.int32), signs, prior, least)
    # Threads share the rows of each fold if they are many and some threads would be idle otherwise, else the folds.
    one_by_one = sizes["rows"] * len(signs) >= MANY_CELLS and folds % most_threads() > 0
    for_each: Callable[..., Iterable[Any]] = map if one_by_one else map_items
    with reused_threads(most_threads()):
        rows = [blocks.fold(growth, fold, units) for fold in range(folds)]
        growths = [Growth(of_fold, units, settings, options, k) for of_fold in rows]
        losses = [_mean_loss(growths, held_out)]
        most = settings.trees if held_out or knows_end else min(settings.trees, settings.patience)
        while len(losses) <= most and not _is_over(losses, settings.patience):
            if not any([*for_each(Growth.advance, growths)]):
                break
            losses.append(_mean_loss(growths, held_out))
            if not losses[-1] >= min(losses[:-1]):
                for each in growths:
                    each.remember()
            if report(len(losses) - 1, losses[-1]):
                break
    return GrownForests([each.result() for each in growths], np.array(losses))


def units_of_blocks(blocks: GrowthBlocks) -> tuple[Units, dict[str, int]]:
    """Units for the weights of all rows; the number of rows, and the weight of all held-out rows in units of losses."""
    top = max(blocks.each(_largest_weight))
    units = tree_nodes.units_of(top, blocks.total(partial(_weight_in_parts, top))["weight"])
    return units, blocks.total(partial(_sizes, units.loss))


def _largest_weight(block: GrowthRows) -> float:
    return float(np.max(block.weight, initial=0.0))


def _weight_in_parts(top: float, block: GrowthRows) -> dict[str, int]:
    return {"weight": tree_nodes.in_parts(np.broadcast_to(block.weight, block.n), top)}


def _sizes(units: float, block: GrowthRows) -> dict[str, int]:
    whole = np.floor(np.broadcast_to(block.weight, block.n) * units + 0.5).astype(np.int64)
    return {"rows": block.n, "held_out": sum(int(whole[held_out].sum()) for held_out in block.held_out)}


def _mean_loss(growths: Sequence[Growth], weight: int) -> float:
    """Log loss of all held-out rows, of so much weight: sums of whole numbers. NaN if there are none."""
    return sum(growth.loss for growth in growths) / weight if weight else np.nan


def _is_over(losses: Sequence[float], patience: int) -> bool:
    """Whether the last rounds, as many as the patience or a sixth of all, have gained hardly anything on held-out rows."""
    latest = max(patience, (len(losses) - 1) // LATEST)
    if len(losses) <= latest:
        return False
    before, after = min(losses[:-latest]), min(losses[-latest:])
    return after > (1.0 - LEAST_GAIN) * before


def forest_scores(columns: tree_nodes.ByteColumns, forest: Forest, log_factor: Array, start: Array) -> Array:
    """Log scores at the start, (n, k), plus the log factors (k, leaves) at the leaves of rows, tree by tree."""
    scores, first = (
        np.array(np.broadcast_to(start, (columns.n, len(log_factor))), order="C"),
        offsets(forest.leaves),
    )
    factors = np.ascontiguousarray(log_factor.T)

    def add(rows: slice) -> None:
        codes = np.ascontiguousarray(leaf_codes(columns.rows(rows), forest).T)
        for own, begin, end in zip(codes, first, first[1:], strict=False):
            tree_nodes.add_factors(scores[rows], own, factors[begin:end])

    map_ranges(add, columns.n, forest.count)
    return scores


def held_out_scores(grown: GrownForest, fold: int, block: GrowthRows) -> Array:
    """The log scores of the rows of a block that a fold holds out, (m, k), with the trees that were grown without them."""
    held_out = block.held_out[fold]
    start = block.log_start[held_out] if block.log_start.ndim == 2 else block.log_start
    return forest_scores(block.columns.rows(held_out), grown.forest, grown.log_factor, start)


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
    rows, counted = LabeledScores(scores, labels.astype(np.int32), weight), np.zeros(len(labels), dtype=bool)
    top = float(weight.max(initial=0.0))
    units = tree_nodes.units_of(top, tree_nodes.in_parts(weight, top)).leaf
    for own, count in zip(codes.T, leaves, strict=True):
        sums = tree_nodes.leaf_sums(rows, own, counted, count, units)
        changes.append(rate * full_steps(sums, units, prior))
        if rate > 0:
            scores += changes[-1][own]
    return np.ascontiguousarray(np.concatenate(changes).T)

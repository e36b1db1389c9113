"""Grow trees round by round, each where the residuals that the trees before it leave can still be told apart.

A round adds a tree to a model with log scores F (n, k) and posterior P: the tree splits the rows where the sums of
W = Y - P differ most, and the log score of class c moves by ``rate * sum(W) / (sum(P (1 - P)) + prior)`` in each leaf. This
is one damped step of Newton's method on the log loss, and one calibration step on the counts of a column whose levels are
the leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require_number
from calibayes.kernels.dispatch import map_row_ranges
from calibayes.kernels.levels.counts import look_up, offsets
from calibayes.kernels.partitions.byte_columns import ByteColumns
from calibayes.kernels.partitions.forest import MOST_LEAVES, Forest, forest_of, leaf_codes
from calibayes.kernels.partitions.nodes import SplitOptions
from calibayes.kernels.partitions.residuals import packed_residuals, scale_of, variances
from calibayes.kernels.partitions.tree import Tree, grow_tree
from calibayes.kernels.posterior.logspace import log_normalize

LARGEST_STEP = 4.0
"""Largest full step of a log score, before it is multiplied by the rate."""
LEAST_GAIN = 1e-3
"""Growth ends if the held-out log loss falls by a smaller share than this in as many rounds as its patience."""


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
        Share of a full step that a tree moves the log scores.
    prior : float, default=5
        Precision of a normal prior, with mean 0, of the log factors of a leaf, as a sum of variances P (1 - P) of rows.
    least_variance : float, default=1
        Smallest sum of these variances in a leaf, over all classes.
    patience : int, default=20
        Number of trees without a clear gain on held-out rows after which growth ends.
    """

    trees: int = 1000
    leaves: int = 31
    rate: float = 0.1
    prior: float = 5.0
    least_variance: float = 1.0
    patience: int = 20

    def __post_init__(self) -> None:
        for name, least, most in (
            ("trees", 0, 100_000),
            ("leaves", 2, MOST_LEAVES),
            ("rate", 1e-6, 1.0),
            ("prior", 1e-6, 1e9),
            ("least_variance", 1e-6, 1e12),
            ("patience", 1, 100_000),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"{name} must be from {least:g} to {most:g}, got {value!r}")

    def verify(self) -> None:
        """Raises ValueError unless the numbers are finite; their ranges are checked when it is made."""
        for name in ("rate", "prior", "least_variance"):
            require_number(name, getattr(self, name), 1e-6)


class Sample(NamedTuple):
    """Rows with labels, and the log scores (n, k) that growth begins with."""

    columns: ByteColumns
    labels: Array
    weight: Array
    log_scores: Array


class GrownForest(NamedTuple):
    """Trees and the log factors of their leaves."""

    forest: Forest
    log_factor: Array
    """Of each class and leaf, the leaves of all trees side by side, (k, leaves)."""
    losses: Array
    """Log loss of the held-out rows before the first tree, and after each, also of trees that were left out."""
    held_out_scores: Array
    """Log scores of the held-out rows, (n, k)."""


@dataclass
class Growth:
    """Trees while they are grown on a sample, and what they do to held-out rows."""

    training: Sample
    held_out: Sample
    settings: GrowthSettings
    direction: Array
    trees: list[Tree] = field(default_factory=list)
    log_factors: list[Array] = field(default_factory=list)
    """Of each tree, (leaves, k)."""
    losses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        columns, _, weight, log_scores = self.training
        self._scale = scale_of(weight)
        self._rows = np.arange(columns.n, dtype=np.int32)
        self._fractions = columns.fractions()
        allowed = np.ones(columns.d, dtype=np.int8)
        least = self.settings.least_variance * self._scale
        prior = self.settings.prior * self._scale
        self._options = SplitOptions(allowed, self.direction, prior, least)
        self._scores, self._held_out_scores = log_scores.copy(), self.held_out.log_scores.copy()
        self._best_scores = self._held_out_scores
        self.losses.append(self._held_out_loss())

    def advance(self) -> bool:
        """Grow a tree and apply it; False if no split gains."""
        columns, labels, weight, _ = self.training
        posterior = np.exp(log_normalize(self._scores)[0])
        packed = packed_residuals(labels, posterior, weight, self._scale, self._fractions)
        grown = grow_tree(columns, self._rows, packed, self._options, self.settings.leaves)
        if len(grown.bounds) < 2:
            return False
        log_factor = self.settings.rate * self._steps(grown.codes, posterior, grown.bounds)
        self._scores += log_factor[grown.codes]
        self.trees.append(grown.tree)
        self.log_factors.append(log_factor)
        self._follow_held_out(grown.tree, log_factor)
        return True

    def _steps(self, codes: Array, posterior: Array, bounds: Array) -> Array:
        """The full step of each leaf and class, (leaves, k), within the bounds of the leaves."""
        _, labels, weight, _ = self.training
        leaves, k = len(bounds), posterior.shape[1]
        observed = np.bincount(codes * k + labels, weight, minlength=leaves * k).reshape(leaves, k)
        expected, variance = (
            np.stack([np.bincount(codes, weight * column, minlength=leaves) for column in columns.T], axis=1)
            for columns in (posterior, variances(posterior))
        )
        steps = np.clip((observed - expected) / (variance + self.settings.prior), -LARGEST_STEP, LARGEST_STEP)
        if self.direction.any():
            change = steps[:, 1] - steps[:, 0]
            excess = np.clip(change, *bounds.T) - change
            steps += np.outer(excess, [-0.5, 0.5])
        return np.asarray(steps)

    def _follow_held_out(self, tree: Tree, log_factor: Array) -> None:
        """Apply a tree to the held-out rows."""
        if self.held_out.columns.n:
            codes = leaf_codes(self.held_out.columns, forest_of([tree]))[:, 0]
            self._held_out_scores = self._held_out_scores + log_factor[codes]
        self.losses.append(self._held_out_loss())
        if self.losses[-1] < min(self.losses[:-1]):
            self._best_scores = self._held_out_scores

    def _held_out_loss(self) -> float:
        """Held-out log loss; without held-out rows it falls forever."""
        _, labels, weight, _ = self.held_out
        if not weight.any():
            return -float(len(self.trees))
        log_posterior = log_normalize(self._held_out_scores)[0]
        own = log_posterior[np.arange(len(labels)), labels]
        return float(-np.sum(weight * own) / np.sum(weight))

    def is_over(self) -> bool:
        """Whether the last rounds have gained hardly anything on held-out rows."""
        patience, losses = self.settings.patience, self.losses
        if len(losses) <= patience or not self.held_out.weight.any():
            return False
        before, after = min(losses[:-patience]), min(losses[-patience:])
        return after > before - LEAST_GAIN * abs(before)

    def result(self) -> GrownForest:
        """The trees up to the lowest held-out loss."""
        best, k = int(np.argmin(self.losses)), self.training.log_scores.shape[1]
        factors = [np.zeros((0, k)), *self.log_factors[:best]]
        log_factor = np.ascontiguousarray(np.concatenate(factors).T)
        return GrownForest(forest_of(self.trees[:best]), log_factor, np.array(self.losses), self._best_scores)


def grow_forest(
    training: Sample,
    held_out: Sample,
    settings: GrowthSettings,
    direction: Array | None = None,
    report: Callable[[int, float], bool] = lambda trees, loss: False,
) -> GrownForest:
    """Grow trees on a sample until held-out rows gain no more, or ``report`` (number of trees, loss) returns True.

    ``direction`` (d,) is 1 or -1 for columns with which the log odds of the second class may only rise or fall.
    """
    signs = np.zeros(training.columns.d, dtype=np.int8) if direction is None else direction
    growth = Growth(training, held_out, settings, signs)
    while len(growth.trees) < settings.trees and not growth.is_over() and growth.advance():
        if report(len(growth.trees), growth.losses[-1]):
            break
    return growth.result()


def forest_scores(columns: ByteColumns, forest: Forest, log_factor: Array) -> Array:
    """Sum over the trees of the log factors (k, leaves) at the leaves of rows, (n, k)."""
    if not forest.count:
        return np.zeros((columns.n, len(log_factor)))
    first = offsets(forest.leaves)

    def of_rows(rows: slice) -> Array:
        return look_up(leaf_codes(columns.rows(rows), forest), log_factor, first)

    return np.concatenate(map_row_ranges(of_rows, columns.n, forest.count))

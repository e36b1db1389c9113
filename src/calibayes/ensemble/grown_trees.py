"""Trees grown on the average of an ensemble's members: a generative start, a calibrated finish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_array, require_finite, require_length, require_number
from calibayes.encoders.leaves import OrderedBytes
from calibayes.kernels.forests import Forest
from calibayes.kernels.posterior import log_normalize, mix
from calibayes.kernels.tree_growth import forest_scores
from calibayes.tables.table import Table


@dataclass(frozen=True)
class GrownTrees:
    """Forests that were each grown on the rows of a fold, from a share of the members' log posterior.

    The posterior of a forest is proportional to p(class | x) ** share, with p the average of the members, times the factors
    of the leaves of x. The posteriors of the forests are averaged, and the prediction is ``weight`` times this average plus
    1 - ``weight`` times that of the members.

    Attributes
    ----------
    share : float
        Of the members' log posterior in the start.
    weight : float
        Of the trees in the prediction.
    bytes : OrderedBytes
        Encoder of the columns, shared by all forests.
    forests : tuple of Forest
    log_factors : tuple of (k, leaves) arrays
        Log factors of the leaves of each forest, tree by tree.
    masses : tuple of (leaves,) arrays
        Weights of the rows in these leaves.
    losses : array
        Log loss of the held-out rows before the first round of trees and after each.
    """

    share: float
    weight: float
    bytes: OrderedBytes
    forests: tuple[Forest, ...]
    log_factors: tuple[Array, ...]
    masses: tuple[Array, ...]
    losses: Array

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require_number("share", self.share, 0.0, 1.0)
        require_number("weight", self.weight, 0.0, 1.0)
        require(len(self.forests) > 0, "there is no forest")
        require_length("log_factors", self.log_factors, len(self.forests))
        require_length("masses", self.masses, len(self.forests))
        k = len(require_array("log_factors", self.log_factors[0], (None, None)))
        for forest, log_factor, mass in zip(self.forests, self.log_factors, self.masses, strict=True):
            leaves, d = sum(forest.leaves), len(self.bytes.indices)
            require_finite("log_factors", log_factor, (k, leaves))
            require_finite("masses", mass, (leaves,), 0.0)
            require(bool((forest.column < d).all()), "a tree splits a column that is not there")
        require(len(require_array("losses", self.losses, (None,))) > 0, "losses are empty")

    @property
    def tree_count(self) -> int:
        """Number of trees of a forest: the largest, if a fold had nothing more to gain."""
        return max(forest.count for forest in self.forests)

    def log_posterior(self, log_members: Array, scores: Sequence[Array]) -> Array:
        """log p(class | x) of members and trees together, (n, k), from that of the members and the scores of the forests."""
        trees = [log_normalize(self.share * log_members + given)[0] for given in scores]
        shares = np.full(len(trees), self.weight / len(trees))
        return mix(np.stack([log_members, *trees]), np.append(1.0 - self.weight, shares))

    def scores(self, table: Table) -> list[Array]:
        """Sums of the log factors of the leaves of each forest, (n, k) each."""
        columns = self.bytes.encode(table)
        pairs = zip(self.forests, self.log_factors, strict=True)
        start = np.zeros(len(self.log_factors[0]))
        return [forest_scores(columns, forest, log_factor, start) for forest, log_factor in pairs]

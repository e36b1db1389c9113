"""Columns of levels, each hanging on one other: tree-augmented naive Bayes, forests, a tree for each class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from calibayes.core.abilities import GradientStep
from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.families.counts.pseudo_counts import cell_by_cell, floored
from calibayes.families.kernel.bandwidths import Bandwidth, InCells, check_rule
from calibayes.families.priors import Dirichlet
from calibayes.families.tree.branching import Branch
from calibayes.families.tree.pair_counts import PairCounts
from calibayes.families.tree.rows import TreeRows
from calibayes.families.tree.smoothing import borrowed, kernels, smoothed, widths
from calibayes.families.tree.structures import OneTree, Parents, Search
from calibayes.kernels.levels import counts
from calibayes.kernels.levels.pairs import pair_table
from calibayes.kernels.posterior import simplex


@dataclass(frozen=True)
class Tree(TreeRows, PairCounts):
    """The probabilities of each column's levels given the class and the level of the column it hangs on.

    The structure is found in the counts of all pairs of columns and then stays. A pair of cells is counted where both
    are known; rows with missing cells have the density of their known ones, exactly. A level never seen in training
    is a missing cell. Where cells have widths, the density is in the columns' own units.

    Parameters
    ----------
    alpha : float or (d,) array, default=0
        Pseudo-count per level, shared out over the levels of the column's parent; 0 is maximum likelihood.
    prior : Dirichlet, optional
        Prior by equivalent sample size, the same for each column's table, instead of ``alpha``.
    max_cells : int, default=10000
        Pairs of columns whose table has more cells are not surveyed, and so are no edges.
    search : Search
        `OneTree` or `PerClass`, with the edges that are worth it.
    back_off : float, default=0
        Rows that a column borrows, under each level of its parent, from its own distribution in the class as the data
        have it (Friedman, Geiger and Goldszmidt 1997).
    bandwidth : Bandwidth, default=InCells(0)
        Rule for the width of a Gaussian kernel that smooths the tables along columns whose cells lie in order.
    """

    search: Search = field(default_factory=OneTree)
    back_off: float = 0.0
    bandwidth: Bandwidth = field(default_factory=lambda: InCells(0.0))
    parents: tuple[Parents, ...] | None = field(default=None, repr=False, compare=False)
    pseudo: Array | None = field(default=None, repr=False, compare=False)
    widths: Array | None = field(default=None, repr=False, compare=False)

    reads = "levels"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.back_off < np.inf:
            raise ValueError(f"back_off must be finite and must not be negative, got {self.back_off}")
        check_rule(self.bandwidth)

    def bind(self, layout: Layout) -> Self:
        return replace(self, layout=layout, parents=None, pseudo=None, widths=None)

    def conjugate(self) -> Self:
        given = np.any(self.alpha) or self.prior or self.back_off
        return self if given else replace(self, prior=Dirichlet())

    # -- structure -----------------------------------------------------------------------------------------------

    @property
    def structure(self) -> tuple[Parents, ...] | None:
        """The parent of each column, class by class."""
        return self.parents

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Self:
        found = replace(self, parents=self.search.parents(self.candidates(start)))
        singles = self.singles(start)
        return replace(
            found, pseudo=found._borrowed(singles), widths=widths(self.bandwidth, self.layout, singles)
        )

    def statistics_of(self, survey: Arrays) -> Arrays:
        singles, levels = self.singles(survey), self.layout.levels

        def of(branch: Branch) -> Array:
            mine, joint = branch.classes, survey["pair"][branch.classes]
            parents = enumerate(branch.tree.parents)
            return branch.tree.joined(
                [
                    singles[j][mine] if p < 0 else pair_table(joint, self.pairs, levels, p, j)
                    for j, p in parents
                ]
            )

        return {"count": self._gathered(of)}

    def edges(self, survey: Arrays) -> list[tuple[int, int, float, int]]:
        """Parent, child, mutual information in nats and class of each edge; -1 where all classes share one tree."""
        candidates, shared = self.candidates(survey), len(self.branches) == 1
        told = {-1: candidates.pooled()} if shared else dict(enumerate(candidates.by_class()))
        return [
            (parent, child, float(gain[pair] / weight[pair]), c)
            for c, (gain, weight, _) in told.items()
            for child, parent in enumerate((self.parents or ())[max(c, 0)])
            if parent >= 0
            for pair in [candidates.position(parent, child)]
        ]

    def _gathered(self, of_branch: Callable[[Branch], Array]) -> Array:
        """Tables of all classes, (k, cells); a class whose tree has fewer cells has zeros behind them."""
        cells = max(int(branch.tree.first[-1]) for branch in self.branches)
        whole = np.zeros((len(self.layout.classes), cells))
        for branch in self.branches:
            whole[branch.classes, : branch.tree.first[-1]] = of_branch(branch)
        return whole

    # -- tables --------------------------------------------------------------------------------------------------

    def _borrowed(self, singles: list[Array] | None) -> Array:
        """Pseudo-counts of all cells; what is borrowed from the counts of columns only where those are given."""
        plain = [np.ones((len(self.layout.classes), size)) for size in self.layout.levels]

        def of(branch: Branch) -> Array:
            count = [single[branch.classes] for single in singles or plain]
            return borrowed(branch.tree, self.pseudo_counts(self.layout.levels), count, self.back_off)

        return self._gathered(of)

    @cached_property
    def _pseudo_counts(self) -> Array:
        return self._borrowed(None) if self.pseudo is None else self.pseudo

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        def of(branch: Branch) -> Array:
            codes = branch.tree.codes(columns)
            return counts.weighted_counts(codes, weights[:, branch.classes], branch.tree.first)

        return {"count": self._gathered(of)}

    def parameters(self, statistics: Arrays) -> Arrays:
        def of(branch: Branch) -> Array:
            count = self._smoothed(branch, branch.own(statistics["count"])) + branch.own(self._pseudo_counts)
            count = floored(count, branch.tree.sums(count))
            return np.log(count) - np.log(branch.tree.sums(count))

        return {"log_probability": self._gathered(of)}

    def _smoothed(self, branch: Branch, count: Array) -> Array:
        if self.widths is None or not self.widths.any():
            return count
        kernel = self._kernels[int(branch.classes[0])]
        return branch.tree.joined(smoothed(branch.tree.split(count), branch.tree, kernel))

    @cached_property
    def _kernels(self) -> dict[int, list[Array | None]]:
        """By the first class of each branch."""
        found, ordered = np.zeros((0, 0)) if self.widths is None else self.widths, self.layout.ordered
        return {int(b.classes[0]): kernels(b.tree, found[b.classes], ordered) for b in self.branches}

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        return cell_by_cell(current, proposed)

    def cells(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"])

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        """The gradient in the log probabilities, of rows without gaps; others add the pairs that they know."""

        def of(branch: Branch) -> Array:
            moved = parameters["log_probability"] + rate * direction["count"]
            tables = branch.tree.split(branch.own(moved))
            flat = [simplex.log_project(table.reshape(-1, table.shape[2])) for table in tables]
            pairs = zip(flat, tables, strict=True)
            return branch.tree.joined([table.reshape(shape.shape) for table, shape in pairs])

        return GradientStep({"log_probability": self._gathered(of)}, None)

    def log_prior(self, parameters: Arrays) -> float:
        return float(np.sum(self._pseudo_counts * parameters["log_probability"]))

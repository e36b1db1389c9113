"""Counts of all columns of levels and of all pairs of them: what a structure over columns is found in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.families.counts.pseudo_counts import PseudoCounts
from calibayes.families.tree.structures import Candidates
from calibayes.kernels.levels import counts, pairs

MOST_NUMBERS = 2**27
"""Numbers in a survey (a gigabyte) beyond which it is refused."""


@dataclass(frozen=True)
class PairCounts(PseudoCounts):
    """
    Parameters
    ----------
    max_cells : int, default=10000
        Pairs of columns whose table has more cells are not surveyed, and so are no edges.
    """

    max_cells: int = 10_000

    @property
    def pairs(self) -> pairs.Pairs:
        """The pairs that are surveyed."""
        found = pairs.column_pairs(self.layout.levels, self.max_cells)
        numbers = len(self.layout.classes) * int(found.first[-1])
        if numbers > MOST_NUMBERS:
            raise ValueError(
                f"the tables of {len(found.left)} pairs of columns have {numbers:.3g} cells over all classes: "
                "fewer bins, pooled levels or a smaller max_cells help"
            )
        return found

    def structure_statistics(self, columns: Array, weights: Array) -> Arrays:
        levels = self.layout.levels
        return {
            "single": counts.weighted_counts(columns, weights, counts.offsets(levels)),
            "pair": pairs.weighted_pairs(columns, weights, levels, self.pairs),
        }

    def candidates(self, survey: Arrays) -> Candidates:
        """The pairs of columns and what they tell about each other."""
        found = self.pairs
        told = pairs.pair_information(survey["pair"], found, self.layout.levels)
        return Candidates(len(self.layout.columns), found.left, found.right, told)

    def singles(self, survey: Arrays) -> list[Array]:
        """The counts of each column, (k, levels)."""
        return np.split(survey["single"], counts.offsets(self.layout.levels)[1:-1], axis=1)

    def occurrences(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["single"].sum(axis=0))

    def recode(self, statistics: Arrays, codes: Sequence[Array], levels: Sequence[int]) -> Arrays:
        """A pair that has become too large is dropped; one that was too large has nothing to tell."""
        old, new = self.pairs, pairs.column_pairs(tuple(levels), self.max_cells)
        known = {(i, j) for i, j in zip(old.left.tolist(), old.right.tolist(), strict=True)}
        grown = np.zeros((len(statistics["pair"]), int(new.first[-1])))
        for number, (i, j) in enumerate(zip(new.left.tolist(), new.right.tolist(), strict=True)):
            if (i, j) in known:
                table = pairs.pair_table(statistics["pair"], old, self.layout.levels, i, j)
                moved = counts.recode_table(table, (codes[i], codes[j]), (levels[i], levels[j]))
                grown[:, new.first[number] : new.first[number + 1]] = moved.reshape(len(grown), -1)
        return {"single": counts.recode_counts(statistics["single"], codes, levels), "pair": grown}

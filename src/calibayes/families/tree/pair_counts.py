"""Counts of all columns and of all pairs of columns: the sums from which a tree structure is learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.families.counts.pseudo_counts import PseudoCounts
from calibayes.families.tree.structures import Candidates
from calibayes.kernels.levels import counts, pairs

LARGEST_TABLES = 2**27
"""Most cells in the tables of all pairs and classes: one gigabyte."""


@dataclass(frozen=True)
class PairCounts(PseudoCounts):
    """
    Parameters
    ----------
    max_cells : int, default=10000
        Pairs of columns with more combinations of levels are not counted, and so cannot be edges.
    """

    max_cells: int = 10_000

    @property
    def pairs(self) -> pairs.Pairs:
        """The pairs of columns that are counted. Raises ValueError if their tables do not fit into memory."""
        counted = pairs.column_pairs(self.layout.levels, self.max_cells)
        cells = len(self.layout.classes) * int(counted.first[-1])
        if cells > LARGEST_TABLES:
            raise ValueError(
                f"the tables of {len(counted.left)} pairs of columns have {cells:.3g} cells over all classes, "
                f"more than {LARGEST_TABLES:.3g}: fewer bins, pooled levels or a smaller max_cells help"
            )
        return counted

    def structure_statistics(self, columns: Array, weights: Array) -> Arrays:
        """Counts of levels of each column, (k, cells), and of pairs of levels of each pair, (k, cells of pairs)."""
        levels = self.layout.levels
        return {
            "single": counts.weighted_counts(columns, weights, counts.offsets(levels)),
            "pair": pairs.weighted_pairs(columns, weights, levels, self.pairs),
        }

    def candidates(self, structure_statistics: Arrays) -> Candidates:
        """The counted pairs of columns and the mutual information of each."""
        counted = self.pairs
        information = pairs.pair_information(structure_statistics["pair"], counted, self.layout.levels)
        return Candidates(len(self.layout.columns), counted.left, counted.right, information)

    def column_counts(self, structure_statistics: Arrays) -> list[Array]:
        """The counts of each column, (k, levels)."""
        return np.split(structure_statistics["single"], counts.offsets(self.layout.levels)[1:-1], axis=1)

    def occurrences(self, structure_statistics: Arrays) -> Array:
        return np.asarray(structure_statistics["single"].sum(axis=0))

    def recode(self, structure_statistics: Arrays, codes: Sequence[Array], levels: Sequence[int]) -> Arrays:
        """A pair that now has too many cells is dropped; one that was not counted before has counts of 0."""
        single, pair = structure_statistics["single"], structure_statistics["pair"]
        old, new = self.pairs, pairs.column_pairs(tuple(levels), self.max_cells)
        counted = {(i, j) for i, j in zip(old.left.tolist(), old.right.tolist(), strict=True)}
        recoded = np.zeros((len(pair), int(new.first[-1])))
        for number, (i, j) in enumerate(zip(new.left.tolist(), new.right.tolist(), strict=True)):
            if (i, j) in counted:
                table = pairs.pair_table(pair, old, self.layout.levels, i, j)
                moved = counts.recode_table(table, (codes[i], codes[j]), (levels[i], levels[j]))
                recoded[:, new.first[number] : new.first[number + 1]] = moved.reshape(len(recoded), -1)
        return {"single": counts.recode_counts(single, codes, levels), "pair": recoded}

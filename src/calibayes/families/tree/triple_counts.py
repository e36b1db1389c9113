"""Counts of all columns, pairs and triples of columns: the sums from which parents of columns are learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb, prod

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.core.verify import require_arrays
from calibayes.families.tree.structures import PairCounts
from calibayes.kernels.levels import counts, pairs, triples

LARGEST_TRIPLES = 2**24
"""Most cells in the tables of all triples and classes: 128 megabytes."""


@dataclass(frozen=True)
class TripleCounts(PairCounts):
    """Counts of all columns and of all pairs and, if ``counts_triples``, triples of columns.

    Triples with more than ``max_cells`` combinations of levels are not counted; nor are the largest, where the tables of
    all would need too much memory.
    """

    @property
    def counts_triples(self) -> bool:
        """Whether triples are counted at all."""
        return True

    @cached_property
    def triples(self) -> triples.Triples:
        """The triples of columns that are counted."""
        levels = self.layout.levels
        return triples.column_triples(levels, largest_table(levels, len(self.layout.classes), self.max_cells))

    def structure_statistics(self, columns: Array, weights: Array) -> Arrays:
        """Counts of levels of each column and of all pairs and triples of columns, (k, cells) each."""
        sums = super().structure_statistics(columns, weights)
        if not self.counts_triples:
            return sums
        return {
            **sums,
            "triple": triples.weighted_triples(columns, weights, self.layout.levels, self.triples),
        }

    def count_of(self, structure_statistics: Arrays, columns: tuple[int, ...]) -> Array:
        """The counts of one, two or three columns, (k, levels of each); of a triple that is not counted, one cell of 0."""
        levels = self.layout.levels
        if len(columns) == 1:
            first = counts.offsets(levels)[columns[0]]
            return np.asarray(structure_statistics["single"][:, first : first + levels[columns[0]]])
        if len(columns) == 2:
            return pairs.pair_table(structure_statistics["pair"], self.pairs, levels, *columns)
        if self.triples.position(columns) < 0:
            return np.zeros((len(self.layout.classes), 1, 1, 1))
        return triples.triple_table(structure_statistics["triple"], self.triples, levels, columns)

    def recode(self, structure_statistics: Arrays, codes: Sequence[Array], levels: Sequence[int]) -> Arrays:
        """A pair or triple that now has too many cells is dropped; one that was not counted before has counts of 0."""
        recoded = super().recode(structure_statistics, codes, levels)
        if not self.counts_triples:
            return recoded
        new = replace(self, layout=replace(self.layout, levels=tuple(levels))).triples
        moved = np.zeros((len(recoded["pair"]), int(new.first[-1])))
        for number, columns in enumerate(map(tuple, new.columns.tolist())):
            if self.triples.position(columns) >= 0:
                table = self.count_of(structure_statistics, columns)
                sizes = [levels[j] for j in columns]
                cells = counts.recode_table(table, [codes[j] for j in columns], sizes)
                moved[:, new.first[number] : new.first[number + 1]] = cells.reshape(len(moved), -1)
        return {**recoded, "triple": moved}

    def verify_structure_statistics(self, structure_statistics: Arrays) -> None:
        if not self.counts_triples:
            return super().verify_structure_statistics(structure_statistics)
        k, levels = len(self.layout.classes), self.layout.levels
        shape = k, cells_of_triples(levels, largest_table(levels, k, self.max_cells))
        triple = {name: value for name, value in structure_statistics.items() if name == "triple"}
        require_arrays("structure statistics", triple, {"triple": shape}, least=0.0)
        others = {name: value for name, value in structure_statistics.items() if name != "triple"}
        return super().verify_structure_statistics(others)


def triple_sizes(levels: Sequence[int]) -> dict[int, int]:
    """Number of cells of a triple of columns -> number of triples with so many, without listing the triples."""
    number = Counter(levels)
    triples_of_size: Counter[int] = Counter()
    for shape in combinations_with_replacement(sorted(number), 3):
        triples_of_size[prod(shape)] += prod(comb(number[size], shape.count(size)) for size in set(shape))
    return triples_of_size


def cells_of_triples(levels: Sequence[int], most: int) -> int:
    """Number of cells of all triples of columns with at most ``most`` each."""
    return sum(size * number for size, number in triple_sizes(levels).items() if size <= most)


def largest_table(levels: Sequence[int], k: int, most: int) -> int:
    """Cells of the largest triples that are counted: at most ``most``, and few enough for all tables to fit into memory."""
    total, largest = 0, 0
    for size, number in sorted(triple_sizes(levels).items()):
        total += k * size * number
        if size > most or total > LARGEST_TRIPLES:
            break
        largest = size
    return largest

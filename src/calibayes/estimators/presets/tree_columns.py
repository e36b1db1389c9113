"""Which columns are part of a tree, if the tables of all pairs of columns would be too large."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from calibayes.core.protocols import Array
from calibayes.core.verify import require_columns
from calibayes.encoders.encoder import Encoder
from calibayes.estimators.interface.input import TrainingRows
from calibayes.families.tree.structures import LARGEST_TABLES
from calibayes.kernels.levels.counts import offsets, weighted_counts
from calibayes.tables.summaries.sample import Sample
from calibayes.tables.summaries.summary import TableSummary
from calibayes.tables.table import Table

MOST_IN_TREE = (256, 128, 64, 32, 16)
"""Numbers of columns of a tree that are tried in turn, if all columns are too many."""
WIDE_TABLES = 2**22
"""Largest number of cells of the tables of all pairs, over all classes, if there are more columns than rows: so few rows do
not show which of millions of pairs depend on each other, and inner folds count them several times."""


@dataclass(frozen=True)
class Positions:
    """Columns at given positions, as a selection for a family."""

    chosen: tuple[int, ...]

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require_columns("chosen", self.chosen)

    def __call__(self, table: Table | TableSummary) -> list[int]:
        return list(self.chosen)


def tree_columns(
    positions: Sequence[int], encoder: Encoder, rows: TrainingRows, k: int, max_cells: int
) -> list[int] | None:
    """The columns that depend on the class most, as many as fit; None if all columns fit.

    Of columns that are equally relevant all are chosen or none, so that the order of the columns has no influence.
    """
    if len(positions) <= MOST_IN_TREE[0]:
        return None
    is_wide = len(positions) > len(rows.codes)
    most_cells = min(WIDE_TABLES, LARGEST_TABLES) if is_wide else LARGEST_TABLES
    return most_relevant_columns(
        positions, encoder, rows, k, MOST_IN_TREE, lambda levels: fits(levels, k, max_cells, most_cells)
    )


def most_relevant_columns(
    positions: Sequence[int],
    encoder: Encoder,
    rows: TrainingRows,
    k: int,
    numbers: Sequence[int],
    fit: Callable[[Sequence[int]], bool],
) -> list[int] | None:
    """The columns that depend on the class most, in the first of these numbers that fit; None if all columns fit.

    ``fit`` says whether the tables of columns with given numbers of levels fit into memory.
    """
    fitted = encoder.fit(rows.summary, positions)
    levels = fitted.layout()["levels"]
    if fit(levels):
        return None
    sample = rows.summary.sample
    relevance = np.round(class_relevance(fitted.encode(sample.table), levels, sample, k), 8)
    for most in numbers:
        least = np.sort(relevance)[-most - 1] if most < len(positions) else -np.inf
        chosen: list[int] = np.asarray(positions)[relevance > least].tolist()
        if fit(_levels(encoder, chosen, rows)):
            break
    return chosen


def fits(levels: Sequence[int], k: int, max_cells: int, most_cells: float) -> bool:
    """Whether the tables of all pairs of columns with these numbers of levels have at most so many cells."""
    sizes, counts = np.unique(np.asarray(levels, dtype=np.int64), return_counts=True)
    cells, pairs = np.outer(sizes, sizes), np.outer(counts, counts).astype(np.float64)
    pairs[np.diag_indices(len(sizes))] -= counts
    return bool(k * np.sum(np.where(cells <= max_cells, cells * pairs, 0.0)) / 2 <= most_cells)


def class_relevance(codes: Array, levels: Sequence[int], rows: Sample, k: int) -> Array:
    """How clearly each column depends on the class, (d,): the G statistic, standardized for its degrees of freedom."""
    labels = (
        np.eye(k + 1)[rows.codes][:, :k] * rows.weight[:, None]
    )  # a row without a label (-1) does not count
    first = offsets(tuple(levels))
    counts = weighted_counts(codes, labels, first)
    by_class = np.add.reduceat(counts, first[:-1], axis=1)
    by_level = counts.sum(axis=0)
    joint = np.add.reduceat(xlogy(counts, counts).sum(axis=0), first[:-1])
    margins = np.add.reduceat(xlogy(by_level, by_level), first[:-1]) + xlogy(by_class, by_class).sum(axis=0)
    total = by_class.sum(axis=0)
    gain = joint - margins + xlogy(total, total)
    known_levels = np.add.reduceat((by_level > 0).astype(np.float64), first[:-1])
    freedom = np.maximum((known_levels - 1.0) * (k - 1), 1.0)
    return np.asarray((2.0 * gain - freedom) / np.sqrt(2.0 * freedom))


def _levels(encoder: Encoder, positions: Sequence[int], rows: TrainingRows) -> Sequence[int]:
    """Numbers of levels of these columns: with fewer columns, numbers may get more bins."""
    if not positions:
        return ()
    levels: Sequence[int] = encoder.fit(rows.summary, positions).layout()["levels"]
    return levels

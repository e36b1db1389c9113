"""Tables of very many rows: members learn from some of them, and one forest is grown on all, wherever they lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.leaves import OrderedBytes, ordered_rows
from calibayes.ensemble.training import BEYOND, MEMBER_ROWS, SHARE, GrowthTask
from calibayes.kernels.growth_rows import GrowthBlocks, RowMarks
from calibayes.kernels.row_keys import Keys, RowOrder, keys_of
from calibayes.kernels.tree_growth import Report
from calibayes.model.checked_rows import Rows, TrainingRows
from calibayes.model.splits import LEAST_OF_CLASS, row_counts
from calibayes.tables.table import Table

HELD_OUT_SHARE = 0.1
"""Least share of the rows that are held out: the more rows there are, the smaller gains are worth further trees."""
LogPosterior = Callable[[Table], Array]
"""Function of a table: log p(class | x), (n, k)."""


@dataclass(frozen=True, eq=False)
class ManyRows:
    """All rows of a table, as bytes and in an order by their content, and those that members learn from.

    A row that counts as several copies is that many rows of a block.
    """

    rows: TrainingRows
    k: int
    encoder: OrderedBytes
    blocks: GrowthBlocks
    keys: Keys
    order: RowOrder
    source: Array | None
    """The row of each copy; None: there are as many copies as rows."""

    @cached_property
    def _labels(self) -> Array:
        codes = self.rows.codes
        return codes if self.source is None else codes[self.source]

    def _first_of_class(self, most: Callable[[Array], Array]) -> Array:
        """The copies that are among the first of their class; ``most`` is a function of the copies of each class."""
        counts = np.bincount(self._labels, minlength=self.k)
        return np.asarray(self.order.place < most(counts)[self._labels])

    @property
    def _share(self) -> float:
        return min(MEMBER_ROWS / len(self._labels), 1.0)

    @cached_property
    def _chosen(self) -> Array:
        """The copies that members learn from: the same share of each class, but at least some rows."""
        return self._first_of_class(lambda counts: np.maximum(np.ceil(self._share * counts), LEAST_OF_CLASS))

    @cached_property
    def _held_out(self) -> Array:
        """The copies that no tree is grown on: the same share of each class, those that members learn from, or a tenth if
        these are fewer."""
        share = max(self._share, HELD_OUT_SHARE)
        return self._first_of_class(lambda counts: np.minimum(np.ceil(share * counts), counts - 1))

    @cached_property
    def _is_member_row(self) -> Array:
        """The rows that members learn from."""
        if self.source is None:
            return self._chosen
        chosen = np.zeros(len(self.rows.codes), dtype=bool)
        chosen[self.source[self._chosen]] = True
        return chosen

    @cached_property
    def member_rows(self) -> Rows:
        """The rows that members learn from, in memory, each with the weight of its chosen copies."""
        rows = self.rows.taken(self._is_member_row)
        if self.source is None:
            return rows
        copies = np.bincount(self.source)
        chosen = np.bincount(self.source[self._chosen], minlength=len(copies))
        return rows._replace(weight=rows.weight * (chosen / copies)[self._is_member_row])

    def task(self, average: LogPosterior, out_of_fold: Array, report: Report) -> GrowthTask:
        """What trees are grown on, given the members' average, and their out-of-fold predictions for the rows that they learn from."""
        log_members, chosen = self.rows.mapped(average), self._is_member_row
        log_members[chosen] = out_of_fold
        order = np.argsort(self.keys.classes, kind="stable")
        log_start = np.ascontiguousarray(SHARE * log_members[:, order])
        if self.source is not None:
            log_start = log_start[self.source]
        places = np.argsort(order).astype(np.int32)
        blocks = self.blocks.marked(RowMarks(log_start, places, self.order.fractions, self._held_out[None]))
        place = np.where(chosen, np.cumsum(chosen) - 1, BEYOND)
        held_out = np.flatnonzero(self._held_out)
        of_copies = place[held_out if self.source is None else self.source[held_out]]
        return GrowthTask(self.member_rows, out_of_fold, blocks, self.keys, self.encoder, [of_copies], report)


def many_rows(rows: TrainingRows, k: int, seed: int) -> ManyRows:
    """All rows in an order that depends on their content and the seed."""
    encoder, counts = OrderedBytes().fit(rows.summary, rows.summary.used), row_counts(rows, k)
    blocks = rows.summary.blocks(encoder, counts)
    keys, copies = keys_of(blocks, k, seed), counts.copies(rows.codes, rows.weight)
    source = None if copies is None else np.repeat(np.arange(len(copies)), copies)
    return ManyRows(rows, k, encoder, blocks, keys, ordered_rows(blocks, keys), source)

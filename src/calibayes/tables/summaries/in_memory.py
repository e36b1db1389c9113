"""The summary of a table in memory: columns are summarized when an encoder asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.levels.distinct_sample import distinct_sample
from calibayes.kernels.levels.ordered_cells import cell_weights, distinct_positions
from calibayes.kernels.numbers import moments
from calibayes.kernels.numbers.sparse import is_sparse
from calibayes.tables.distinct import distinct_values
from calibayes.tables.summaries import column
from calibayes.tables.summaries.cells import divided
from calibayes.tables.summaries.centers import center_rows, column_centers
from calibayes.tables.summaries.column import ColumnSummary, cells_summary, values_summary
from calibayes.tables.summaries.level_weights import level_weights
from calibayes.tables.summaries.sample import Sample, sample_of, sample_positions
from calibayes.tables.summaries.summary import Moments, TableSummary
from calibayes.tables.summaries.weights import summable
from calibayes.tables.table import LARGEST, Table, numeric_columns, numeric_matrix, refuse_all_missing

Result = TypeVar("Result")

KEPT_ROWS = 2**14
"""Rows of a table up to which the positions of values among the distinct ones are kept, not found again."""


def summary_of(table: Table, weight: Array, codes: Array | None = None) -> TableSummary:
    """The summary of a table in memory; models that are fitted to one table with a cache share it."""
    summary = table.cached("summary", weight, lambda: InMemory(table, weight, codes))
    return summary if summary.codes is codes else InMemory(table, weight, codes)


@dataclass(frozen=True, eq=False)
class InMemory(TableSummary):
    """The summary of a table in memory; ``head`` is the table itself."""

    stored: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Results of `cached`."""

    @cached_property
    def sample(self) -> Sample:
        return sample_of(self.head, self.weight, self.codes)

    def column(self, j: int) -> ColumnSummary:
        return self.cached(("column", j), lambda: self._summary(j))

    def missing_rows(self, j: int) -> int:
        return self._missing(j)[0]

    def missing_weight(self, j: int) -> float:
        return self._missing(j)[1]

    def levels(self, indices: Sequence[int], *, weights_needed: bool) -> list[tuple[Array, Array]]:
        return level_weights(self.head, indices, self._weights, weights_needed=weights_needed)

    def moments(self, indices: Sequence[int]) -> Moments:
        columns, has_missing = numeric_columns(self.head, indices)
        if has_missing:
            refuse_all_missing(self.head, indices, np.isnan(columns))
            return Moments(self._centers(columns), np.nanvar(columns, axis=0, dtype=np.float64))
        center = self._centers(columns)
        return Moments(center, moments.variances(columns, center))

    def check_numbers(self, indices: Sequence[int]) -> None:
        columns = numeric_matrix(self.head, indices, booleans=True)
        if not is_sparse(columns):  # a sparse table has no missing values
            refuse_all_missing(self.head, indices, np.isnan(columns))

    def contents(self, j: int) -> Array:
        return self.head.column(j)

    def encoded(self, encoder: Any) -> Any:
        return encoder.encode(self.head)

    def cached(self, key: Any, compute: Callable[[], Result]) -> Result:
        if key not in self.stored:
            self.stored[key] = compute()
        result: Result = self.stored[key]
        return result

    def _centers(self, columns: Array) -> Array:
        chosen = sample_positions(self.n)
        rows = columns[center_rows(self.n) if chosen is None else chosen[center_rows(len(chosen))]]
        return column_centers(rows, lambda places: np.nanmean(columns[:, places], axis=0, dtype=np.float64))

    def _missing(self, j: int) -> tuple[int, float]:
        def of_rows() -> tuple[int, float]:
            mask = self.head.missing_mask(j)
            return int(np.count_nonzero(mask)), float(self._weights @ mask)

        return (0, 0.0) if self._is_complete else self.cached(("missing", j), of_rows)

    def _known(self, j: int) -> slice | Array:
        """The rows whose value of column j is known."""
        return ~self.head.missing_mask(j) if self.missing_rows(j) else slice(None)

    def _known_numbers(self, j: int) -> Array:
        numbers = np.ascontiguousarray(self.head.column(j)[self._known(j)], dtype=np.float64)
        is_checked = self._is_complete or not len(numbers)
        if not is_checked and (numbers.min() < -LARGEST or numbers.max() > LARGEST):
            numeric_matrix(self.head, [j])  # raises ValueError
        return numbers

    def _summary(self, j: int) -> ColumnSummary:
        if not self.is_numeric(j):
            values, positions = distinct_values(self.head, j)
            return self._exact(j, values, positions[self._known(j)])
        numbers = self._known_numbers(j)
        found = distinct_positions(numbers, column.MOST_DISTINCT)
        return self._divided(j, numbers) if found is None else self._exact(j, *found)

    def _exact(self, j: int, values: Array, positions: Array) -> ColumnSummary:
        """The summary of a column with a cell for each distinct value."""
        rows, size = np.bincount(positions, minlength=len(values)), len(values)
        weights = (
            rows.astype(np.float64)
            if self._counts_rows
            else np.bincount(positions, self._weights[self._known(j)], size)
        )
        kept = positions if self.n <= KEPT_ROWS else None
        return values_summary(values, rows, weights, lambda: self._class_weights(j, size, kept))

    def _class_weights(self, j: int, size: int, positions: Array | None) -> Array:
        """Weights by class of a column with a cell for each of its distinct values, (cells, k + 1)."""
        known, columns = self._known(j), self.k + 1
        positions = self._positions(j, size) if positions is None else positions
        cells = positions * columns + self._labels[known] % columns  # -1, no label, becomes the last column
        return np.bincount(cells, self._weights[known], size * columns).reshape(size, columns)

    def _positions(self, j: int, size: int) -> Array:
        """Positions of the known values of column j among its distinct ones, of which there are ``size``."""
        if not self.is_numeric(j):
            return distinct_values(self.head, j)[1][self._known(j)]
        found = distinct_positions(self._known_numbers(j), size)
        return np.zeros(0, dtype=np.int64) if found is None else found[1]

    def _divided(self, j: int, numbers: Array) -> ColumnSummary:
        """The summary of a column with very many distinct numbers."""
        weight = self._weights[self._known(j)]
        tree, counts = divided(numbers, weight)

        def count_classes() -> Array:
            labels = self._labels[self._known(j)]
            return cell_weights(self._known_numbers(j), tree, labels, weight, self.k + 1)[counts.entries]

        return cells_summary(counts, distinct_sample(numbers, column.MOST_SAMPLED), count_classes)

    @cached_property
    def _is_complete(self) -> bool:
        """Whether the table is a matrix of numbers, none of them missing or too large."""
        content = self.head.content
        if isinstance(content, tuple) or content.dtype.kind not in "fiu":
            return False
        low, high = self.head.value_range(content)
        return low >= -LARGEST and high <= LARGEST  # false for NaN

    @cached_property
    def _counts_rows(self) -> bool:
        """Whether every row has weight 1."""
        return bool((self.weight == 1.0).all())

    @cached_property
    def _weights(self) -> Array:
        """Weights whose sums are the same in any order."""
        return summable(self.weight)

    @cached_property
    def _labels(self) -> Array:
        return np.full(self.n, -1) if self.codes is None else self.codes

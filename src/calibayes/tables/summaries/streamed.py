"""The summary of a table whose rows are not in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.distinct import LARGEST_COUNTED
from calibayes.tables.summaries.centers import center_rows, column_centers
from calibayes.tables.summaries.column import MOST_DISTINCT, ColumnSummary
from calibayes.tables.summaries.sample import Sample
from calibayes.tables.summaries.summary import Moments, TableSummary
from calibayes.tables.summaries.sums import ColumnSums
from calibayes.tables.table import holds_booleans, numeric_matrix, refuse_other_kind

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Streamed(TableSummary):
    """The summary of a table from sums over its blocks; ``head`` is the table of the sample."""

    drawn: Sample
    """The sample of the rows."""
    totals: Mapping[str, ColumnSums]
    """Position of a column, as a string -> its sums over all rows."""
    encode: Callable[[Any], Any]
    """Function of a fitted encoder that returns all rows, encoded."""
    stored: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Results of `cached`."""

    @property
    def sample(self) -> Sample:
        return self.drawn

    def column(self, j: int) -> ColumnSummary:
        return self.cached(("column", j), self._sums(j).summary)

    def missing_rows(self, j: int) -> int:
        return self._sums(j).missing_rows

    def missing_weight(self, j: int) -> float:
        return self._sums(j).missing_weight

    def levels(self, indices: Sequence[int], *, weights_needed: bool) -> list[tuple[Array, Array]]:
        self.refuse_all_missing(indices)
        columns = [(j, self.column(j)) for j in indices]
        return [
            (typed_values(column, self.head.column(j).dtype, self.names[j]), column.weight)
            for j, column in columns
        ]

    def moments(self, indices: Sequence[int]) -> Moments:
        refuse_other_kind(self.head, indices, "fiu")
        self.refuse_all_missing(indices)
        sums = [self._sums(j).moments for j in indices]
        means = np.array([0.0 if part is None else part.mean for part in sums])
        sample = self.sample.table
        few = sample.rows(np.arange(sample.n)[center_rows(sample.n)])
        center = column_centers(numeric_matrix(few, indices), lambda places: means[places])
        return Moments(center, np.array([0.0 if part is None else part.variance for part in sums]))

    def check_numbers(self, indices: Sequence[int]) -> None:
        others = [j for j in indices if not holds_booleans(self.contents(j))]
        refuse_other_kind(self.head, others, "fiub")
        self.refuse_all_missing(indices)

    def contents(self, j: int) -> Array:
        return self.column(j).low

    def encoded(self, encoder: Any) -> Any:
        return self.encode(encoder)

    def cached(self, key: Any, compute: Callable[[], Result]) -> Result:
        if key not in self.stored:
            self.stored[key] = compute()
        result: Result = self.stored[key]
        return result

    def _sums(self, j: int) -> ColumnSums:
        return self.totals[str(j)]


def typed_values(column: ColumnSummary, dtype: np.dtype[Any], name: str) -> Array:
    """Distinct values of a column in its own type. Raises ValueError if they are too many."""
    if not column.is_exact:
        raise ValueError(
            f"column {name!r} has more than {MOST_DISTINCT} distinct numbers, too many for a level each: "
            "bin its numbers, or leave it out"
        )
    values = column.low
    if dtype.kind not in "iu" or values.dtype.kind != "f":
        return values.astype(dtype) if dtype.kind == "f" else values
    is_small = values[0] >= 0 and values[-1] <= LARGEST_COUNTED
    return values.astype(np.int64 if is_small else dtype)

"""The summary of a table: the only thing that encoders are fitted to."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.cut_points import MULTIPLIER, CellCounts, DistinctSample, mixed
from calibayes.kernels.moments import weight_of_one
from calibayes.tables.origin import Origin
from calibayes.tables.table import LARGEST_COUNTED, AllMissingError, Table, distinct_values, refuse_other_kind

ROUNDS = 2
"""How often columns are told apart by the rows, and rows by the columns, in `order_hashes`."""


def content_hashes(table: Table, seed: int) -> Array:
    """A hash of the content of each row, (n,): equal rows have equal hashes. Identifiers and constant columns do not count."""
    hashes = np.full(table.n, np.uint64(seed) + MULTIPLIER)
    for j in table.used:
        words = _words(table, j)
        if (words[1:] != words[:1]).any():  # one that is constant must not act as another seed
            hashes = mixed(hashes ^ words)
    return hashes


def _words(table: Table, j: int) -> Array:
    """Cells as words: the bits of numbers, the position among the distinct values of everything else.

    Numbers are divided by a power of two, so that the largest is near 1 whatever their unit is.
    """
    if table.is_numeric(j):
        column = table.column(j).astype(np.float64)
        largest = np.abs(column).max(initial=0.0, where=np.isfinite(column))
        same = (
            np.where(np.isnan(column), np.nan, np.ldexp(column, -np.frexp(largest)[1])) + 0.0
        )  # one NaN, one zero
        return mixed(np.ascontiguousarray(same).view(np.uint64))
    return mixed(distinct_values(table, j)[1].astype(np.uint64))


def table_order_hashes(table: Table, positions: Array, codes: Array, counts: Array, seed: int) -> Array:
    """`order_hashes` of the rows of a table at ``positions``."""
    used = table.used
    return order_hashes(lambda j: _words(table, used[j])[positions], len(used), codes, counts, seed)


def order_hashes(words: Callable[[int], Array], d: int, codes: Array, counts: Array, seed: int) -> Array:
    """A hash of each row, (n,), that does not depend on the order of columns, of other rows, or of the classes.

    A row's hash is a sum over its columns, each with a key; the key of a column is a sum over the rows, and so is that of
    a class. Repeated, this tells all columns and classes apart that differ in their content (color refinement, as for
    graphs). Rows that only a symmetry of the whole table could tell apart have equal hashes.

    Parameters
    ----------
    words : function of a column's number
        Its cells as words, (n,).
    d : int
    codes : (n,) class codes
    counts : (n,) unsigned integers
        How often each row counts.
    seed : int
    """
    keys = np.zeros(d, dtype=np.uint64)
    class_keys = np.zeros(
        int(codes.max(initial=-1)) + 2, dtype=np.uint64
    )  # the last one is for rows without a label
    for round_ in range(ROUNDS + 1):
        hashes = mixed(np.full(len(codes), np.uint64(seed) + MULTIPLIER) ^ class_keys[codes])
        for j in range(d):
            column = words(j)
            if (column[1:] != column[:1]).any():
                hashes += mixed(column ^ keys[j])
        hashes = mixed(hashes)
        if round_ < ROUNDS:
            keys = np.array([_key(words(j) ^ hashes, counts) for j in range(d)], dtype=np.uint64)
            np.add.at(class_keys, codes, counts * mixed(hashes))
    return hashes


def _key(words: Array, counts: Array) -> np.uint64:
    return np.uint64((counts * mixed(words)).sum(dtype=np.uint64))


WEIGHT_STEPS = 2**40
"""In so many parts of all weight, weights of distinct rows are compared."""


def content_order(cells: Array, weight: Array, codes: Array) -> Array:
    """An order of distinct rows, (n,) positions, by `order_hashes` of their whole-number cells (n, d) and their weights.

    Weights tell columns apart whose distinct rows are the same, such as two flags in all combinations.
    """
    shares = np.rint(weight / (weight.sum() or 1.0) * WEIGHT_STEPS)
    words = np.column_stack([cells, shares]).astype(np.int64).astype(np.uint64)
    once = np.ones(len(words), dtype=np.uint64)
    return np.argsort(order_hashes(lambda j: words[:, j], words.shape[1], codes, once, 0), kind="stable")


# -- The summary of a table ------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from calibayes.tables.conversion import ColumnConversion

# -- How many distinct numbers the cells of a column have, estimated from a sample of the distinct numbers ---

TOGETHER = 64
"""Sampled numbers of neighboring cells that are taken together: fewer would make estimates too noisy."""


def distinct_estimates(counts: CellCounts, sampled: DistinctSample) -> Array:
    """Number of distinct numbers of each cell, cells ascending, (cells,); 1 for a cell of one number.

    Neighboring cells have distinct numbers in proportion to their rows, and together as many as the sample shows.
    """
    several = counts.low < counts.high
    low, high, rows = counts.low[several], counts.high[several], counts.rows[several]
    in_sample = np.searchsorted(sampled.values, high, side="right") - np.searchsorted(sampled.values, low)
    group = np.maximum(np.cumsum(in_sample) - 1, 0) // TOGETHER
    share = np.bincount(group, in_sample) * 2.0**sampled.zeros / np.maximum(np.bincount(group, rows), 1)
    estimates = np.ones(len(counts.rows))
    estimates[several] = np.maximum(np.minimum(share, 1.0)[group] * rows, 1.0)
    return estimates


# -- The summary of one column: its known values in ascending order, in cells, with rows and weights of each

MOST_DISTINCT = 2**16
"""Distinct numbers of a column up to which each is a cell of its own."""
MOST_SAMPLED = 2**12
"""Distinct numbers of a column with more, by which the number of them in each cell is estimated."""


@dataclass(frozen=True)
class ColumnSummary:
    """The known values of a column, ascending, in cells of neighboring values.

    A column with at most `MOST_DISTINCT` distinct values has a cell for each; a column of text has one for each in any
    case. A column with more distinct numbers has cells of the ordered bits of its numbers, which are divided until no
    cell with several distinct numbers has more than a 1024th of the rows (see `calibayes.tables.memory_summary`).
    Neither the order of the rows nor their division into blocks changes a cell.
    """

    low: Array
    """Smallest value of each cell, (cells,): float64 for numbers, otherwise of the type of the column."""
    high: Array
    """Largest value of each cell, (cells,); the same array as ``low`` if every cell is one value."""
    rows: Array
    """Number of rows of each cell, (cells,) integers."""
    weight: Array
    """Total weight of the rows of each cell, (cells,)."""
    distinct: Array
    """Number of distinct values of each cell, (cells,); estimated in cells of several values."""
    is_exact: bool
    """Whether every cell is one value."""
    count_classes: Callable[[], Array]
    """Function that returns `class_weights`, which take much memory if there are many classes."""

    @property
    def class_weights(self) -> Array:
        """Total weight of the rows of each cell by class, (cells, k + 1); the last column is that of rows without a label."""
        return self.count_classes()

    @property
    def values(self) -> Array:
        """A value for each cell, (cells,): the value itself, or the middle of the cell."""
        return self.low if self.is_exact else np.asarray((self.low + self.high) / 2)

    @property
    def midpoints(self) -> Array:
        """The points midway between neighboring cells, (cells - 1,)."""
        return np.asarray((self.low[1:] + self.high[:-1]) / 2)

    @property
    def distinct_count(self) -> int:
        """Number of distinct values; if not `is_exact`, an estimate above `MOST_DISTINCT`."""
        return len(self.low) if self.is_exact else max(int(self.distinct.sum()), MOST_DISTINCT + 1)


def values_summary(
    values: Array, rows: Array, weight: Array, count_classes: Callable[[], Array]
) -> ColumnSummary:
    """The summary of a column with a cell for each distinct value, ascending."""
    return ColumnSummary(
        values, values, rows, weight, np.ones(len(values)), is_exact=True, count_classes=count_classes
    )


def cells_summary(
    counts: CellCounts, sampled: DistinctSample, count_classes: Callable[[], Array]
) -> ColumnSummary:
    """The summary of a column with very many distinct numbers, from cells in any order and a sample of its distinct numbers."""
    order = np.argsort(counts.low)
    counts = CellCounts(*(part[order] for part in counts))
    return ColumnSummary(
        counts.low,
        counts.high,
        counts.rows,
        counts.weight,
        distinct_estimates(counts, sampled),
        is_exact=False,
        count_classes=lambda: count_classes()[order],
    )


# -- The rows that encoders of several columns at once learn from: all, or a sample by row number ------------

SAMPLE_ROWS = 2**17
"""All rows are the sample of a table with at most so many; of more rows, about so many are drawn."""


class Sample(NamedTuple):
    """Rows of a table, in their order."""

    table: Table
    weight: Array
    codes: Array | None
    """Class codes, -1 for a row without a label; None if the classes are not known."""


HASHED_ROWS = 2**16
"""Rows whose numbers are hashed at a time, so that hashes of all rows of a large table need no memory."""


def in_sample(first: int, count: int, n: int, most: int | None = None) -> Array:
    """Which of the rows from number ``first`` on are in the sample of a table with n rows, (count,) booleans.

    The sample has about ``most`` rows, by default `SAMPLE_ROWS`.
    A row is in the sample if a hash of its number is small: neither other rows nor their division into blocks matter.
    """
    most = SAMPLE_ROWS if most is None else most
    if n <= most:
        return np.ones(count, dtype=bool)
    chosen, bound = np.empty(count, dtype=bool), np.uint64(2**64 * most // n)
    for start in range(0, count, HASHED_ROWS):
        stop = min(start + HASHED_ROWS, count)
        numbers = np.arange(first + start + 1, first + stop + 1, dtype=np.uint64)
        chosen[start:stop] = mixed(mixed(numbers)) < bound
    return chosen


def sample_positions(n: int) -> Array | None:
    """Positions of the rows in the sample of a table with n rows; None if all are."""
    chosen = None if n <= SAMPLE_ROWS else in_sample(0, n, n)
    return None if chosen is None or chosen.all() else np.flatnonzero(chosen)


def sample_of(table: Table, weight: Array, codes: Array | None) -> Sample:
    """The sample of a table in memory."""
    chosen = sample_positions(table.n)
    if chosen is None:
        return Sample(table, weight, codes)
    return Sample(table.rows(chosen), weight[chosen], None if codes is None else codes[chosen])


# -- The summary of a table: the only thing that encoders are fitted to --------------------------------------

Result = TypeVar("Result")


class Moments(NamedTuple):
    """A point near most rows, and the variance of the known values, of columns of numbers, (d,) each."""

    center: Array
    variance: Array


def start_points(means: Array, variances: Array) -> Array:
    """Means (d,) in 20 bits of a standard deviation: the same for any order of rows, division into blocks, or repetition.

    Where values are missing, training starts from them.
    """
    scale = np.maximum(np.sqrt(variances), np.abs(means) * 2.0**-24)
    unit = np.ldexp(1.0, np.frexp(scale)[1] - 20)
    return np.asarray(np.rint(means / unit) * unit)


@dataclass(frozen=True, eq=False)
class TableSummary(ABC):
    """What encoders learn from: summaries of single columns, a sample of the rows, labels and weights.

    It is made of a table in memory (`MemorySummary`), or of sums over the blocks of a table (`Streamed`).
    """

    head: Table
    """A table with the same columns, of any number of rows."""
    weight: Array
    """Weight of each row, (n,)."""
    codes: Array | None
    """Class code of each row, (n,), -1 for a row without a label; None if the classes are not known."""
    stored: dict[Any, Any] = field(default_factory=dict, repr=False, kw_only=True)
    """Results of `cached`."""

    @property
    @abstractmethod
    def sample(self) -> Sample:
        """All rows of a table with at most `SAMPLE_ROWS`, else about as many, by row number: for encoders of several columns."""

    @abstractmethod
    def column(self, j: int) -> ColumnSummary:
        """The summary of column j."""

    @abstractmethod
    def missing_rows(self, j: int) -> int:
        """Number of rows whose value of column j is missing."""

    @abstractmethod
    def missing_weight(self, j: int) -> float:
        """Total weight of the rows whose value of column j is missing."""

    def levels(self, indices: Sequence[int], *, weights_needed: bool) -> list[tuple[Array, Array]]:
        """For each column its distinct values, ascending, in the type of the column, and their total weights.

        If the weights are not needed, they may be any positive numbers. Raises ValueError if a column is all missing.
        """
        self.refuse_all_missing(indices)
        columns = [(j, self.column(j)) for j in indices]
        return [
            (typed_values(column, self.stored_type(j), self.names[j]), column.weight) for j, column in columns
        ]

    @abstractmethod
    def moments(self, indices: Sequence[int]) -> Moments:
        """Centers and variances of columns of numbers. Raises ValueError if a column holds none."""

    @abstractmethod
    def check_numbers(self, indices: Sequence[int]) -> None:
        """Raises ValueError if a column holds neither numbers nor booleans, or is all missing."""

    def contents(self, j: int) -> Array:
        """Values of column j that show what it contains: all that are distinct, or all."""
        return self.column(j).low

    @abstractmethod
    def blocks(self, encoder: Any, counts: Any) -> Any:
        """All rows for the growth of trees (`calibayes.kernels.growth_rows`), encoded by a fitted encoder."""

    def cached(self, key: Any, compute: Callable[[], Result]) -> Result:
        """``compute()``, or its stored result if it was called before with this key."""
        if key not in self.stored:
            self.stored[key] = compute()
        result: Result = self.stored[key]
        return result

    def numbers(self, j: int) -> ColumnSummary:
        """`column`. Raises ValueError if it does not hold numbers, or is all missing."""
        refuse_other_kind(self.head, [j], "fiu")
        self.refuse_all_missing([j])
        return self.column(j)

    def refuse_all_missing(self, indices: Sequence[int]) -> None:
        """Raises AllMissingError if a column has no known value."""
        for j in indices:
            if self.missing_rows(j) == self.n:
                raise AllMissingError(self.names[j])

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.weight)

    @cached_property
    def k(self) -> int:
        """Number of classes: one more than the largest code; 0 if the classes are not known."""
        return 0 if self.codes is None else int(self.codes.max(initial=0)) + 1

    @cached_property
    def unit(self) -> float:
        """The weight of one row."""
        return weight_of_one(self.weight)

    @cached_property
    def total_weight(self) -> float:
        """The weight of all rows."""
        return float(self.weight.sum())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.head.names

    @property
    def source_names(self) -> tuple[str, ...]:
        """Names of the columns as they were read, without those that a conversion has added."""
        return self.head.source_names

    @property
    def used(self) -> Sequence[int]:
        """Positions of all columns but identifiers."""
        return self.head.used

    @property
    def origin(self) -> Origin:
        """The kind of table that was passed."""
        return self.head.origin

    @property
    def conversion(self) -> ColumnConversion | None:
        """How the columns were made from those that were read."""
        return self.head.conversion

    def types(self) -> tuple[np.dtype[Any], ...]:
        """The type of each column."""
        return self.head.types()

    def stored_type(self, j: int) -> np.dtype[Any]:
        """The type in which the cells of column j are stored."""
        kind: np.dtype[Any] = self.head.column(j).dtype
        return kind

    def dtype_kind(self, j: int) -> str:
        """NumPy's one-letter code of the type of column j."""
        return self.head.dtype_kind(j)

    def is_numeric(self, j: int) -> bool:
        """Whether column j contains numbers."""
        return self.dtype_kind(j) in "fiu"

    def is_derived(self, j: int) -> bool:
        """Whether column j was derived from another one."""
        return self.head.is_derived(j)


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


# -- Row weights whose sums are exact, and therefore the same in any order -----------------------------------

SUM_BITS = 51
"""Bits of the sum of all weights, in units of the rounding: with so many, sums in float64 are exact."""


ROUNDING = 1e-9
"""Relative difference between total weights that counts as rounding."""


def summable(weight: Array) -> Array:
    """Weights (n,) rounded to multiples of a power of two, so small that all sums of weights are exact.

    A weight changes by at most the rounding error of the sum of all weights. Whole numbers do not change.

    >>> weight = summable(np.array([0.1, 0.2, 0.3]))
    >>> bool(weight[0] + (weight[1] + weight[2]) == (weight[0] + weight[1]) + weight[2])
    True
    """
    return rounded(weight, rounding_unit(weight))


def rounding_unit(weight: Array) -> float:
    """The power of two whose multiples the weights (n,) of all rows are rounded to by `summable`."""
    _, exponent = math.frexp(float(weight.sum()))
    return math.ldexp(1.0, max(exponent - SUM_BITS, -1000))


def rounded(weight: Array, unit: float) -> Array:
    """Weights rounded to multiples of a power of two."""
    if len(weight) and not weight.strides[0]:  # one number for all rows
        return np.full(len(weight), rounded(weight[:1].copy(), unit)[0])
    return np.asarray(np.rint(weight / unit) * unit)


def reaches(weight: Any, least: float) -> Any:
    """Whether a total weight is at least ``least``, apart from rounding."""
    return weight >= (1.0 - ROUNDING) * least

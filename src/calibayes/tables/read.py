"""Tables as people have them: arrays, data frames, CSV and Parquet files."""

from __future__ import annotations

import csv
import datetime
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
from scipy.sparse import csr_array

from calibayes.core.protocols import Array
from calibayes.kernels.numbers import independent
from calibayes.kernels.numbers.sparse import is_sparse

Result = TypeVar("Result")


@dataclass(frozen=True)
class Table:
    """Named columns: one array of two dimensions, dense or CSR, where they are all of one type, else an array each."""

    names: tuple[str, ...]
    content: Array | tuple[Array, ...]
    given: tuple[np.dtype[Any], ...] = ()
    """Types of the columns before they were put side by side."""
    found: dict[int, tuple[Array, Array]] = field(default_factory=dict, repr=False, compare=False)
    """Distinct values of columns of objects and where each cell's value is among them (behind the last for a missing
    cell), as soon as somebody has asked: sorting text takes longer than most of what is done with it."""
    notes: dict[Any, tuple[Any, Any]] | None = field(default=None, repr=False, compare=False)
    """What encoders made of this table, where several models will ask for the same."""

    @property
    def n(self) -> int:
        return len(self.content[0]) if isinstance(self.content, tuple) else int(self.content.shape[0])

    def column(self, j: int) -> Array:
        if isinstance(self.content, tuple):
            return self.content[j]
        return self.content[:, [j]].toarray()[:, 0] if is_sparse(self.content) else self.content[:, j]

    def kind(self, j: int) -> str:
        """NumPy's letter for what a column holds."""
        return str((self.content[j] if isinstance(self.content, tuple) else self.content).dtype.kind)

    def first_unlike(self, indices: Sequence[int], kinds: str) -> int | None:
        """The first of some columns that holds something else than these kinds."""
        some = indices if isinstance(self.content, tuple) else indices[:1]
        return next((j for j in some if self.kind(j) not in kinds), None)

    def matrix(self, indices: Sequence[int]) -> Array:
        """Some columns side by side, (n, d)."""
        if isinstance(self.content, tuple):
            return np.stack([self.content[j] for j in indices], axis=1)
        everything = tuple(indices) == positions(self.content.shape[1])
        return self.content if everything else self.content[:, list(indices)]

    def without(self, name: str) -> tuple[Table, Array]:
        """The other columns, and this one."""
        if name not in self.names:
            raise ValueError(f"there is no column {name!r}; the columns are {', '.join(self.names)}")
        gone = self.names.index(name)
        left = [j for j in range(len(self.names)) if j != gone]
        several = isinstance(self.content, tuple)
        content = tuple(self.content[j] for j in left) if several else self.matrix(left)
        return Table(tuple(self.names[j] for j in left), content), self.column(gone)

    def types(self) -> tuple[np.dtype[Any], ...]:
        """The type of each column."""
        if self.given:
            return self.given
        if isinstance(self.content, tuple):
            return tuple(column.dtype for column in self.content)
        return (self.content.dtype,) * len(self.names)

    def gaps(self) -> int:
        """How many cells are missing."""
        if not isinstance(self.content, tuple) and is_sparse(self.content):
            return int(missing(self.content.data).sum())
        return sum(int(missing(self.column(j)).sum()) for j in range(len(self.names)))

    def extent(self, matrix: Array) -> tuple[float, float]:
        """Least and largest number of a matrix made of these columns; NaN where a cell is missing."""
        return self._extent if matrix is self.content else independent.extent(_stored(matrix))

    @cached_property
    def _extent(self) -> tuple[float, float]:
        """That of the whole table, looked for once though several ask."""
        return independent.extent(_stored(self.content))

    def noting(self) -> Table:
        """The same table, and those made of its rows, with notes of what encoders make of them."""
        return replace(self, notes={})

    def noted(self, name: Any, owner: Any, make: Callable[[], Result]) -> Result:
        """What ``make`` gives, or has given before to the same owner under that name."""
        if self.notes is None:
            return make()
        if name not in self.notes or self.notes[name][0] is not owner:
            self.notes[name] = owner, make()
        found: Result = self.notes[name][1]
        return found

    def rows(self, keep: Array) -> Table:
        """The rows where ``keep`` is true, or at these positions."""
        if keep.dtype == np.bool_ and keep.all():
            return self
        found = {j: _only(*entry, keep) for j, entry in self.found.items()}
        several = isinstance(self.content, tuple)
        content = tuple(column[keep] for column in self.content) if several else self.content[keep]
        return replace(self, content=content, found=found, notes=None if self.notes is None else {})

    def absent(self, j: int) -> Array:
        """Which cells of a column are missing, (n,) booleans."""
        if j not in self.found:
            return missing(self.column(j))
        values, place = self.found[j]
        return np.asarray(place == len(values))

    def numeric(self, j: int) -> bool:
        """Whether a column holds numbers (booleans are levels, not numbers)."""
        return self.kind(j) in "fiu"


def _stored(matrix: Array) -> Array:
    return matrix.data if is_sparse(matrix) else matrix


def _only(values: Array, place: Array, keep: Array) -> tuple[Array, Array]:
    """The distinct values of some rows, and where each of theirs is among them."""
    kept = place[keep]
    there = np.bincount(kept, minlength=len(values) + 1)[:-1] > 0
    moved = np.append(np.cumsum(there) - 1, there.sum())
    return values[there], moved[kept]


def is_frame(table: Any) -> bool:
    """Whether it is a data frame of some library rather than an array."""
    return bool(nw.dependencies.is_into_dataframe(table))


def as_cells(rows: list[Any]) -> Array:
    """Rows given as lists, as an array of objects; left to others to complain about where they are no table."""
    try:
        cells = np.array(rows, dtype=object)
    except ValueError as error:
        raise ValueError("rows of different lengths") from error
    return cells if cells.ndim == 2 else np.asarray(rows)


def read_array(array: Array, names: Sequence[str] | None = None) -> Table:
    """The columns of an array of numbers, strings or objects, or of a sparse one of numbers."""
    named = tuple(names) if names is not None else array_names(array.shape[1])
    if array.dtype.kind in "mM":
        raise ValueError(f"column {named[0]!r} {DATES}")
    if is_sparse(array):
        return Table(named, _canonical(array))
    if array.dtype.kind != "O":
        return Table(named, array)
    return Table(named, tuple(_narrowed(column, name) for column, name in zip(array.T, named, strict=True)))


@lru_cache(maxsize=8)
def positions(d: int) -> tuple[int, ...]:
    """All positions of d columns, of which there may be very many."""
    return tuple(range(d))


@lru_cache(maxsize=8)
def array_names(d: int) -> tuple[str, ...]:
    """Names of columns that have none."""
    return tuple(f"x{j}" for j in range(d))


def _canonical(matrix: Any) -> Array:
    """A CSR array with each cell stored once, so that what holds of stored values holds of cells."""
    rows = csr_array(matrix)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def read_frame(frame: Any) -> Table:
    """The columns of a pandas, polars, pyarrow, ... data frame."""
    native = nw.from_native(frame, eager_only=True)
    names = tuple(str(name) for name in native.columns)
    if not names:
        raise ValueError("the table has no columns")
    if len(native) == 0:
        raise ValueError("Found array with 0 sample(s): the table has no rows")
    columns = [_series(series) for series in native.iter_columns()]
    return Table(refuse_duplicates(names), _together(columns), tuple(column.dtype for column in columns))


def refuse_duplicates(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, if they all differ."""
    twice = [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"column {twice[0]!r} is there more than once")
    return names


DATES = (
    "holds dates or times, which no family models: "
    "turn it into numbers (days since ...) or levels (weekday, month) first"
)


def _series(series: Any) -> Array:
    if series.dtype.is_temporal():
        raise ValueError(f"column {series.name!r} {DATES}")
    if series.dtype.is_numeric():
        whole = series.cast(nw.Float64) if series.null_count() else series
        values = np.asarray(whole.to_numpy())
        return values.astype(np.float64) if values.dtype.kind == "O" else values
    cells = np.asarray(series.to_numpy(), dtype=object)
    declared = isinstance(series.dtype, nw.Categorical | nw.Enum)
    return cells if declared else _narrowed(cells, str(series.name))


def _together(columns: list[Array]) -> Array | tuple[Array, ...]:
    if columns and all(column.dtype.kind in "fiu" for column in columns):
        return np.stack(columns, axis=1)
    return tuple(columns)


def _narrowed(column: Array, name: str) -> Array:
    """An array of objects as numbers or booleans, where every cell that is not missing is such.

    A column that is all missing is one of numbers, since any family can read that.
    """
    if set(map(type, column)) <= {str}:  # text alone is quick to tell
        return column if len(column) else np.full(0, np.nan)
    absent = _missing_objects(column)
    kinds = {type(value) for value in column[~absent]}
    if any(
        issubclass(kind, datetime.date | datetime.time | np.datetime64 | np.timedelta64) for kind in kinds
    ):
        raise ValueError(f"column {name!r} {DATES}")
    strange = [kind.__name__ for kind in kinds if issubclass(kind, dict | list | set | tuple | np.ndarray)]
    if strange:
        raise TypeError(f"column {name!r}: a cell's argument must be a string or a number, not {strange[0]}")
    if not kinds:
        return np.full(len(column), np.nan)
    if kinds & {bool, np.bool_} and not kinds <= {bool, np.bool_}:  # else True would be the level 1
        raise ValueError(
            f"column {name!r} mixes values of types {', '.join(sorted(k.__name__ for k in kinds))}"
        )
    if kinds <= {bool, np.bool_} and not absent.any():
        return column.astype(bool)
    whole = all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds)
    if whole and not absent.any() and all(-(2**63) <= int(value) < 2**63 for value in column):
        return column.astype(np.int64)
    if all(issubclass(kind, int | float | np.integer | np.floating) and kind is not bool for kind in kinds):
        return np.where(absent, np.nan, column).astype(np.float64)
    return column


def holds_booleans(column: Array) -> bool:
    """Whether an array of objects holds booleans and missing cells alone."""
    return column.dtype.kind == "O" and all(
        isinstance(value, bool | np.bool_) or is_missing(value) for value in column
    )


def is_missing(value: Any) -> bool:
    """None, NaN, NaT or a data-frame library's NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def missing(column: Array) -> Array:
    """Which cells of a column are missing, (n,) booleans."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind == "O" and not set(map(type, column)) <= {str}:  # text alone is quick to tell
        return _missing_objects(column)
    return np.zeros(len(column), dtype=bool)


def _missing_objects(column: Array) -> Array:
    return np.array([type(value) is not str and is_missing(value) for value in column], dtype=bool)


def read_file(path: Path) -> Table:
    """A table from a file: Parquet by its ending, else comma-separated values with a header, gzip or not."""
    if not path.exists():
        raise ValueError(f"there is no file {path}")
    return _read_parquet(path) if path.suffix in (".parquet", ".pq") else _read_csv(path)


def _read_parquet(path: Path) -> Table:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ValueError("reading Parquet files needs pyarrow: pip install 'calibayes[parquet]'") from error
    return read_frame(parquet.read_table(path))


def _read_csv(path: Path) -> Table:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, row) for row in reader if row]
    except (UnicodeDecodeError, csv.Error, EOFError, OSError) as error:
        raise ValueError(f"{path} is no readable CSV file in UTF-8: {error}") from error
    if len(rows) < 2:
        raise ValueError(f"{path} has no rows below its header")
    header, body = rows[0][1], rows[1:]
    uneven = [line for line, row in body if len(row) != len(header)]
    if uneven:
        raise ValueError(
            f"{path}: row {uneven[0]} has another number of cells than the header ({len(header)})"
        )
    columns = [
        _parsed(np.array(cells, dtype=object)) for cells in zip(*(row for _, row in body), strict=True)
    ]
    return Table(refuse_duplicates(tuple(header)), tuple(columns))


NOT_AVAILABLE = {"", "NA", "NaN", "nan", "null", "NULL", "None"}


def _parsed(cells: Array) -> Array:
    """Text cells as numbers where all that are there are numbers, else as text with None for what is missing."""
    absent = np.array([cell.strip() in NOT_AVAILABLE for cell in cells])
    try:
        return np.array([np.nan if gone else _number(cell) for cell, gone in zip(cells, absent, strict=True)])
    except ValueError:
        return np.array(
            [None if gone else cell for cell, gone in zip(cells, absent, strict=True)], dtype=object
        )


def _number(cell: str) -> float:
    """A number as files have it: Python's own spelling with underscores is none."""
    if "_" in cell:
        raise ValueError(cell)
    return float(cell)

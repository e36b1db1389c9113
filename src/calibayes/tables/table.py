"""The class Table: named columns, some of whose values may be missing."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from calibayes.core.notices import counted, listed
from calibayes.core.protocols import AnyArray, Array
from calibayes.core.verify import require, require_length
from calibayes.kernels import moments
from calibayes.kernels.event_counts import columns_where, is_sparse
from calibayes.tables.origin import FROM_ARRAY, FromFrame, Origin

if TYPE_CHECKING:
    from calibayes.tables.conversion import ColumnConversion

# -- A column of objects (text, flags with gaps) as distinct values and codes; its cells are made only if they are needed


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column that behaves like an object array of shape (n,).

    A Python object per row takes more time and memory than most of what is done with a column of text. `Table.column`
    gives an ordinary array.

    >>> column = CodedColumn(np.array(["a", "b"], dtype=object), np.array([1, 0, 2]))
    >>> column.dtype, column.shape, column[0], column.array().tolist()
    (dtype('O'), (3,), 'b', ['b', 'a', None])
    """

    values: Array
    """Distinct values in ascending order, objects, (v,); some may occur in no row."""
    codes: Array
    """Position of each row's value, (n,); v where missing."""

    dtype: ClassVar[np.dtype[Any]] = np.dtype(object)
    ndim: ClassVar[int] = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """(n,)"""
        return (len(self.codes),)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Any:
        codes = self.codes[rows]
        return CodedColumn(self.values, codes) if np.ndim(codes) else self._cells()[codes]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        cells = self.array()
        return cells if dtype is None else cells.astype(dtype)

    def array(self) -> Array:
        """The cells as an object array, None where missing."""
        return self._cells()[self.codes]

    def _cells(self) -> Array:
        return np.append(self.values, np.array([None], dtype=object))


def as_array(column: Any) -> Array:
    """A column as an ordinary array: the cells of a `CodedColumn`, anything else unchanged."""
    return column.array() if isinstance(column, CodedColumn) else column


def sorted_codes(cells: Iterable[Any]) -> tuple[Array, Array]:
    """Distinct known values, ascending, (v,), and the position of each cell's value in them, (n,); v for None.

    Only the distinct values are sorted, which is faster than sorting all cells if they are few.

    >>> values, codes = sorted_codes(["b", None, "a"])
    >>> values.tolist(), codes.tolist()
    (['a', 'b'], [1, 2, 0])
    """
    given = list(cells)
    known = dict.fromkeys(given)
    known.pop(None, None)
    values = np.empty(len(known), dtype=object)
    values[:] = sorted(known)
    positions = {value: code for code, value in enumerate(values.tolist())} | {None: len(values)}
    return values, np.fromiter(map(positions.__getitem__, given), dtype=np.int64, count=len(given))


def coded_columns(columns: Sequence[Any]) -> dict[int, tuple[Array, Array]]:
    """Position -> distinct values and codes of those columns that are a `CodedColumn`."""
    return {j: (c.values, c.codes) for j, c in enumerate(columns) if isinstance(c, CodedColumn)}


def occurring(values: Array, codes: Array) -> tuple[Array, Array]:
    """Those of some values that occur, and their codes (n,), from codes of all values; v where missing."""
    occurs = np.bincount(codes, minlength=len(values) + 1)[:-1] > 0
    new_codes = np.append(np.cumsum(occurs) - 1, occurs.sum())
    return values[occurs], new_codes[codes]


# -- The class Table: named columns, some of whose values may be missing -------------------------------------

Result = TypeVar("Result")

LARGEST = 1e100
"""Larger absolute values are refused: sums of their squares overflow."""


@dataclass(frozen=True)
class Table:
    """Named columns of equal length.

    Columns of one type are stored as one array of shape (n, d), dense or sparse (CSR); columns of several types as a
    tuple of d arrays of shape (n,), some of which may be a `CodedColumn`.
    """

    names: tuple[str, ...]
    content: Array | tuple[Array | CodedColumn, ...]
    original_types: tuple[np.dtype[Any], ...] = ()
    """Types of the columns before they were stacked into one array; empty if they were not."""
    origin: Origin = FROM_ARRAY
    """The kind of table that was passed, so that sampled rows can be returned as the same kind."""
    distinct_cache: dict[int, tuple[Array, Array]] = field(default_factory=dict, repr=False, compare=False)
    """Position of an object column -> its distinct values and codes, as `tables.table.distinct_values` returns them.

    They are stored at the first call, because sorting strings takes longer than most of what is done with the codes."""
    missing_cache: dict[int, Array] = field(default_factory=dict, repr=False, compare=False)
    """Position of an object column -> which of its values are missing, stored at the first call of `missing_mask`."""
    zones: Mapping[int, str] = field(default_factory=dict)
    """Position of a column of dates -> its time zone; such dates are stored in UTC."""
    conversion: ColumnConversion | None = field(default=None, repr=False, compare=False)
    """How these columns were made from those of a data frame or array; None for columns as they were read."""
    originals: Mapping[int, Array] = field(default_factory=dict, repr=False, compare=False)
    """Position of a converted column -> the column as it was read."""
    cache: dict[Any, tuple[Any, Any]] | None = field(default=None, repr=False, compare=False)
    """Key -> (owner, result) of `cached`: fitted encoders and encoded columns that several models share; None: off."""

    n: int = field(init=False, repr=False, compare=False)
    """Number of rows."""
    content_range: tuple[float, float] | None = field(default=None, init=False, repr=False, compare=False)
    """`value_range` of all columns, computed once: several encoders need it."""

    def __post_init__(self) -> None:
        first = next(iter(self.content), np.zeros(0)) if isinstance(self.content, tuple) else self.content
        object.__setattr__(self, "n", int(first.shape[0]))

    def column(self, j: int) -> Array:
        """Column j as a dense array, (n,)."""
        if isinstance(self.content, tuple):
            return as_array(self.content[j])
        return self.content[:, [j]].toarray()[:, 0] if is_sparse(self.content) else self.content[:, j]

    def stored_column(self, j: int) -> Array | CodedColumn:
        """Column j as it is stored: a `CodedColumn` stays one."""
        return self.content[j] if isinstance(self.content, tuple) else self.column(j)

    @property
    def source_names(self) -> tuple[str, ...]:
        """Names of the columns as they were read, without those that a conversion has added."""
        return self.names if self.conversion is None else self.conversion.names

    @property
    def used(self) -> Sequence[int]:
        """Positions of all columns but identifiers, which are left out unless a family is bound to them."""
        left_out = () if self.conversion is None else self.conversion.identifiers
        positions = range(len(self.names))
        return [j for j in positions if j not in left_out] if left_out else positions

    def dtype_kind(self, j: int) -> str:
        """NumPy's one-letter code of the type of column j: "f", "i", "u", "b", "O", "U", "M", "m"."""
        return str((self.content[j] if isinstance(self.content, tuple) else self.content).dtype.kind)

    def is_numeric(self, j: int) -> bool:
        """Whether column j contains numbers; booleans are levels, not numbers."""
        return self.dtype_kind(j) in "fiu"

    def is_categorical(self, j: int) -> bool:
        """Whether column j is of a categorical type of a data-frame library."""
        return isinstance(self.origin, FromFrame) and self.origin.categorical[j]

    def matrix(self, indices: Sequence[int]) -> Array:
        """The given columns as one array, (n, len(indices)); not a copy if they are all columns of a stored array."""
        if isinstance(self.content, tuple):
            return np.stack([self.content[j] for j in indices], axis=1)
        everything = tuple(indices) == all_positions(self.content.shape[1])
        return self.content if everything else self.content[:, list(indices)]

    def without(self, name: str) -> tuple[Table, Array]:
        """The table without one column, and that column. Raises ValueError if there is none of that name."""
        if name not in self.names:
            raise ValueError(f"there is no column {name!r}; the columns are {listed(self.names)}")
        removed = self.names.index(name)
        others = [j for j in range(len(self.names)) if j != removed]
        is_tuple = isinstance(self.content, tuple)
        content = tuple(self.content[j] for j in others) if is_tuple else self.matrix(others)
        zones = {place: self.zones[j] for place, j in enumerate(others) if j in self.zones}
        return Table(tuple(self.names[j] for j in others), content, zones=zones), self.column(removed)

    def types(self) -> tuple[np.dtype[Any], ...]:
        """The type of each column, before stacking."""
        if self.original_types:
            return self.original_types
        if isinstance(self.content, tuple):
            return tuple(column.dtype for column in self.content)
        return (self.content.dtype,) * len(self.names)

    def is_derived(self, j: int) -> bool:
        """Whether column j was derived from another one (a month from a date), which has the same missing values."""
        return j >= len(self.source_names)

    def missing_mask(self, j: int) -> Array:
        """Which values of column j are missing, (n,) booleans."""
        if j in self.distinct_cache:
            values, codes = self.distinct_cache[j]
            return np.asarray(codes == len(values))
        if self.dtype_kind(j) != "O":
            return missing_mask(self.column(j))
        if j not in self.missing_cache:
            self.missing_cache[j] = missing_mask(self.column(j))
        return self.missing_cache[j]

    def value_range(self, matrix: AnyArray) -> tuple[float, float]:
        """Minimum and maximum of a matrix of columns of this table; NaN if a value is missing."""
        is_whole = matrix is self.content
        if is_whole and self.content_range is not None:
            return self.content_range
        found = moments.extent(matrix.data if is_sparse(matrix) else matrix)
        if is_whole:
            object.__setattr__(self, "content_range", found)
        return found

    def with_cache(self) -> Table:
        """The same table with an empty cache (see `cached`); tables of some of its rows get a cache of their own."""
        return replace(self, cache={})

    def cached(self, key: Any, owner: Any, compute: Callable[[], Result]) -> Result:
        """``compute()``, or its stored result if it was called before with this key and this very owner object.

        Several models fitted to one table then share encoders and encoded columns. Without a cache (the default) each
        call computes.
        """
        if self.cache is None:
            return compute()
        if key not in self.cache or self.cache[key][0] is not owner:
            self.cache[key] = owner, compute()
        return self.cache[key][1]

    def rows(self, selection: Array) -> Table:
        """The rows where ``selection`` (booleans) is true, or at these positions (integers)."""
        if selection.dtype == np.bool_:
            if selection.all():
                return self
            selection = np.flatnonzero(selection)  # faster for several columns
        known = self.distinct_cache.items()
        distinct = {j: occurring(values, codes[selection]) for j, (values, codes) in known}
        parts = self.content
        content = tuple(part[selection] for part in parts) if isinstance(parts, tuple) else parts[selection]
        originals = {j: column[selection] for j, column in self.originals.items()}
        cache: dict[Any, tuple[Any, Any]] | None = None if self.cache is None else {}
        return replace(
            self, content=content, distinct_cache=distinct, missing_cache={}, originals=originals, cache=cache
        )


@lru_cache(maxsize=8)
def all_positions(d: int) -> tuple[int, ...]:
    """(0, ..., d - 1); cached, because d may be very large."""
    return tuple(range(d))


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or the NA of a data-frame library."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def missing_mask(column: Array) -> Array:
    """Which values of a column are missing, (n,) booleans."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind == "O" and not set(map(type, column)) <= {str}:  # a fast test for strings only
        return missing_objects(column)
    return np.zeros(len(column), dtype=bool)


def missing_objects(column: Array) -> Array:
    """`missing_mask` of an object array."""
    return np.array([type(value) is not str and is_missing(value) for value in column], dtype=bool)


def holds_booleans(column: Array | CodedColumn) -> bool:
    """Whether an array is an object array of booleans and missing values only."""
    return column.dtype.kind == "O" and all(
        isinstance(value, bool | np.bool_) or is_missing(value) for value in column
    )


class AllMissingError(ValueError):
    """A column has no known value."""

    def __init__(self, name: str) -> None:
        super().__init__(f"column {name!r} is all missing: leave it out")


def refuse_all_missing(table: Table, indices: Sequence[int], missing: Array) -> None:
    """Raise AllMissingError if a column of the mask ``missing`` (n, len(indices)) is true in all rows."""
    for j, column_missing in zip(indices, missing.T, strict=True):
        if column_missing.all():
            raise AllMissingError(table.names[j])


def numeric_matrix(table: Table, indices: Sequence[int], *, booleans: bool = False) -> Array:
    """The given columns as a float matrix, (n, len(indices)), NaN where a value is missing.

    float32 columns stay float32, a sparse table stays sparse. Boolean columns are accepted as 0 and 1 if ``booleans``.
    Raises ValueError if a column is not numeric, contains infinity or values beyond 1e100, or contains NaN in a sparse
    table.
    """
    table = _booleans_as_numbers(table, indices) if booleans else table
    kinds = "fiub" if booleans else "fiu"
    if isinstance(table.content, tuple) or table.content.dtype.kind not in kinds:
        refuse_other_kind(table, indices, kinds)
    matrix = table.matrix(indices)
    matrix = matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    limit = min(LARGEST, float(np.finfo(matrix.dtype).max))
    low, high = table.value_range(matrix)
    if not (-limit <= low and high <= limit):  # also if a value is missing: then each column is checked
        _refuse_large(table, indices, matrix, limit)
    if is_sparse(matrix) and np.isnan(matrix.data).any():
        name = table.names[indices[columns_where(matrix, np.isnan)[0]]]
        raise ValueError(f"column {name!r} contains NaN: a sparse table cannot have missing values")
    return matrix


def integer_matrix(table: Table, indices: Sequence[int]) -> Array | None:
    """The columns as one integer array (n, d), or None if the table is not stored as one."""
    if isinstance(table.content, tuple) or is_sparse(table.content) or table.content.dtype.kind not in "iu":
        return None
    return table.matrix(indices)


def refuse_other_kind(table: Table, indices: Sequence[int], kinds: str) -> None:
    """Raise ValueError if the type of a column is none of these kinds."""
    candidates = indices if isinstance(table.content, tuple) else indices[:1]
    other = next((j for j in candidates if table.dtype_kind(j) not in kinds), None)
    if other is None:
        return
    column = f"column {table.names[other]!r}"
    known = () if table.conversion is None else table.conversion.types
    if other < len(known) and known[other].kind in kinds:
        first = next((value for value in table.column(other) if not is_missing(value)), None)
        raise ValueError(
            f"{column} held numbers in training and now holds other values, such as {first!r}: could not convert them to float. "
            "Correct these cells, or mark them as missing (pandas.to_numeric with errors='coerce')"
        )
    raise ValueError(
        f"{column} does not hold numbers: could not convert its values to float. NaiveBayes and BayesClassifier read it as a "
        "categorical column, unless it is given a kind of numbers; LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis and "
        "GenerativeLogisticRegression read it with encoder='dense'"
    )


def _booleans_as_numbers(table: Table, indices: Sequence[int]) -> Table:
    """The table with object columns of booleans and missing values as 0, 1 and NaN."""
    if not isinstance(table.content, tuple):
        return table
    columns = list(table.content)
    for j in indices:
        if holds_booleans(columns[j]):
            columns[j] = np.array([np.nan if is_missing(value) else float(value) for value in columns[j]])
    return Table(table.names, tuple(columns), conversion=table.conversion)


def _refuse_large(table: Table, indices: Sequence[int], matrix: Array, limit: float) -> None:
    """Raise ValueError if a number is infinite, or so large that its square overflows."""
    too_large = columns_where(matrix, lambda values: np.abs(values) > limit)
    if len(too_large):
        first = indices[too_large[0]]
        is_infinite = np.isinf(table.column(first)).any()
        problem = "infinity" if is_infinite else f"values beyond {LARGEST:g}, whose squares overflow"
        advice = "replace such values by missing ones, or leave these rows out"
        raise ValueError(f"column {table.names[first]!r} contains {problem}: {advice}")


# -- The distinct values of a column, sorted, and the code of each row's value -------------------------------

LARGEST_COUNTED = 2**16
"""Integer columns from 0 up to this are sorted by counting, which is much faster than comparing."""


def distinct_values(table: Table, j: int) -> tuple[Array, Array]:
    """Sorted distinct values of column j, (v,), and the position of each row's value in them, (n,); v where missing.

    The result for an object column is kept in the table.

    >>> from calibayes.tables.read import read_array
    >>> table = read_array(np.array([["b"], ["a"], [None], ["b"]], dtype=object))
    >>> values, codes = distinct_values(table, 0)
    >>> values.tolist(), codes.tolist()
    (['a', 'b'], [1, 0, 2, 1])
    """
    if j in table.distinct_cache:
        return table.distinct_cache[j]
    column = table.column(j)
    result = _sorted_with_codes(column, table.missing_mask(j), table.names[j])
    if column.dtype.kind == "O":
        table.distinct_cache[j] = result
    return result


def _sorted_with_codes(column: Array, missing: Array, name: str) -> tuple[Array, Array]:
    if missing.any():
        known = ~missing
        values, known_codes = _sorted_with_codes(column[known], missing[known], name)
        codes = np.full(len(column), len(values))
        codes[known] = known_codes
        return values, codes
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise ValueError(
            f"column {name!r} contains infinity: replace such values by missing ones, or leave these rows out"
        )
    if column.dtype.kind in "iu" and len(column) and column.min() >= 0 and column.max() <= LARGEST_COUNTED:
        present = np.bincount(column) > 0
        return np.flatnonzero(present), (np.cumsum(present) - 1)[column]
    if column.dtype.kind == "O" and set(map(type, column)) <= {str}:
        return sorted_codes(column)
    try:
        return np.unique(column, return_inverse=True)
    except TypeError as error:
        types = sorted({type(value).__name__ for value in column})
        raise ValueError(f"column {name!r} mixes values of types {', '.join(types)}") from error


# -- The size of the training table, and what its columns hold ------------------------------------------------


INTEGER_KINDS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
NUMBER_KINDS = INTEGER_KINDS | {"float16", "float32", "float64", "longdouble"}
OTHER_KINDS = frozenset(("boolean", "category", "date", "datetime", "duration", "object", "string"))


@dataclass(frozen=True)
class TrainingTable:
    """Size and columns of the table that a model was trained on, as it was given.

    Attributes
    ----------
    rows : int
        Number of rows with a positive weight; later calls of `partial_fit` and merged models add theirs.
    labeled : int
        Those with a label: fewer than ``rows`` only if the rule learns from rows without one (``rule="em"``).
    columns : tuple of str
        Names of the columns; x0, x1, ... for an array.
    kinds : tuple of str
        What each column of the first table holds: a NumPy type of numbers such as "float64", or "boolean", "category",
        "date", "datetime", "duration", "string" or "object".
    missing : tuple of int
        Number of missing cells in each column.
    missing_values : tuple of str, optional
        Texts that the file of the table has for missing cells, if they were given (``calibayes fit --missing-value``);
        files to predict are read with the same ones. None: the usual ones.
    """

    rows: int
    labeled: int
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    missing: tuple[int, ...]
    missing_values: tuple[str, ...] | None = None

    @property
    def missing_cells(self) -> int:
        """Number of missing cells in all columns."""
        return sum(self.missing)

    def __add__(self, other: TrainingTable) -> TrainingTable:
        """The rows of both tables, which have the same columns."""
        rows, labeled = self.rows + other.rows, self.labeled + other.labeled
        missing = (
            tuple(map(operator.add, self.missing, other.missing)) if any(other.missing) else self.missing
        )
        return replace(self, rows=rows, labeled=labeled, missing=missing)

    def __sub__(self, other: TrainingTable) -> TrainingTable:
        """The table without the rows of another one.

        No number falls below zero or, for cells of a column, exceeds the rows: a row that was learned with weight 2 and
        removed with weight 1 twice was one row.
        """
        rows = max(self.rows - other.rows, 0)
        left = (max(now - removed, 0) for now, removed in zip(self.missing, other.missing, strict=True))
        labeled = min(max(self.labeled - other.labeled, 0), rows)
        return replace(self, rows=rows, labeled=labeled, missing=tuple(min(count, rows) for count in left))

    def __str__(self) -> str:
        """One line: "344 rows, 7 columns, 19 missing cells"."""
        labeled = f" ({self.labeled} with a label)" if self.labeled < self.rows else ""
        columns, cells = counted(len(self.columns), "column"), counted(self.missing_cells, "missing cell")
        return f"{counted(self.rows, 'row')}{labeled}, {columns}, {cells}"

    def verify(self) -> None:
        """Raises ValueError if the numbers do not fit together."""
        require(self.rows >= 0, f"the training table has {self.rows} rows")
        labeled = f"{self.labeled} of {self.rows} rows of the training table have a label"
        require(0 <= self.labeled <= self.rows, labeled)
        require_length("kinds of the training table", self.kinds, len(self.columns))
        require_length("missing cells of the training table", self.missing, len(self.columns))
        are_different = len(set(self.columns)) == len(self.columns)
        require(are_different, "two columns of the training table have one name")
        unknown = sorted(set(self.kinds) - NUMBER_KINDS - OTHER_KINDS)
        require(not unknown, f"the training table has a column of the unknown kind {unknown[:1]}")
        outside = [count for count in self.missing if not 0 <= count <= self.rows]
        require(not outside, f"a column of {self.rows} training rows has {outside[:1]} missing cells")


def training_table(table: Table, labeled: int | None = None) -> TrainingTable:
    """The record of a table of training rows, of which all or ``labeled`` ones have a label."""
    labeled = table.n if labeled is None else labeled
    return TrainingTable(table.n, labeled, table.source_names, _kinds(table), _missing(table))


def _missing(table: Table) -> tuple[int, ...]:
    """Number of missing cells of each column as it was read; a converted column has the same missing cells."""
    d, content = len(table.source_names), table.content
    if isinstance(content, tuple):
        return tuple(_missing_in(table, j) for j in range(d))
    if content.dtype.kind == "f" and not np.isnan(table.value_range(content)[0]):
        return (0,) * d
    if is_sparse(content):
        return tuple(np.bincount(content.indices[np.isnan(content.data)], minlength=d).tolist())
    if content.dtype.kind == "f":
        return tuple(moments.missing_counts(content).tolist())
    return tuple(_missing_in(table, j) for j in range(d)) if content.dtype.kind in "mM" else (0,) * d


def _missing_in(table: Table, j: int) -> int:
    return int(np.count_nonzero(table.missing_mask(j))) if table.dtype_kind(j) in "fmMO" else 0


def _kinds(table: Table) -> tuple[str, ...]:
    types = table.types() if table.conversion is None else table.conversion.types
    if not isinstance(table.content, tuple) and types.count(types[0]) == len(types):
        return (_kind_of_type(types[0]),) * len(types)
    return tuple(_column_kind(table, j, dtype) for j, dtype in enumerate(types))


def _column_kind(table: Table, j: int, dtype: np.dtype[Any]) -> str:
    if table.is_categorical(j):
        return "category"
    if isinstance(table.origin, FromFrame) and table.origin.days[j]:
        return "date"
    if dtype.kind != "O":
        return _kind_of_type(dtype)
    column = table.originals[j] if j in table.originals else table.column(j)
    return _object_kind(column, table.missing_mask(j))


def _object_kind(column: Array, missing: Array) -> str:
    """The type of the first known value: a column that mixes types is refused by the models."""
    known = np.argmin(missing)
    first = None if missing[known] else column[known]
    if isinstance(first, bool | np.bool_):
        return "boolean"
    return "string" if isinstance(first, str) else "object"


@lru_cache(maxsize=64)
def _kind_of_type(dtype: np.dtype[Any]) -> str:
    words = {"b": "boolean", "M": "datetime", "m": "duration", "U": "string", "S": "string"}
    if dtype.kind in words:
        return words[dtype.kind]
    return dtype.name if dtype.name in NUMBER_KINDS else {"f": "longdouble"}.get(dtype.kind, "object")

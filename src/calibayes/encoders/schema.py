"""What a model was trained on: the schema (how it treats each column, and why), and the size of the training table."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.notices import counted, text_table
from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_length
from calibayes.encoders.encoder import Encoder, HasRemarks
from calibayes.kernels import moments
from calibayes.kernels.event_counts import is_sparse
from calibayes.tables.conversion import IDENTIFIER
from calibayes.tables.origin import FromFrame
from calibayes.tables.summary import TableSummary
from calibayes.tables.table import Table, holds_booleans

NUMERIC, CATEGORICAL = "numeric", "categorical"
NUMBERS = "numbers"
CONTENT_TYPES = {"f": NUMBERS, "i": NUMBERS, "u": NUMBERS, "b": "booleans", "M": "dates", "m": "dates"}
"""Kind of a NumPy type -> content type of such a column; object columns are examined, all others contain text."""


def content_type(table: Table | TableSummary, j: int) -> str:
    """What column j contains: "numbers", "booleans", "dates" (that are levels), "text" or "categories"."""
    if table.dtype_kind(j) != "O":
        return CONTENT_TYPES.get(table.dtype_kind(j), "text")
    column = table.column(j) if isinstance(table, Table) else table.contents(j)
    if holds_booleans(column):
        return "booleans"
    return "text" if any(isinstance(value, str) for value in column) else "categories"


def default_kind(table: Table | TableSummary, j: int) -> str:
    """Kind of a column unless the user chooses one: numeric for numbers, even with few distinct values, else categorical."""
    return NUMERIC if table.is_numeric(j) else CATEGORICAL


class Column(NamedTuple):
    """How a model treats a column."""

    name: str
    kind: str
    reason: str
    """Content type, or "given" if the user chose the kind; then a remark on the encoding."""
    missing: int
    """Number of missing values."""


@dataclass(frozen=True, repr=False)
class Schema:
    """The columns of a training table; its ``repr`` is a plain-text table with one line for each column.

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> NaiveBayes().fit([[1.0, "a"], [2.0, "b"], [3.0, "a"], [4.0, "b"]], [0, 0, 1, 1]).schema_
    name  kind         reason                              missing
    x0    kernel       numbers: 4 distinct values, 4 bins  0
    x1    categorical  text: 2 levels                      0
    """

    columns: tuple[Column, ...]

    def verify(self) -> None:
        """Raises ValueError unless the columns have different names; see `calibayes.core.verify`."""
        names = self.names
        require(len(set(names)) == len(names), "a column of the schema occurs twice")
        require(
            all(column.missing >= 0 for column in self.columns),
            "a column has a negative number of missing values",
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def __getitem__(self, name: str) -> Column:
        """The column of a name."""
        return next(column for column in self.columns if column.name == name)

    def with_further_rows(self, newest: Schema) -> Schema:
        """The columns as ``newest`` describes them, with the missing values of both."""
        counts = {column.name: column.missing for column in self.columns}
        return Schema(
            tuple(
                column._replace(missing=column.missing + counts.get(column.name, 0))
                for column in newest.columns
            )
        )

    def text(self) -> str:
        """A plain-text table: name, kind, reason and number of missing values of each column."""
        return text_table([Column._fields, *(tuple(str(cell) for cell in column) for column in self.columns)])

    def __repr__(self) -> str:
        return self.text()


def schema(
    summary: TableSummary,
    encoders: Mapping[str, Encoder],
    chosen: Mapping[str, tuple[int, ...]],
    given: frozenset[int] = frozenset(),
) -> Schema:
    """The schema of a table.

    Parameters
    ----------
    encoders : kind -> fitted encoder
    chosen : kind -> positions of its columns
    given : positions of the columns whose kind was chosen by the user
    """
    columns = _left_out(summary)
    for kind, encoder in encoders.items():
        remarks = encoder.remarks() if isinstance(encoder, HasRemarks) else [""] * len(chosen[kind])
        for j, remark in zip(chosen[kind], remarks, strict=True):
            columns[j] = _column(summary, j, kind, _reason(summary, j, given), remark)
    return Schema(tuple(columns[j] for j in sorted(columns)))


def column_types(summary: TableSummary) -> Schema:
    """The schema of a table whose columns are treated by what they contain, in one way each."""
    columns = _left_out(summary)
    for j in summary.used:
        columns[j] = _column(summary, j, default_kind(summary, j), _reason(summary, j))
    return Schema(tuple(columns[j] for j in sorted(columns)))


def _left_out(summary: TableSummary) -> dict[int, Column]:
    """The identifiers of a table."""
    identifiers = {} if summary.conversion is None else summary.conversion.identifiers
    return {j: _column(summary, j, IDENTIFIER, reason, "left out") for j, reason in identifiers.items()}


def _column(summary: TableSummary, j: int, kind: str, reason: str, remark: str = "") -> Column:
    text = f"{reason}: {remark}" if remark else reason
    return Column(summary.names[j], kind, text, summary.missing_rows(j))


def _reason(summary: TableSummary, j: int, given: frozenset[int] = frozenset()) -> str:
    """Where the kind of a column comes from, and what was done to the column before."""
    conversion = summary.conversion
    converted = conversion.remark(j) if conversion is not None and conversion.converters else ""
    source = "given" if j in given else ""
    return ", ".join(filter(None, (source, converted))) or content_type(summary, j)


# -- The size of the training table, and what its columns hold ------------------------------------------------


NUMBER_KINDS = frozenset(
    [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    + ["float16", "float32", "float64", "longdouble"]
)
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
        missing = self.missing
        if any(other.missing):
            missing = tuple(map(operator.add, self.missing, other.missing))
        return replace(
            self, rows=self.rows + other.rows, labeled=self.labeled + other.labeled, missing=missing
        )

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
        require(
            0 <= self.labeled <= self.rows,
            f"{self.labeled} of {self.rows} rows of the training table have a label",
        )
        require_length("kinds of the training table", self.kinds, len(self.columns))
        require_length("missing cells of the training table", self.missing, len(self.columns))
        require(
            len(set(self.columns)) == len(self.columns), "two columns of the training table have one name"
        )
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
        is_missing = np.isnan(content.data)
        return tuple(np.bincount(content.indices[is_missing], minlength=d).tolist())
    if content.dtype.kind == "f":
        return tuple(moments.missing_counts(content).tolist())
    return tuple(_missing_in(table, j) for j in range(d)) if content.dtype.kind in "mM" else (0,) * d


def _missing_in(table: Table, j: int) -> int:
    can_miss = table.dtype_kind(j) in "fmMO"
    return int(np.count_nonzero(table.missing_mask(j))) if can_miss else 0


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
    return _object_kind(
        table.originals[j] if j in table.originals else table.column(j), table.missing_mask(j)
    )


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

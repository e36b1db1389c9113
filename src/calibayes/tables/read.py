"""Recognize objects that hold a table, and read arrays, data frames and columns of Arrow as tables."""

from __future__ import annotations

import datetime
import importlib
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import filterfalse
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy.sparse import csr_array

from calibayes.core.notices import listed
from calibayes.core.protocols import AnyArray, Array
from calibayes.kernels.event_counts import is_sparse
from calibayes.tables.dates import DATE, DURATION
from calibayes.tables.origin import FromFrame, origin_of
from calibayes.tables.table import CodedColumn, Table, coded_columns, missing_objects, sorted_codes

# -- Kinds of objects that hold a table, recognized by their types: nothing is imported or read for it --------

ENVIRONMENT_VARIABLE = "CALIBAYES_MEMORY"
DEFAULT_BUDGET = 2**28
"""Bytes of encoded rows that are kept in memory."""
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
BUDGET = re.compile(r"(?P<number>([0-9]+\.?[0-9]*|\.[0-9]+)(e\+?[0-9]{1,3})?)\s*(?P<unit>[kmgt]?)(i?b)?")
"""A number of bytes, such as 1.5 GiB or 1e9."""


def dask_kind(data: Any) -> str | None:
    """ "frame", "series" or "array" for a Dask collection, None for anything else."""
    module, name = type(data).__module__, type(data).__name__
    if not module.startswith("dask."):
        return None
    if module.startswith("dask.array"):
        return "array"
    return {"DataFrame": "frame", "Series": "series"}.get(name)


def is_path(source: Any) -> bool:
    """Whether an object is a path, or a list of paths."""
    paths = source if isinstance(source, list | tuple) else [source]
    return bool(paths) and all(isinstance(path, str | os.PathLike) for path in paths)


def is_duckdb(source: Any) -> bool:
    """Whether an object is a relation of DuckDB."""
    return type(source).__name__ == "DuckDBPyRelation"


def is_of_pyarrow(source: Any) -> bool:
    """Whether an object is a dataset, table or batch of pyarrow; looked up by name, without an import."""
    kinds = [kind for kind in type(source).__mro__ if kind.__module__.partition(".")[0] == "pyarrow"]
    return any(kind.__name__ in ("Dataset", "RecordBatch", "Table") for kind in kinds)


def is_streamed(source: Any) -> bool:
    """Whether an object is read in chunks, rather than into memory as a whole.

    False for arrays, lists of rows and data frames in memory, and for memory-mapped arrays of no more bytes than
    `memory_budget`.
    """
    if isinstance(source, np.ndarray):
        return isinstance(source, np.memmap) and source.nbytes > memory_budget()
    if dask_kind(source) is not None:
        return True
    if nw.dependencies.is_into_dataframe(source) or nw.dependencies.is_into_series(source):
        return False
    if is_path(source) or nw.dependencies.is_polars_lazyframe(source):
        return True
    if hasattr(source, "__arrow_c_stream__") or is_of_pyarrow(source) or is_duckdb(source):
        return True
    return callable(source) and not isinstance(source, type) and not hasattr(source, "__array__")


def memory_budget() -> int:
    """Bytes that encoded rows may take in memory: the environment variable CALIBAYES_MEMORY, such as 512M or 2G."""
    text = os.environ.get(ENVIRONMENT_VARIABLE, "").strip()
    if not text:
        return DEFAULT_BUDGET
    given = BUDGET.fullmatch(text.lower())
    budget = float(given["number"]) * UNITS[given["unit"]] if given else math.inf
    if budget > sys.maxsize:
        most = f"at most {sys.maxsize // UNITS['t']:,}T"
        raise ValueError(
            f"{ENVIRONMENT_VARIABLE} must be a number of bytes such as 512M or 2G, {most}, got {text!r}"
        )
    return int(budget)


def taken_out(X: Any, y: Any, sample_weight: Any = None) -> tuple[Any, Any, Any]:
    """A data frame without the columns that ``y`` and ``sample_weight`` name, and these columns as arrays.

    What is no name is returned as it is. Raises ValueError if there is no such column.
    """
    names = [name for name in (y, sample_weight) if isinstance(name, str)]
    if not names:
        return X, y, sample_weight
    if not nw.dependencies.is_into_dataframe(X):
        raise ValueError(
            f"{names[0]!r} is to be a column of X, but the columns of a {type(X).__name__} have no names: pass a data frame, or "
            "one value for each row"
        )
    frame = nw.from_native(X, eager_only=True)
    lacking = [name for name in names if name not in frame.columns]
    if lacking:
        raise ValueError(f"there is no column {lacking[0]!r}; the columns are {listed(frame.columns)}")
    taken = [frame[part].to_numpy() if isinstance(part, str) else part for part in (y, sample_weight)]
    return frame.drop(names).to_native(), *taken


# -- pyarrow, which is optional and imported when it is needed -----------------------------------------------


def pyarrow() -> Any:
    """The package pyarrow. Raises ImportError that says how to install it."""
    return module_of_pyarrow("")


@cache
def module_of_pyarrow(name: str) -> Any:
    """A module of pyarrow, such as "dataset"; the package itself for an empty name."""
    try:
        return importlib.import_module(f"pyarrow.{name}" if name else "pyarrow")
    except ImportError as error:
        raise ImportError(
            "reading files and Arrow streams chunk by chunk needs pyarrow: pip install pyarrow"
        ) from error


# -- Columns of text of Arrow as distinct values and codes, without a Python object per row ------------------


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow is one of strings."""
    types = pyarrow().types
    is_view = hasattr(types, "is_string_view") and types.is_string_view(kind)
    return bool(types.is_string(kind) or types.is_large_string(kind) or is_view)


def holds_text(kind: Any) -> bool:
    """Whether the values of a type of Arrow are strings, written out or as positions in a dictionary."""
    return is_text(kind.value_type if pyarrow().types.is_dictionary(kind) else kind)


def one_array(column: Any) -> Any:
    """A chunked array as one array."""
    if column.num_chunks == 0:  # of which pyarrow 15 cannot make one array if they are coded long texts
        return pyarrow().nulls(0, column.type)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def coded_text(column: Any) -> CodedColumn:
    """An array, or a chunked array, of text as sorted distinct values and codes."""
    pa = pyarrow()
    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if not pa.types.is_dictionary(column.type):
        is_view = not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type))
        column = (column.cast(pa.large_string()) if is_view else column).dictionary_encode()
    encoded = one_array(column.unify_dictionaries() if column.num_chunks > 1 else column)
    size = len(encoded.dictionary)
    indices = encoded.indices
    if indices.null_count:
        indices = (indices if indices.type.bit_width > 16 else indices.cast(pa.int64())).fill_null(size)
    places = indices.to_numpy(zero_copy_only=False)
    used = np.flatnonzero(np.bincount(places, minlength=size + 1)[:size])
    values, codes = sorted_codes(encoded.dictionary.take(pa.array(used)).to_pylist())
    new_codes = np.full(size + 1, len(values))
    new_codes[used] = codes
    return CodedColumn(values, new_codes[places])


# -- Cells that are Python objects: decimals, dates, durations, times of day, periods and intervals as typed arrays

NUMBERS = (int, float, Decimal, Fraction, np.integer, np.floating)
DATES = (datetime.date, np.datetime64)
DURATIONS = (datetime.timedelta, np.timedelta64)
HOUR = 3600e6
"""In microseconds."""


def typed_objects(column: Array, missing: Array, name: str) -> Array:
    """An object array as numbers, dates or durations if every known value is one, else unchanged.

    A period is the date of its start, a time of day is in hours since midnight, and an interval is its midpoint.
    Raises ValueError if only some of the dates have a time zone.
    """
    known = [_plain(value) for value in column[~missing]]
    types = {type(value) for value in known}
    if _are(types, NUMBERS) and bool not in types:
        return _filled(np.array([float(value) for value in known]), missing, np.nan)
    if _are(types, DATES):
        has_zone = [getattr(value, "tzinfo", None) is not None for value in known]
        if len(set(has_zone)) > 1:
            raise ValueError(
                f"column {name!r} mixes dates with and without a time zone: give all of them one, or none"
            )
        if any(has_zone):
            known = [value.astimezone(datetime.UTC).replace(tzinfo=None) for value in known]
        return _filled(np.array(known, dtype=DATE), missing, np.datetime64("NaT", "us"))
    if _are(types, DURATIONS):
        return _filled(np.array(known, dtype=DURATION), missing, np.timedelta64("NaT", "us"))
    return column


def zone_of(column: Array) -> str | None:
    """The time zone of an object array of dates: None without one, "UTC" if there are several."""
    zones = {str(value.tzinfo) for value in column if getattr(value, "tzinfo", None) is not None}
    return None if not zones else zones.pop() if len(zones) == 1 else "UTC"


def _are(types: Collection[type], accepted: tuple[type, ...]) -> bool:
    return all(issubclass(kind, accepted) for kind in types)


def _filled(known: Array, missing: Array, gap: Any) -> Array:
    """An array of the known values, with a gap where values are missing."""
    filled = np.full(len(missing), gap, dtype=known.dtype)
    filled[~missing] = known
    return filled


def _plain(value: Any) -> Any:
    """A period as a date, a time as hours, an interval as its midpoint or its finite end; anything else unchanged.

    Periods and intervals are those of pandas, which need not be installed: they are recognized by name.
    """
    kind = type(value).__name__
    if kind == "Period" and hasattr(value, "to_timestamp"):
        return value.to_timestamp()
    if kind == "Interval" and hasattr(value, "left"):
        ends = [end for end in (value.left, value.right) if not _is_infinite(end)]
        return ends[0] + (ends[-1] - ends[0]) / 2 if ends else math.nan
    if isinstance(value, datetime.time):
        seconds = 3600 * value.hour + 60 * value.minute + value.second
        return (seconds * 10**6 + value.microsecond) / HOUR
    return value


def _is_infinite(end: Any) -> bool:
    return isinstance(end, float | np.floating) and math.isinf(end)


# -- Read arrays, data frames, CSV and Parquet files as tables -----------------------------------------------

LEAST_CODED = 500
"""Rows of a data frame from which on it pays to let Arrow find the distinct texts of a column."""


def is_frame(table: Any) -> bool:
    """Whether an object is a data frame of any supported library (pandas, polars, pyarrow, ...)."""
    return bool(nw.dependencies.is_into_dataframe(table))


def index_of(table: Any) -> Any:
    """The index of a pandas data frame, (n,); None for any other table."""
    return table.index if nw.dependencies.is_pandas_dataframe(table) else None


def with_index(frame: Any, index: Any) -> Any:
    """A result as a data frame, with an index (n,) if there is one and the frame is of pandas."""
    has_index = index is not None and nw.dependencies.is_pandas_dataframe(frame)
    return frame.set_axis(index, axis=0) if has_index else frame


def refuse_lazy(table: Any) -> None:
    """Raises TypeError for a table that holds no rows yet."""
    if nw.dependencies.is_polars_lazyframe(table):
        raise TypeError(f"X is a polars {type(table).__name__}, which holds no rows yet: pass X.collect()")
    if dask_kind(table) is not None:
        raise TypeError(
            f"X is a Dask {type(table).__name__}, which holds no rows yet: `fit` and predictions work on it, for anything "
            "else pass X.compute()"
        )


def object_array(rows: Sequence[Any]) -> Array:
    """Rows given as a list of lists, as an object array (n, d).

    What is not two-dimensional is returned as a plain array, for the caller to refuse. Raises ValueError if the rows
    have different lengths.
    """
    sizes = list(map(_size, rows))
    if len(set(sizes)) > 1:
        other = next(place for place, size in enumerate(sizes) if size != sizes[0])
        first, second = ("is no list" if size is None else f"has {size}" for size in (sizes[0], sizes[other]))
        raise ValueError(
            f"the rows of X must have the same number of cells, but row 0 {first} and row {other} {second}"
        )
    cells = np.array(rows, dtype=object)
    return cells if cells.ndim == 2 else np.asarray(rows)


def _size(row: Any) -> Any:
    """The number of cells of a row, or the shape of an array of rows; None for a single value."""
    dimensions = getattr(row, "ndim", 1)
    if dimensions == 0 or isinstance(row, str) or not hasattr(row, "__len__"):
        return None
    return len(row) if dimensions == 1 else row.shape


def read_array(array: Array, names: Sequence[str] | None = None) -> Table:
    """A table from an array (n, d) of numbers, strings, dates or objects, or from a sparse one of numbers."""
    if array.dtype.kind == "c":
        raise complex_numbers(array, "X")
    column_names = tuple(names) if names is not None else array_names(array.shape[1])
    if is_sparse(array):
        return Table(column_names, _canonical_csr(array))
    if array.dtype.kind in "mM":
        array = array.astype(DATE if array.dtype.kind == "M" else DURATION)
    if array.dtype.kind != "O":
        return Table(column_names, array, (array.dtype,) * len(column_names))
    columns = tuple(_with_inferred_type(*pair) for pair in zip(array.T, column_names, strict=True))
    return Table(column_names, columns, zones=_zones(columns, lambda j: zone_of(array[:, j])))


def complex_numbers(array: AnyArray, role: str) -> ValueError:
    """The error for an array of complex numbers."""
    advice = "; give real and imaginary parts as columns of their own" if role == "X" else ""
    return ValueError(f"Complex data not supported: {role} is an array of {array.dtype}{advice}")


@lru_cache(maxsize=8)
def array_names(d: int) -> tuple[str, ...]:
    """Names of the d columns of an array: x0, x1, ..."""
    return tuple(f"x{j}" for j in range(d))


def _canonical_csr(matrix: Any) -> AnyArray:
    """A CSR array that stores each cell at most once, so that checks of stored values are checks of cells."""
    rows = csr_array(matrix)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def read_frame(frame: Any) -> Table:
    """A table from a pandas, polars, pyarrow, ... data frame. Raises ValueError if it has no rows or no columns."""
    if nw.dependencies.is_pandas_dataframe(frame) and (table := _plain_numbers(frame)) is not None:
        return table
    wrapped = nw.from_native(frame, eager_only=True)
    names = tuple(str(name) for name in wrapped.columns)
    if not names:
        raise ValueError("the table has no columns")
    if len(wrapped) == 0:
        raise ValueError("Found array with 0 sample(s): the table has no rows")
    all_series = list(wrapped.iter_columns())
    columns = [_frame_column(series) for series in all_series]
    types = tuple(column.dtype for column in columns)
    is_numeric = all(column.dtype.kind in "fiu" for column in columns)
    content = np.stack(columns, axis=1) if is_numeric else tuple(columns)
    zones = _zones(columns, lambda j: _series_zone(all_series[j]))
    names, coded = refuse_duplicate_names(names), coded_columns(columns)
    return Table(names, content, types, origin_of(wrapped), distinct_cache=coded, zones=zones)


def _plain_numbers(frame: Any) -> Table | None:
    """The table of a pandas data frame with NumPy numbers of one type in all columns; None for any other one.

    It is read in one piece: column by column, a single row would take longer to read than to predict.
    """
    types = {*frame.dtypes}
    dtype = types.pop() if len(types) == 1 and len(frame) else None
    if not isinstance(dtype, np.dtype) or (dtype.kind not in "iu" and dtype != np.float64):
        return None
    labels = tuple(frame.columns)
    names, no = refuse_duplicate_names(tuple(map(str, labels))), (False,) * len(labels)
    content = np.array(frame.to_numpy(), order="C")
    return Table(names, content, (dtype,) * len(labels), FromFrame(nw.Implementation.PANDAS, labels, no, no))


def _frame_column(series: Any) -> Any:
    """A column of a data frame: a `CodedColumn` for many rows of text if there is pyarrow, else an array."""
    may_be_coded = isinstance(series.dtype, nw.String | nw.Categorical | nw.Enum)
    if len(series) < LEAST_CODED or not may_be_coded or find_spec("pyarrow") is None:
        return series_values(series)
    try:
        cells = series.to_arrow()
    except (ValueError, TypeError):  # text that is not valid Unicode, which Arrow does not hold
        return series_values(series)
    coded = coded_text(cells) if holds_text(cells.type) else None
    return coded if coded is not None and len(coded.values) else series_values(series)


def _zones(columns: Sequence[Array], zone: Callable[[int], str | None]) -> dict[int, str]:
    """Position -> time zone of the columns of dates that have one."""
    zones = {j: zone(j) for j, column in enumerate(columns) if column.dtype.kind == "M"}
    return {j: name for j, name in zones.items() if name is not None}


def refuse_duplicate_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names. Raises ValueError if two are equal."""
    if len(set(names)) < len(names):
        name, _ = Counter(names).most_common(1)[0]
        raise ValueError(f"column {name!r} occurs more than once: column names must be unique")
    return names


def names_beyond(wanted: Iterable[str], names: Iterable[str]) -> list[str]:
    """The wanted names that are not among the names."""
    return list(filterfalse(set(names).__contains__, wanted))


SEVERAL_VALUES = (
    "column {name!r} holds several values in a cell ({kind}), but the argument must be a string or a number: leave the column out, "
    "or make a column of each value"
)


def series_values(series: Any) -> Array:
    """A column of a data frame as an array: numbers (NaN where missing), dates, booleans or objects."""
    dtype = series.dtype  # looked up once: for a single row this is most of the time
    if dtype.is_numeric():
        return _numbers(series)
    if isinstance(dtype, nw.Date | nw.Datetime):
        return _dates(series)
    if isinstance(dtype, nw.Duration):
        return np.asarray(series.to_numpy()).astype(DURATION)
    if isinstance(dtype, nw.Categorical | nw.Enum):
        return _categories(series)
    if _zone_of_pandas(series) is not None:
        return _dates(nw.from_native(series.to_native().dt.tz_convert("UTC"), series_only=True))
    if dtype.is_nested():
        raise TypeError(SEVERAL_VALUES.format(name=str(series.name), kind=dtype))
    return _with_inferred_type(np.asarray(series.to_numpy(), dtype=object), str(series.name))


def _categories(series: Any) -> Array:
    """Cells of a categorical column as objects."""
    if series.implementation.is_pyarrow():  # whose own conversion gives missing cells the last category
        native = series.to_native()
        return np.asarray(native.cast(native.type.value_type).to_numpy(), dtype=object)
    return np.asarray(series.to_numpy(), dtype=object)


def _numbers(series: Any) -> Array:
    """Numbers, NaN where missing."""
    if isinstance(
        series.dtype, nw.Decimal
    ):  # libraries do not round decimals to the nearest float, but read text so
        series = series.cast(nw.String).cast(nw.Float64)
    values = np.asarray(series.to_numpy())
    if values.dtype == np.float64:  # missing values are NaN already
        return values
    values = np.asarray((series.cast(nw.Float64) if series.null_count() else series).to_numpy())
    return values.astype(np.float64) if values.dtype.kind == "O" else values


def _dates(series: Any) -> Array:
    """Dates, in UTC if they have a time zone."""
    if isinstance(series.dtype, nw.Date):
        series = series.cast(nw.Datetime("us"))
    elif series.dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return np.asarray(series.to_numpy()).astype(DATE)


def _series_zone(series: Any) -> str | None:
    """The time zone of a column of a data frame."""
    if isinstance(series.dtype, nw.Datetime):
        return series.dtype.time_zone
    if (zone := _zone_of_pandas(series)) is not None:
        return zone
    return zone_of(series.to_numpy()) if isinstance(series.dtype, nw.Object | nw.Unknown) else None


def _zone_of_pandas(series: Any) -> str | None:
    """A time zone that narwhals (2.28) does not know, since it has an underscore, such as America/New_York."""
    if not isinstance(series.dtype, nw.Unknown):
        return None
    dtype = series.to_native().dtype
    zone = getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)
    return None if zone is None else str(zone)


def _with_inferred_type(column: Array, name: str) -> Array:
    """An object array as integers, floats, dates, durations or booleans if every known value is one, else unchanged.

    A column without a known value becomes NaN, which every family accepts. Raises ValueError for booleans mixed with
    other types and for complex numbers, TypeError for lists, dicts and other containers.
    """
    if set(map(type, column)) <= {str}:  # a fast test for strings only
        return column if len(column) else np.full(0, np.nan)
    missing = missing_objects(column)
    types = {type(value) for value in column[~missing]}
    _refuse_unsupported(types, name)
    if not types:
        return np.full(len(column), np.nan)
    if types <= {bool, np.bool_} and not missing.any():
        return column.astype(bool)
    is_integer = all(issubclass(kind, int | np.integer) and kind is not bool for kind in types)
    if is_integer and not missing.any() and all(-(2**63) <= int(value) < 2**63 for value in column):
        return column.astype(np.int64)
    if all(issubclass(kind, int | float | np.integer | np.floating) and kind is not bool for kind in types):
        return np.where(missing, np.nan, column).astype(np.float64)
    return typed_objects(column, missing, name)


def _refuse_unsupported(types: set[type], name: str) -> None:
    """Raise an error if the values of a column are of types that no encoder accepts."""
    containers = [kind.__name__ for kind in types if issubclass(kind, dict | list | set | tuple | np.ndarray)]
    if containers:
        raise TypeError(SEVERAL_VALUES.format(name=name, kind=containers[0]))
    if any(issubclass(kind, complex | np.complexfloating) for kind in types):
        raise ValueError(
            f"Complex data not supported: column {name!r} holds complex numbers; give real and imaginary parts as columns of their own"
        )
    if types & {bool, np.bool_} and not types <= {bool, np.bool_}:  # True and 1 would be the same level
        listed = ", ".join(sorted(kind.__name__ for kind in types))
        raise ValueError(f"column {name!r} mixes values of types {listed}")

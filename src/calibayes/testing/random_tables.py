"""A hypothesis strategy for tables with labels, and the property of classifiers that is checked on them."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from calibayes.core.protocols import Array
from calibayes.tables.table import AllMissingError

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError("calibayes.testing.tables needs hypothesis: pip install hypothesis") from error

# -- What a property of estimators is checked on: training rows with labels, and new rows of the same columns


class LabeledTable(NamedTuple):
    """Training rows with their labels, and new rows of the same columns.

    Examples
    --------
    >>> LabeledTable(training=[[1.0], [2.0]], labels=["a", "b"], new=[[1.5]]).labels
    ['a', 'b']
    """

    training: Any
    """A data frame or an array (n, d)."""
    labels: Any
    """A list, an array or a series of n labels."""
    new: Any
    """Rows of the same columns and of the same type as the training rows; levels may be new, cells may be missing."""

    @property
    def classes(self) -> Array:
        """The distinct labels, ascending."""
        return np.unique(np.asarray(self.labels))


# -- The public strategy for tables --------------------------------------------------------------------------


def tables(
    *,
    libraries: Sequence[str] | None = None,
    themes: Sequence[str] | None = None,
    max_rows: int = 24,
    max_columns: int = 5,
    missing: bool = True,
) -> st.SearchStrategy[LabeledTable]:
    """A hypothesis strategy for small tables with labels, many of them unusual, and new rows of the same columns.

    Columns are numbers, counts, integers, flags, text or categories; constant ones, ones with as many levels as rows,
    with missing cells, with numbers whose squares overflow, denormals, infinities, integers of 64 bits. There may be as
    few as two rows, one row for each class, or one class only. The new rows may have levels that the training rows do
    not have.

    Parameters
    ----------
    libraries : sequence of "numpy", "pandas", "polars", optional
        By default those that are installed. NumPy arrays have several types, orders and strides.
    themes : sequence of str, optional
        Kinds of columns that a table may have: "numbers", "counts", "flags", "levels", "extremes", "everything"; by
        default one of them is drawn for each table.
    max_rows, max_columns : int
        Largest number of training rows (2 or more) and of columns.
    missing : bool
        Whether cells may be missing.

    Returns
    -------
    SearchStrategy of LabeledTable

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> from calibayes import NaiveBayes
    >>> from calibayes.testing import assert_posterior_or_clear_error, tables
    >>> @settings(max_examples=3, deadline=None)
    ... @given(tables(themes=["levels"]))
    ... def test_naive_bayes(table):
    ...     assert_posterior_or_clear_error(NaiveBayes(rule="ml"), table)
    >>> test_naive_bayes()
    """
    if max_rows < 2 or max_columns < 1:
        raise ValueError(
            f"a table needs 2 rows and 1 column, got max_rows={max_rows}, max_columns={max_columns}"
        )
    return labeled_tables(
        _chosen("libraries", libraries, LIBRARIES, installed_libraries()),
        _chosen("themes", themes, tuple(THEMES), tuple(THEMES)),
        max_rows,
        max_columns,
        missing,
    )


def _chosen(
    name: str, given: Sequence[str] | None, known: tuple[str, ...], default: tuple[str, ...]
) -> tuple[str, ...]:
    """The given names, or the default. Raises ValueError if one is unknown or there is none."""
    if given is None:
        return default
    unknown = [one for one in given if one not in known]
    if unknown or not given or isinstance(given, str):
        raise ValueError(f"{name} must be a list of names among {', '.join(known)}, got {given!r}")
    return tuple(given)


# -- Columns of random values: numbers, counts, flags, text and categories; ordinary and extreme ones --------

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]
LARGEST = sys.float_info.max
EXTREME_NUMBERS = (
    *(0.0, -0.0, 1e300, -1e300, 1e-300, -1e-300, 5e-324, 2.3e-308),
    *(LARGEST, -LARGEST, 1e154, 1e100, -1e100, 1e16),
)
"""Zeros, numbers whose squares overflow or underflow, denormals, and the largest of all."""
HUGE_INTEGERS = (0, 1, -1, 2**31, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63))
TEXTS = ("a", "b", "B", "a b", "", " ", "0", "nan", "None", "\u00e9", "\u4e2d", "x" * 200, "a\nb", "'\"")

KINDS: Mapping[str, st.SearchStrategy[Any]] = {
    "number": st.integers(-1000, 1000).map(lambda number: number / 64),
    "far number": st.integers(-1000, 1000).map(lambda number: 1e8 + number / 64),
    "extreme number": st.sampled_from(EXTREME_NUMBERS),
    "infinite number": st.sampled_from((1.0, 2.0, 3.0, float("inf"))),
    "integer": st.integers(-5, 5),
    "count": st.integers(0, 6),
    "huge integer": st.sampled_from(HUGE_INTEGERS),
    "flag": st.booleans(),
    "text": st.sampled_from(TEXTS),
    "many levels": st.integers(0, 999).map(lambda number: f"level {number}"),
    "category": st.sampled_from(("low", "middle", "high", "very high")),
}
"""Values of each kind of column."""
THEMES: Mapping[str, tuple[str, ...]] = {
    "numbers": ("number", "far number", "integer"),
    "counts": ("count",),
    "flags": ("flag",),
    "levels": ("text", "category", "many levels", "flag", "count"),
    "extremes": ("number", "extreme number", "huge integer", "count"),
    "everything": tuple(KINDS),
}
"""Kinds that the columns of a table have: most estimators accept only some of them."""


class DrawnColumn(NamedTuple):
    """A column of the training rows and of the new rows; a missing cell is None."""

    name: str
    kind: str
    training: list[Any]
    new: list[Any]

    @property
    def has_missing(self) -> bool:
        """Whether a cell of the training rows or of the new rows is missing."""
        return None in self.training or None in self.new


def draw_column(draw: Draw, name: str, kind: str, rows: int, new_rows: int, *, missing: bool) -> DrawnColumn:
    """A column whose cells are a few distinct values (one: a constant column) or as many as there are rows.

    New rows may have values that are not among those of the training rows.
    """
    most = draw(st.sampled_from((1, 2, 4, rows, rows)))
    values = draw(st.lists(KINDS[kind], min_size=1, max_size=most))
    further = draw(st.lists(KINDS[kind], max_size=2))
    gaps = [None] if missing and draw(st.booleans()) else []
    return DrawnColumn(
        name, kind, _cells(draw, values + gaps, rows), _cells(draw, values + further + gaps, new_rows)
    )


def _cells(draw: Draw, values: list[Any], rows: int) -> list[Any]:
    return [values[number] for number in draw_codes(draw, len(values), rows)]


def draw_codes(draw: Draw, k: int, rows: int) -> list[int]:
    """Random integers below k, one for each row: all are equally likely, other than in lists that hypothesis draws."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return [int(code) for code in rng.integers(0, k, rows)]


# -- Columns as pandas or polars data frames, or as NumPy arrays of several types, orders and strides --------

INTEGERS = ("integer", "count", "huge integer")
NUMBERS = ("number", "far number", "extreme number", "infinite number", *INTEGERS)
LIBRARIES = ("numpy", "pandas", "polars")


def installed_libraries() -> tuple[str, ...]:
    """The libraries among `LIBRARIES` that can be imported."""
    return tuple(library for library in LIBRARIES if find_spec(library) is not None)


def draw_containers(draw: Draw, columns: list[DrawnColumn], library: str) -> tuple[Any, Any]:
    """The training rows and the new rows as tables of a library, with the same types."""
    if library == "numpy":
        return _arrays(draw, columns)
    choices = [draw(st.integers(0, 2)) for _ in columns]
    training, new = (_frame(columns, choices, library, part) for part in ("training", "new"))
    return training, new


def _frame(columns: list[DrawnColumn], choices: list[int], library: str, part: str) -> Any:
    """A part of the columns as a data frame of pandas or polars."""
    module, type_of = import_module(library), _pandas_type if library == "pandas" else _polars_type
    series = {
        column.name: module.Series(getattr(column, part), dtype=type_of(column, choice))
        for column, choice in zip(columns, choices, strict=True)
    }
    return module.DataFrame(series)


def _pandas_type(column: DrawnColumn, choice: int) -> str:
    """The name of a type that holds the cells of a column."""
    if column.kind in INTEGERS:
        types = ("Int64", "float64", "object") if column.has_missing else ("int64", "Int64", "float64")
    elif column.kind in NUMBERS:
        types = ("float64", "Float64", "float64")
    elif column.kind == "flag":
        types = ("boolean", "object", "category") if column.has_missing else ("bool", "boolean", "object")
    else:
        types = ("object", "category", "string")
    return types[choice]


def _polars_type(column: DrawnColumn, choice: int) -> Any:
    import polars as pl

    if column.kind in INTEGERS:
        return pl.Int64
    if column.kind in NUMBERS:
        return pl.Float64
    if column.kind == "flag":
        return pl.Boolean
    return pl.Categorical if choice else pl.String


def _arrays(draw: Draw, columns: list[DrawnColumn]) -> tuple[Any, Any]:
    """Arrays of the training rows and the new rows. What is not a number makes them arrays of objects."""
    layout, dtype = draw(st.sampled_from(tuple(LAYOUTS))), draw(st.sampled_from(_array_types(columns)))
    training, new = (LAYOUTS[layout](_array(columns, part, dtype)) for part in ("training", "new"))
    return training, new


def _array_types(columns: list[DrawnColumn]) -> tuple[Any, ...]:
    """Types of an array that holds the cells of all columns."""
    kinds = {column.kind for column in columns}
    if not kinds <= {*NUMBERS, "flag"}:
        return (object,)
    if any(column.has_missing for column in columns) or not kinds <= {*INTEGERS, "flag"}:
        return (np.float64,) if "extreme number" in kinds else (np.float64, np.float32)
    if kinds == {"flag"}:
        return (np.bool_, np.float64, np.uint8)
    return (np.int64, np.float64) if "huge integer" in kinds else (np.int64, np.float64, np.int8)


def _array(columns: list[DrawnColumn], part: str, dtype: Any) -> Any:
    cells = [getattr(column, part) for column in columns]
    if dtype is not object and any(column.has_missing for column in columns):
        cells = [[np.nan if cell is None else cell for cell in column] for column in cells]
    array = np.empty((len(cells[0]), len(cells)), dtype=dtype)
    for j, column in enumerate(cells):
        array[:, j] = column
    return array


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


LAYOUTS: Mapping[str, Callable[[Any], Any]] = {
    "C": np.asarray,
    "F": np.asfortranarray,
    "reversed": lambda array: np.flip(np.flip(array).copy()),
    "every second column": lambda array: np.repeat(array, 2, axis=1)[:, ::2],
    "every second row": lambda array: np.repeat(array, 2, axis=0)[::2],
    "read only": _read_only,
}
"""The same array in another memory layout."""


# -- Labels of several types, in several containers ----------------------------------------------------------

CLASSES: Mapping[str, Sequence[Any]] = {
    "integers": range(40),
    "negative integers": range(-40, 0),
    "huge integers": [2**62 + number for number in range(40)],
    "whole numbers": [float(number) for number in range(40)],
    "strings": [f"class {number}" for number in range(40)],
    "short strings": ["", " ", "a", "\u00e9", *(chr(ord("A") + number) for number in range(26))],
    "flags": [False, True],
}
"""Labels of each type."""
ARRAYS = {"int32": np.int32, "uint8": np.uint8, "float32": np.float32, "object": object, "default": None}


def draw_labels(draw: Draw, rows: int, library: str) -> Any:
    """Labels of 2 to 4 classes, or of as many classes as rows."""
    every = CLASSES[draw(st.sampled_from(tuple(CLASSES)))]
    k = min(draw(st.sampled_from((2, 2, 3, 4, rows))), len(every))
    codes = range(rows) if k >= rows else draw_codes(draw, k, rows)
    return _contained(draw, [every[code] for code in codes], library)


def _contained(draw: Draw, labels: list[Any], library: str) -> Any:
    """Labels as a list, as an array, or as a series of the library."""
    form = draw(st.sampled_from(("list", "array", "series", "categorical")))
    if form == "list":
        return labels
    if library == "pandas" and form in ("series", "categorical"):
        import pandas as pd

        series = pd.Series(labels)
        return series.astype("category") if form == "categorical" else series
    if library == "polars" and form == "series":
        import polars as pl

        return pl.Series(labels)
    return _as_array(labels, draw(st.sampled_from(tuple(ARRAYS))))


def _as_array(labels: list[Any], name: str) -> Any:
    """An array of the named type if it holds the labels exactly, else of the type that NumPy chooses."""
    plain = np.array(labels)
    if plain.dtype.kind not in "iuf" or ARRAYS[name] is None:
        return np.array(labels, dtype=object) if name == "object" else plain
    with np.errstate(all="ignore"):
        cast = plain.astype(ARRAYS[name])
        return cast if (cast.astype(plain.dtype) == plain).all() else plain


# -- The property of all classifiers: on any table, a valid posterior or an error that says what is wrong ----

Result = TypeVar("Result")


def assert_posterior_or_clear_error(classifier: Any, table: LabeledTable) -> bool:
    """Fit a classifier and predict training rows and new rows; returns whether the training rows were accepted.

    Raises AssertionError if a posterior is not finite, not between 0 and 1 or does not sum to 1, if its shape is not
    (n, k), if classes are not in order, or if a call ends in an error that no code raised on purpose: an error of any
    other class than ValueError and TypeError, or one that a function of NumPy, SciPy or the native kernels raised.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from calibayes.testing import LabeledTable
    >>> table = LabeledTable([[1.0], [2.0], [5.0], [6.0]], ["a", "a", "b", "b"], [[1.5]])
    >>> assert_posterior_or_clear_error(GaussianNB(), table)
    True
    """
    if _result_or_clear_error(lambda: classifier.fit(table.training, table.labels)) is None:
        return False
    assert_array_equal(classifier.classes_, table.classes)
    for rows in (table.training, table.new):
        _check_rows(classifier, rows)
    return True


def _check_rows(classifier: Any, rows: Any) -> None:
    posterior = _result_or_clear_error(lambda: classifier.predict_proba(rows))
    if posterior is None:
        return
    _check_posterior(posterior, (len(rows), len(classifier.classes_)))
    predicted = classifier.predict(rows)
    assert np.isin(predicted, classifier.classes_).all(), (
        f"predictions are not among the classes: {predicted}"
    )


def _check_posterior(posterior: Array, shape: tuple[int, int]) -> None:
    assert posterior.shape == shape, f"posterior of shape {posterior.shape}, expected {shape}"
    assert np.isfinite(posterior).all(), f"posterior that is not finite: {posterior}"
    assert (posterior >= 0).all(), f"negative posterior: {posterior}"
    tolerance = 1e-6 if posterior.dtype == np.float64 else 1e-4
    assert_allclose(posterior.sum(axis=1), 1.0, atol=tolerance)


def _result_or_clear_error(call: Callable[[], Result]) -> Result | None:
    """The result of a call, None if it raised an error that says what is wrong."""
    try:
        return call()
    except Exception as error:
        if not is_clear(error):
            raise AssertionError(f"not a clear error: {type(error).__name__}: {error}") from error
        return None


def is_clear(error: Exception) -> bool:
    """Whether an error is a ValueError or a TypeError with a message, raised by a statement of Python code on purpose.

    Errors that functions of NumPy, LAPACK or the native kernels raise come from a line that is no ``raise`` statement.
    """
    has_message = type(error) in (ValueError, TypeError, AllMissingError) and bool(str(error).strip())
    return has_message and _was_raised(error.__traceback__)


def _was_raised(traceback: TracebackType | None) -> bool:
    """Whether the innermost line of a traceback is a ``raise`` statement outside of NumPy and SciPy."""
    assert traceback is not None
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    module = traceback.tb_frame.f_globals.get("__name__", "").partition(".")[0]
    line = linecache.getline(traceback.tb_frame.f_code.co_filename, traceback.tb_lineno)
    return line.lstrip().startswith("raise") and module not in ("numpy", "scipy")


# -- The strategy that draws a table: a theme, columns, labels and a container -------------------------------


@st.composite
def labeled_tables(
    draw: Draw,
    libraries: tuple[str, ...],
    themes: tuple[str, ...],
    max_rows: int,
    max_columns: int,
    missing: bool,
) -> LabeledTable:
    """See `calibayes.testing.tables`."""
    library = draw(st.sampled_from(libraries))
    theme = draw(st.sampled_from(themes))
    rows, new_rows = draw(st.integers(2, max_rows)), draw(st.integers(1, 6))
    kinds = draw(st.lists(st.sampled_from(THEMES[theme]), min_size=1, max_size=max_columns))
    gaps = missing and draw(st.booleans())
    columns: list[DrawnColumn] = [
        draw_column(draw, f"x{j}", kind, rows, new_rows, missing=gaps) for j, kind in enumerate(kinds)
    ]
    training, new = draw_containers(draw, columns, library)
    labels: Any = draw_labels(draw, rows, library)
    return LabeledTable(training, labels, new)

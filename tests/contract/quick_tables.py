"""Random tables of the kinds that `calibayes.testing.tables` draws, from a seed alone, in a fraction of a millisecond."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array

from calibayes.testing.random_tables import (
    CLASSES,
    EXTREME_NUMBERS,
    HUGE_INTEGERS,
    LAYOUTS,
    NUMBERS,
    TEXTS,
    THEMES,
    DrawnColumn,
    _array,
    _array_types,
    _as_array,
    _frame,
)


class QuickTable(NamedTuple):
    """Training rows with labels and weights, and new rows of the same columns."""

    training: Any
    labels: Any
    weight: Any
    new: Any
    names: tuple[str, ...]
    """The names of the columns; empty if they have none."""
    d: int
    classes: tuple[Any, ...]
    """The labels that occur, in no order."""


def chosen(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _values(rng: np.random.Generator, kind: str, size: int) -> list[Any]:
    """So many random values of a kind of column."""
    draws = {
        "number": lambda: (rng.integers(-1000, 1001, size) / 64).tolist(),
        "far number": lambda: (1e8 + rng.integers(-1000, 1001, size) / 64).tolist(),
        "extreme number": lambda: [chosen(rng, EXTREME_NUMBERS) for _ in range(size)],
        "infinite number": lambda: [chosen(rng, (1.0, 2.0, 3.0, float("inf"))) for _ in range(size)],
        "integer": lambda: rng.integers(-5, 6, size).tolist(),
        "count": lambda: rng.integers(0, 7, size).tolist(),
        "huge integer": lambda: [chosen(rng, HUGE_INTEGERS) for _ in range(size)],
        "flag": lambda: (rng.random(size) < 0.5).tolist(),
        "text": lambda: [chosen(rng, TEXTS) for _ in range(size)],
        "many levels": lambda: [f"level {number}" for number in rng.integers(0, 1000, size)],
        "category": lambda: [chosen(rng, ("low", "middle", "high", "very high")) for _ in range(size)],
    }
    return draws[kind]()


def _column(
    rng: np.random.Generator, name: str, kind: str, rows: int, new_rows: int, gaps: bool
) -> DrawnColumn:
    known = _values(rng, kind, int(chosen(rng, (1, 2, 4, rows, rows))))
    missing = [None] * int(rng.integers(1, 3)) if gaps and rng.random() < 0.5 else []
    values, new = known + missing, known + missing + _values(rng, kind, int(rng.integers(0, 3)))
    training_codes, new_codes = rng.integers(0, len(values), rows), rng.integers(0, len(new), new_rows)
    return DrawnColumn(name, kind, [values[i] for i in training_codes], [new[i] for i in new_codes])


def _containers(rng: np.random.Generator, columns: list[DrawnColumn]) -> tuple[Any, Any, tuple[str, ...]]:
    """Training rows and new rows as tables of one library, and the names of columns."""
    library = chosen(
        rng, ("numpy", "numpy", "numpy", "pandas", "pandas", "pandas", "polars", "polars", "list", "sparse")
    )
    if library == "sparse" and not {column.kind for column in columns} <= {*NUMBERS, "flag"}:
        library = "list"
    if library in ("pandas", "polars"):
        choices = [int(rng.integers(3)) for _ in columns]
        parts = (_frame(columns, choices, library, part) for part in ("training", "new"))
        return *parts, tuple(column.name for column in columns)
    layout, dtype = chosen(rng, tuple(LAYOUTS)), chosen(rng, _array_types(columns))
    arrays = [LAYOUTS[layout](_array(columns, part, dtype)) for part in ("training", "new")]
    if library == "sparse":
        kind = chosen(rng, (csr_array, csc_array))
        arrays = [kind(np.asarray(array, dtype=np.float64)) for array in arrays]
    return *((array.tolist() for array in arrays) if library == "list" else arrays), ()


def _labels(rng: np.random.Generator, rows: int) -> tuple[Any, tuple[Any, ...]]:
    """Labels of 2 to 4 classes, or of as many classes as rows; and those that occur."""
    every = CLASSES[chosen(rng, tuple(CLASSES))]
    k = min(int(chosen(rng, (2, 2, 3, 4, rows))), len(every))
    codes = range(rows) if k >= rows else rng.integers(0, k, rows).tolist()
    labels = [every[code] for code in codes]
    form = chosen(rng, ("list", "array", "series", "categorical", "missing"))
    if form == "missing" and rng.random() < 0.1:
        return [None, *labels[1:]], tuple(set(labels[1:]))
    if form in ("series", "categorical"):
        series = import_module("pandas").Series(labels)
        return (series.astype("category") if form == "categorical" else series), tuple(set(labels))
    if form == "array":
        return _as_array(labels, chosen(rng, ("int32", "uint8", "float32", "object", "default"))), tuple(
            set(labels)
        )
    return labels, tuple(set(labels))


def _weight(rng: np.random.Generator, rows: int) -> Any:
    """Mostly none; else weights that are whole, zero, tiny, huge, negative or missing."""
    if rng.random() < 0.7:
        return None
    weights = (
        rng.integers(0, 3, rows),
        rng.random(rows),
        np.zeros(rows),
        np.full(rows, 1e-300),
        rng.random(rows) * 1e300,
        np.where(rng.random(rows) < 0.2, np.nan, 1.0),
        np.where(rng.random(rows) < 0.2, -1.0, 1.0),
        np.ones(rows - 1),
    )
    return chosen(rng, weights)


def quick_table(rng: np.random.Generator, max_rows: int = 30, max_columns: int = 5) -> QuickTable:
    """A random table."""
    rows, new_rows = int(rng.integers(2, max_rows + 1)), int(rng.integers(1, 6))
    kinds = THEMES[chosen(rng, ("numbers", *THEMES))]
    gaps = rng.random() < 0.4
    columns = [
        _column(rng, f"x{j}", chosen(rng, kinds), rows, new_rows, gaps)
        for j in range(int(rng.integers(1, max_columns + 1)))
    ]
    training, new, names = _containers(rng, columns)
    labels, classes = _labels(rng, rows)
    return QuickTable(training, labels, _weight(rng, rows), new, names, len(columns), classes)

"""Columns of random values: numbers, counts, flags, text and categories; ordinary and extreme ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from hypothesis import strategies as st

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]
LARGEST = sys.float_info.max
EXTREME_NUMBERS = (
    0.0,
    -0.0,
    1e300,
    -1e300,
    1e-300,
    -1e-300,
    5e-324,
    2.3e-308,
    LARGEST,
    -LARGEST,
    1e154,
    1e100,
    -1e100,
    1e16,
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


class Column(NamedTuple):
    """A column of the training rows and of the new rows; a missing cell is None."""

    name: str
    kind: str
    training: list[Any]
    new: list[Any]

    @property
    def has_missing(self) -> bool:
        """Whether a cell of the training rows or of the new rows is missing."""
        return None in self.training or None in self.new


def draw_column(draw: Draw, name: str, kind: str, rows: int, new_rows: int, *, missing: bool) -> Column:
    """A column whose cells are a few distinct values (one: a constant column) or as many as there are rows.

    New rows may have values that are not among those of the training rows.
    """
    most = draw(st.sampled_from((1, 2, 4, rows, rows)))
    values = draw(st.lists(KINDS[kind], min_size=1, max_size=most))
    further = draw(st.lists(KINDS[kind], max_size=2))
    gaps = [None] if missing and draw(st.booleans()) else []
    return Column(
        name, kind, _cells(draw, values + gaps, rows), _cells(draw, values + further + gaps, new_rows)
    )


def _cells(draw: Draw, values: list[Any], rows: int) -> list[Any]:
    return [values[number] for number in draw_codes(draw, len(values), rows)]


def draw_codes(draw: Draw, k: int, rows: int) -> list[int]:
    """Random integers below k, one for each row: all are equally likely, other than in lists that hypothesis draws."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return [int(code) for code in rng.integers(0, k, rows)]

"""Labels of several types, in several containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from calibayes.testing.random_tables.columns import Draw, draw_codes

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

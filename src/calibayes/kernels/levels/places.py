"""Places of rows among the rows of their class."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array


def places_in_class(codes: Array) -> Array:
    """The number of rows of the same class before each row, (n,)."""
    order = np.argsort(codes, kind="stable")
    places = np.empty(len(codes), dtype=np.intp)
    places[order] = np.arange(len(codes)) - np.searchsorted(codes[order], codes[order])
    return places

"""Labels and weights of a source that is not in memory: names of its columns, or values of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from calibayes.tables.dask_collections import dask_kind
from calibayes.tables.streams.chunk import RowStream
from calibayes.tables.streams.open import open_stream


def opened(X: Any, y: Any, sample_weight: Any) -> RowStream:
    """The stream of a source with its labels and weights."""
    is_lazy = dask_kind(X) is not None
    labels = _values("y", y, is_lazy=is_lazy)
    return open_stream(X, labels, _values("sample_weight", sample_weight, is_lazy=is_lazy))


def _values(role: str, given: Any, *, is_lazy: bool) -> Any:
    """A name, or an array (n,). Dask collections are computed, unless they belong to one."""
    if given is None or isinstance(given, str) or (is_lazy and dask_kind(given) is not None):
        return given
    values = np.asarray(given)
    if values.ndim == 0:
        raise ValueError(f"{role} must be the name of a column or have one value for each row, got {given!r}")
    return values if values.ndim == 1 else column_or_1d(values, warn=True)

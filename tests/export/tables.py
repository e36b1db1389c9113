"""Tables as columns of arrays, for the evaluation of expressions, and as data frames for databases."""

import numpy as np
import pandas as pd


def as_frame(X):
    """A data frame, an array or a sparse array as a data frame; columns of an array are x0, x1, ..."""
    if isinstance(X, pd.DataFrame):
        return X
    dense = X.toarray() if hasattr(X, "toarray") else X
    return pd.DataFrame(dense, columns=[f"x{j}" for j in range(dense.shape[1])])


def as_columns(X):
    """Name -> array, as `tests.export.evaluate.evaluate` reads it."""
    return {str(name): _array(column) for name, column in as_frame(X).items()}


def _array(column):
    if getattr(column.dtype, "tz", None) is not None:
        return column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    if column.dtype.kind in "mM":
        return column.to_numpy()
    if pd.api.types.is_numeric_dtype(column):
        return column.astype(float).to_numpy()
    return np.array(
        [None if gap else cell for cell, gap in zip(column, column.isna(), strict=True)], dtype=object
    )

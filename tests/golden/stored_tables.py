"""Tables as JSON, with the types of their columns, so that a table is the same in all years to come."""

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse


def table_to_json(X):
    """A data frame, an array or a sparse array as plain values."""
    if isinstance(X, pd.DataFrame):
        return {"form": "frame", "columns": [_column_to_json(X[name]) for name in X.columns]}
    dense = X.toarray() if issparse(X) else X
    cells = np.where(np.isnan(dense), None, dense.astype(object)).tolist()
    return {"form": "sparse" if issparse(X) else "array", "type": dense.dtype.name, "cells": cells}


def _column_to_json(column):
    is_time = column.dtype.kind in "mM"
    known = column.astype(str) if is_time else column
    cells = [None if missing else cell for cell, missing in zip(known.tolist(), column.isna(), strict=True)]
    entry = {"name": column.name, "type": str(column.dtype), "cells": cells}
    return {**entry, "categories": column.cat.categories.tolist()} if hasattr(column, "cat") else entry


def table_from_json(stored):
    """The table of `table_to_json`."""
    if stored["form"] == "frame":
        return pd.DataFrame({entry["name"]: _column_from_json(entry) for entry in stored["columns"]})
    X = np.array(stored["cells"], dtype=stored["type"])
    return csr_array(X) if stored["form"] == "sparse" else X


def _column_from_json(entry):
    if "categories" in entry:
        return pd.Series(pd.Categorical(entry["cells"], categories=entry["categories"]))
    if entry["type"].startswith("datetime64"):
        return pd.Series(pd.to_datetime(entry["cells"], utc="," in entry["type"])).astype(entry["type"])
    if entry["type"].startswith("timedelta64"):
        return pd.Series(pd.to_timedelta(entry["cells"])).astype(entry["type"])
    return pd.Series(entry["cells"], dtype=entry["type"])

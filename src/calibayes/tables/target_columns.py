"""Labels and weights that are columns of the table."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw


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
        columns = ", ".join(map(str, frame.columns))
        raise ValueError(f"there is no column {lacking[0]!r}; the columns are {columns}")
    taken = [frame[part].to_numpy() if isinstance(part, str) else part for part in (y, sample_weight)]
    return frame.drop(names).to_native(), *taken

"""Training rows that a fitted model keeps: which estimators do, and how many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def keeps_rows(estimator: Any) -> bool:
    """Whether the fitted model contains training rows; those estimators have the attribute ``kept_rows_``."""
    return hasattr(type(estimator), "kept_rows_") and getattr(estimator, "keep_rows", True)


def kept_row_count(model: Any) -> int:
    """Number of training rows in a fitted model."""
    return int(model.kept_rows_) if hasattr(type(model), "kept_rows_") else 0


def kept_rows_line(counts: Mapping[str, int]) -> str:
    """The line of a summary that says how many training rows are kept, and by which members of an ensemble.

    >>> kept_rows_line({"near": 344, "tied": 0})
    'training rows kept in the model: 344 (near)'
    """
    keeping = [name for name, count in counts.items() if count and name]
    members = f" ({', '.join(keeping)})" if keeping else ""
    return f"training rows kept in the model: {max(counts.values(), default=0)}{members}"

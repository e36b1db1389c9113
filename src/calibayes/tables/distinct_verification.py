"""Checks of distinct values of a column that come from a model file."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from calibayes.core.verify import require, require_array, require_ascending
from calibayes.tables.conversion import COLUMN_KINDS
from calibayes.tables.table import missing_mask


def verify_distinct(name: str, values: Any) -> None:
    """Raise ValueError unless values are known, distinct and ascending."""
    require_array(name, values, (None,), COLUMN_KINDS)
    are_scalars = values.dtype.kind != "O" or all(isinstance(value, Hashable) for value in values)
    require(are_scalars, f"{name} contains values that cannot be levels")
    require(not missing_mask(values).any(), f"{name} contains missing values")
    require(values.dtype.kind != "f" or bool(np.isfinite(values).all()), f"{name} contains infinity")
    require_ascending(name, values)

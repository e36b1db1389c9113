"""What is written down about each state: entry 0 is the start, entry t the state after t updates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np

from calibayes.core.protocols import Array


@dataclass(frozen=True)
class Entry:
    """Averages over weighted rows; NaN where something does not apply."""

    soft_error: float
    error: float
    log_loss: float
    objective: float
    """What the rule climbs, per row; the conditional log likelihood where the rule has none."""
    step: float
    """The step that led here, 0 at the start."""
    tau: float
    """The sum of all steps so far."""
    frozen: int
    """How many statistics kept their old value in that step."""
    passes: int
    """Passes over the data so far, those of refused steps included."""
    seconds: float
    validation_error: float = math.nan
    validation_log_loss: float = math.nan


def as_arrays(history: Sequence[Entry]) -> dict[str, Array]:
    """Name -> array with one entry more than there were updates; what never applied is left out."""
    columns = np.array([astuple(entry) for entry in history], dtype=np.float64).T
    named = {field.name: column for field, column in zip(fields(Entry), columns, strict=True)}
    return {name: column for name, column in named.items() if not np.isnan(column).all()}

"""How good posterior probabilities are, as sums over rows."""

from __future__ import annotations

from typing import NamedTuple

from calibayes.core.protocols import Array


class Scores(NamedTuple):
    """Weighted sums over rows with a label."""

    weight: float
    error: float
    soft_error: float
    """1 - p of the true class."""
    log_loss: float


class Assessment(NamedTuple):
    """How good a posterior is, and the class weights that its rows have next."""

    objective: float
    """Weighted sum of generative * log p(x, true class) + (1 - generative) * log p(true class | x)."""
    train: Scores
    held_out: Scores
    weights: Array | None
    """weight * (Y - (1 - generative) P), (n, k), where they are wanted."""


class Seen(NamedTuple):
    """What one look at rows of levels saw."""

    assessment: Assessment
    """Without weights."""
    counts: Array
    """Sums of the weights per class and cell, (k, cells)."""
    classes: Array
    """Sums of the weights per class, (k,)."""

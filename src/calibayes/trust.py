"""Results of what a fitted classifier says about rows that it was not trained on."""

from __future__ import annotations

from calibayes.estimators.interface.trust.drift_report import ColumnDrift, Drift
from calibayes.estimators.interface.trust.held_out import HeldOut
from calibayes.estimators.interface.trust.surprise import Surprise

__all__ = [
    "ColumnDrift",
    "Drift",
    "HeldOut",
    "Surprise",
]

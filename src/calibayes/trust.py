"""Results of what a fitted classifier says about rows that it was not trained on."""

from __future__ import annotations

from calibayes.estimators.interface.trust.held_out import HeldOut
from calibayes.estimators.interface.trust.prior_shift import ClassConditionalShiftWarning, PriorShift

__all__ = [
    "ClassConditionalShiftWarning",
    "HeldOut",
    "PriorShift",
]

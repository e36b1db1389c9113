"""Results of what a fitted classifier says about rows that it was not trained on."""

from __future__ import annotations

from calibayes.estimators.interface.trust.fairness import (
    FairDecisions,
    UncertainRatesWarning,
    fair_thresholds,
)
from calibayes.estimators.interface.trust.held_out import HeldOut
from calibayes.estimators.interface.trust.influence import Influence
from calibayes.estimators.interface.trust.questionnaire import Questionnaire
from calibayes.estimators.interface.trust.questions import Questions

__all__ = [
    "FairDecisions",
    "HeldOut",
    "Influence",
    "Questionnaire",
    "Questions",
    "UncertainRatesWarning",
    "fair_thresholds",
]

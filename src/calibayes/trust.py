"""Results of what a fitted classifier says about rows that it was not trained on."""

from __future__ import annotations

from calibayes.estimators.generative.forgetting.receipt_audit import ReceiptAudit, verify_receipt
from calibayes.estimators.interface.privacy.account import Privacy, PrivacyAccount
from calibayes.estimators.interface.trust.drift_report import ColumnDrift, Drift
from calibayes.estimators.interface.trust.fairness import (
    FairDecisions,
    UncertainRatesWarning,
    fair_thresholds,
)
from calibayes.estimators.interface.trust.forgetting_receipt import ForgettingReceipt
from calibayes.estimators.interface.trust.held_out import HeldOut
from calibayes.estimators.interface.trust.influence import Influence
from calibayes.estimators.interface.trust.prediction_sets import AdaptiveScore
from calibayes.estimators.interface.trust.prior_shift import ClassConditionalShiftWarning, PriorShift
from calibayes.estimators.interface.trust.questionnaire import Questionnaire
from calibayes.estimators.interface.trust.questions import Questions
from calibayes.estimators.interface.trust.surprise import Surprise

__all__ = [
    "AdaptiveScore",
    "ClassConditionalShiftWarning",
    "ColumnDrift",
    "Drift",
    "FairDecisions",
    "ForgettingReceipt",
    "HeldOut",
    "Influence",
    "PriorShift",
    "Privacy",
    "PrivacyAccount",
    "Questionnaire",
    "Questions",
    "ReceiptAudit",
    "Surprise",
    "UncertainRatesWarning",
    "fair_thresholds",
    "verify_receipt",
]

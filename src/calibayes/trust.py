"""Results of what a fitted classifier says about rows that it was not trained on."""

from __future__ import annotations

from calibayes.analysis.drift import ColumnDrift, Drift
from calibayes.analysis.fairness import FairDecisions, UncertainRatesWarning, fair_thresholds
from calibayes.analysis.forget import ReceiptAudit, verify_receipt
from calibayes.analysis.influence import Influence
from calibayes.analysis.prediction_sets import AdaptiveScore
from calibayes.analysis.prior_shift import ClassConditionalShiftWarning, PriorShift
from calibayes.analysis.privacy import Privacy, PrivacyAccount
from calibayes.analysis.questions import Questionnaire, Questions
from calibayes.analysis.receipts import ForgettingReceipt
from calibayes.analysis.surprise import Surprise
from calibayes.model.training_rows import HeldOut

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

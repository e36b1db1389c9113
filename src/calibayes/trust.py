"""Results of what a fitted classifier says about rows that it was not trained on."""

from __future__ import annotations

from calibayes.estimators.generative.forgetting.receipt_audit import ReceiptAudit, verify_receipt
from calibayes.estimators.interface.privacy.account import Privacy, PrivacyAccount
from calibayes.estimators.interface.trust.forgetting_receipt import ForgettingReceipt
from calibayes.estimators.interface.trust.held_out import HeldOut
from calibayes.estimators.interface.trust.prior_shift import ClassConditionalShiftWarning, PriorShift

__all__ = [
    "ClassConditionalShiftWarning",
    "ForgettingReceipt",
    "HeldOut",
    "PriorShift",
    "Privacy",
    "PrivacyAccount",
    "ReceiptAudit",
    "verify_receipt",
]

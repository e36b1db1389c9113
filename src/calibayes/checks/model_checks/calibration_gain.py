"""CB002: risk-based calibration (rule "rc") did not improve on maximum likelihood ("ml") on the same folds.

A model is reported if neither its mean held-out error nor its mean log loss is lower with "rc" than with "ml", and the gain in
error is below half a percentage point with 95 % confidence (one-sided upper limit, variance of Nadeau and Bengio 2003).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.checks.check import RESULTS, Check, Evidence, NotChecked
from calibayes.checks.model_checks.losses import by_model, mean_over_folds, upper_limit
from calibayes.checks.subject import Subject
from calibayes.checks.text import percent
from calibayes.compare.cross_validation import FoldResult
from calibayes.tables.text import counted, listed

LEAST_GAIN = 0.005


def look(subject: Subject) -> Evidence | None:
    """Evidence of models that calibration did not improve."""
    groups = by_model(subject.results)
    models = [model for model, rule in groups if rule == "rc" and (model, "ml") in groups]
    if not models:
        raise NotChecked('needs results of one model with both rules, "ml" and "rc", on the same folds')
    found = [model for model in models if not helps(groups[model, "ml"], groups[model, "rc"])]
    if not found:
        return None
    errors = {
        f"error of {model} ({rule})": _mean(groups[model, rule]) for model in found for rule in ("ml", "rc")
    }
    first = found[0]
    return Evidence(
        f"Risk-based calibration (rule 'rc') did not improve {len(found)} of {counted(len(models), 'model')}: {listed(found)}. "
        f"Held-out error of {first}: {percent(_mean(groups[first, 'ml']))} with maximum likelihood, "
        f"{percent(_mean(groups[first, 'rc']))} with calibration.",
        values=errors,
    )


def helps(plain: Sequence[FoldResult], calibrated: Sequence[FoldResult]) -> bool:
    """Whether calibration improved the error or the log loss, or a relevant gain in error cannot be excluded."""
    if len(plain) != len(calibrated):
        raise NotChecked('the rules "ml" and "rc" have different numbers of folds')
    pairs = list(zip(plain, calibrated, strict=True))
    gain = mean_over_folds([before.error - after.error for before, after in pairs])
    loss_gain = np.mean([before.log_loss - after.log_loss for before, after in pairs])
    return gain.value > 0 or bool(loss_gain > 0) or upper_limit(gain, len(pairs)) >= LEAST_GAIN


def _mean(folds: Sequence[FoldResult]) -> float:
    return float(np.mean([fold.error for fold in folds]))


CHECK = Check("CB002", "calibration did not help", look, (RESULTS,))

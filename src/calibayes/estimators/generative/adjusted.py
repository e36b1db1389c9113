"""An estimator adjusted to other class frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.estimators.generative.fitted import Fitted, log_change, with_priors
from calibayes.estimators.interface.labels import class_probabilities
from calibayes.estimators.interface.trust.held_out import keep_shifted


def adjusted(model: Any, fitted: Fitted, priors: Any) -> Any:
    """A copy of an estimator whose model, and whose record of held-out rows, are adjusted to other class frequencies."""
    given = class_probabilities(priors, fitted.classes)
    adapted = model.holding(with_priors(fitted, given))
    return keep_shifted(model, adapted, log_change(fitted, given), np.asarray(given, dtype=np.float64))

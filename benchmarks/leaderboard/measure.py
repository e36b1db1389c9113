"""Scores and seconds of one model on one fold of one table."""

from __future__ import annotations

import os
import time
import warnings

import numpy as np
from accuracy_scores import posterior_scores
from accuracy_tables import calibration_error
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

DIGITS = 8
"""Significant digits in the log."""


def clocks():
    """Elapsed seconds, and processor seconds of this process and of those it has started, such as Khiops'."""
    children = os.times().children_user + os.times().children_system
    return np.array([time.perf_counter(), time.process_time() + children])


def measure(make, table, split):
    """Fit to the training rows and score the posterior of the test rows, with one thread."""
    train, test = split
    model = make(table.frame.iloc[train])
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        begin = clocks()
        model.fit(table.frame.iloc[train], table.target[train])
        fitted = clocks()
        posterior = np.asarray(model.predict_proba(table.frame.iloc[test]), dtype=float)
        end = clocks()
    order = np.argsort(np.asarray(model.classes_).astype(int))
    found = {
        **scores(posterior[:, order], table.target[test]),
        **dict(zip(("fit", "fit_processor"), fitted - begin, strict=True)),
        **dict(zip(("predict", "predict_processor"), end - fitted, strict=True)),
    }
    return {"rows": len(test), **{name: float(f"{value:.{DIGITS}g}") for name, value in found.items()}}


def scores(posterior, truth):
    """Error, AUC (one against the rest for more than two classes), log loss, Brier score, calibration error."""
    two = posterior.shape[1] == 2
    auc = roc_auc_score(truth, posterior[:, 1]) if two else one_against_rest(posterior, truth)
    found = posterior_scores(posterior, truth)
    return {
        "error": np.mean(posterior.argmax(axis=1) != truth),
        "auc": auc,
        **{name: found[name] for name in ("log_loss", "brier")},
        "calibration": calibration_error([found]),
    }


def one_against_rest(posterior, truth):
    """Mean over the classes of the AUC of each against all others."""
    return np.mean([roc_auc_score(truth == k, posterior[:, k]) for k in range(posterior.shape[1])])

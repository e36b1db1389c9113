"""Scores and seconds of one model on one fold of one table."""

from __future__ import annotations

import os
import time
import warnings

import numpy as np
from accuracy_scores import posterior_scores
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits


def clocks():
    """Elapsed seconds, and processor seconds of this process and of those it has started, such as Khiops'."""
    return np.array([time.perf_counter(), sum(os.times()[:4])])


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
    return {
        **scores(posterior[:, order], table.target[test]),
        **dict(zip(("fit", "fit_processor"), (fitted - begin).tolist(), strict=True)),
        **dict(zip(("predict", "predict_processor"), (end - fitted).tolist(), strict=True)),
    }


def scores(posterior, truth):
    """Rows, error, AUC (one against the rest for more than two classes) and the scores of the posterior."""
    two = posterior.shape[1] == 2
    auc = roc_auc_score(truth, posterior[:, 1]) if two else one_against_rest(posterior, truth)
    return {
        "rows": len(truth),
        "error": float(np.mean(posterior.argmax(axis=1) != truth)),
        "auc": float(auc),
        **posterior_scores(posterior, truth),
    }


def one_against_rest(posterior, truth):
    """Mean over the classes of the AUC of each against all others."""
    return np.mean([roc_auc_score(truth == k, posterior[:, k]) for k in range(posterior.shape[1])])

"""The results of the log as a data frame: a line for each table, model and fold that are compared."""

from __future__ import annotations

import numpy as np
import pandas as pd
from accuracy_tables import calibration_error

from leaderboard.log import latest
from leaderboard.models import PARTIAL

SIZES = {"below 2,000": (0, 2_000), "2,000 to 10,000": (2_000, 10_001), "above 10,000": (10_001, np.inf)}
"""Title -> least number of rows, and the first one that is too many."""


def comparable(records, models=None):
    """The last results, on the folds of each table that all models have which are measured everywhere.

    Models that are not measured on all tables (PARTIAL) are kept on the tables of which they have all those folds.
    """
    found = latest([record for record in records if not models or record["model"] in models])
    core = {model for by_model in found.values() for model in by_model} - set(PARTIAL)
    kept = []
    for by_model in found.values():
        folds = common_folds(by_model, core)
        for by_fold in by_model.values():
            if folds and folds <= by_fold.keys():
                kept += [by_fold[fold] for fold in sorted(folds)]
    return pd.DataFrame([line(record) for record in kept])


def common_folds(by_model, core):
    """Folds that all core models have; none if one of them is missing."""
    if not core <= by_model.keys():
        return set()
    return set.intersection(*(set(by_model[model]) for model in core)) if core else set()


def line(record):
    """What the page needs of one record. The loss is that of TabArena: 1 - AUC for two classes, log loss for more."""
    scores = record["scores"]
    return {
        **{name: record[name] for name in ("table", "model", "fold", "rows", "columns", "classes")},
        **{name: scores[name] for name in ("error", "auc", "log_loss", "brier")},
        "calibration": calibration_error([scores]),
        "fit": scores["fit_processor"],
        "predict": scores["predict_processor"],
        "loss": 1 - scores["auc"] if record["classes"] == 2 else scores["log_loss"],
    }


def means(results, metric):
    """(tables, models): a metric on average over the folds; missing where a model was not measured."""
    return results.groupby(["table", "model"], sort=False)[metric].mean().unstack()


def of_size(results, size):
    """The results on tables of that size."""
    low, high = SIZES[size]
    return results[(results["rows"] >= low) & (results["rows"] < high)]


def geometric_ratios(values, other):
    """Model -> geometric mean over tables of its values divided by those of another model; empty without that one.

    Only tables on which both were measured count. Values are at least a millionth, so that a zero is no problem.
    """
    if other not in values:
        return pd.Series(dtype=float)
    logs = np.log(values.clip(lower=1e-6))
    return np.exp(logs.sub(logs[other], axis=0).mean())

"""The results of the log as a data frame: a line for each table, model and fold that are compared."""

from __future__ import annotations

import numpy as np
import pandas as pd

from leaderboard.log import latest
from leaderboard.models import PARTIAL
from leaderboard.r_tables import FRESH, KNOWN

SIZES = {"below 2,000": (0, 2_000), "2,000 to 10,000": (2_000, 10_001), "above 10,000": (10_001, np.inf)}
"""Title -> least number of rows, and the first one that is too many."""


def comparable(records, models=None):
    """The last results, on the folds of each table that all models have which are measured everywhere.

    Models that are not measured everywhere (PARTIAL) are kept with those of the folds that they have.
    """
    found = latest([record for record in records if not models or record["model"] in models])
    core = {model for by_model in found.values() for model in by_model} - set(PARTIAL)
    kept = []
    for by_model in found.values():
        folds = common_folds(by_model, core)
        kept += [by_fold[fold] for by_fold in by_model.values() for fold in sorted(folds & by_fold.keys())]
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
        **{name: scores[name] for name in ("error", "auc", "log_loss", "brier", "calibration")},
        "fit": scores["fit_processor"],
        "predict": scores["predict_processor"],
        "seconds": scores["fit_processor"] + scores["predict_processor"],
        "loss": 1 - scores["auc"] if record["classes"] == 2 else scores["log_loss"],
    }


def means(results, metric):
    """(tables, models): a metric on average over the folds; missing where a model was not measured."""
    return results.groupby(["table", "model"], sort=False)[metric].mean().unstack()


def by_size(results):
    """Title -> the results on tables of that size."""
    rows = results["rows"]
    return {f"{size} rows": results[(rows >= low) & (rows < high)] for size, (low, high) in SIZES.items()}


def by_origin(results):
    """Title -> the results on tables from there."""
    names = {
        "R packages, new here": {s.name for s in FRESH},
        "R packages, as in accuracy.md": {s.name for s in KNOWN},
    }
    parts = {title: results[results["table"].isin(tables)] for title, tables in names.items()}
    return {"files": results[~results["table"].isin(set().union(*names.values()))], **parts}


def geometric_ratios(results, metric, other):
    """Model -> geometric mean over tables of the ratio of a metric to that of another model; empty without that one.

    Both are means over the folds on which both were measured, and at least a millionth, so that a zero is no problem.
    """
    values = results.pivot(index=["table", "fold"], columns="model", values=metric)
    models = values.columns if other in values else []
    return pd.Series({model: geometric_ratio(values[model], values[other]) for model in models}, dtype=float)


def geometric_ratio(values, others):
    """The same for two models whose values are indexed by table and fold."""
    pair = pd.DataFrame({"values": values, "others": others}).dropna()
    logs = np.log(pair.groupby("table").mean().clip(lower=1e-6))
    return float(np.exp((logs["values"] - logs["others"]).mean()))

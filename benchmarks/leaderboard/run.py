"""Measures what is not in the log yet."""

from __future__ import annotations

import datetime

from accuracy_version import code_digest, commit

from leaderboard.log import append, finished, key, read_log
from leaderboard.measure import measure
from leaderboard.models import MODELS, OURS, is_suited, package_version


def run(log, models, loaders, folds):
    """Measure each model on each table, one fold after the other, and append the results to the log."""
    known, labels = finished(read_log(log)), {model: label_of(model) for model in models}
    for fold in folds:
        for name, load in loaders.items():
            wanted = [m for m in models if key({"table": name, "fold": fold, **labels[m]}) not in known]
            if wanted:
                run_fold(log, {model: labels[model] for model in wanted}, load(), fold)


def run_fold(log, labels, table, fold):
    """Measure models on one fold of a table; none if the table has no such fold."""
    rows, columns, classes = table.size
    splits = table.folds()
    for model, label in labels.items():
        if fold < len(splits) and is_suited(model, rows, columns):
            size = {"rows": rows, "columns": columns, "classes": classes}
            result = attempt(model, table, splits[fold])
            append(log, {"table": table.name, "fold": fold, **label, **size, **result, "time": now()})
            print(table.name, model, "fold", fold, summary(result), flush=True)


def attempt(model, table, split):
    """The scores, or how the model failed."""
    try:
        return {"scores": measure(MODELS[model][0], table, split)}
    except Exception as error:  # noqa: BLE001  a package may fail in any way, which is a result
        return {"failure": f"{type(error).__name__}: {error}"}


def summary(result):
    if "failure" in result:
        return f"failed: {result['failure']}"
    found = result["scores"]
    seconds = found["fit_processor"] + found["predict_processor"]
    return f"error {100 * found['error']:.2f} % log loss {found['log_loss']:.4f} AUC {found['auc']:.4f} {seconds:.1f} s"


def label_of(model):
    """Model and version of its package; for ours also commit and digest of the source."""
    label = {"model": model, "version": package_version(model)}
    return {**label, "commit": commit(), "digest": code_digest()} if model in OURS else label


def now():
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")

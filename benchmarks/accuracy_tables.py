"""Metrics of benchmarks/accuracy.py as arrays and Markdown tables."""

from __future__ import annotations

import numpy as np

FEW_ROWS = 1500
METRICS = {
    "error": ("error %", 100.0, "{:.2f}"),
    "log_loss": ("log loss", 1.0, "{:.3f}"),
    "brier": ("Brier", 1.0, "{:.3f}"),
    "calibration": ("calibration error %", 100.0, "{:.2f}"),
    "seconds": ("seconds", 1.0, "{:.2f}"),
}
"""Name -> title, factor and number format."""
TITLES = [title for title, _, _ in METRICS.values()]


def metric_value(folds, metric):
    """The metric over the folds of one data set; NaN if the model does not have it."""
    if metric == "seconds":
        return float(np.mean([fold["processor"] for fold in folds]))
    if metric == "calibration":
        return calibration_error(folds)
    return float(np.mean([fold.get(metric, np.nan) for fold in folds]))


def calibration_error(folds):
    """Expected calibration error of the highest probability, pooled over folds."""
    if not all("bin_rows" in fold for fold in folds):
        return np.nan
    rows, confidence, correct = (
        np.sum([fold[name] for fold in folds], axis=0) for name in ("bin_rows", "bin_sure", "bin_right")
    )
    return float(np.abs(confidence - correct).sum() / rows.sum())


def metric_array(results, models, metric):
    """(data sets, models)."""
    return np.array([[metric_value(folds[model], metric) for model in models] for folds in results.values()])


def row_counts(results, models):
    """Rows of each data set: every row is held out once."""
    return np.array([sum(fold["rows"] for fold in folds[models[0]]) for folds in results.values()])


def markdown(header, lines):
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, rule, *lines])


def cell(number, pattern, is_best=False):
    if np.isnan(number):
        return ""
    text = pattern.format(number)
    return f"**{text}**" if is_best else text


def all_metrics(folds):
    """The cells of one model on one data set."""
    return [cell(factor * metric_value(folds, metric), form) for metric, (_, factor, form) in METRICS.items()]


def averages(arrays, models):
    """Means over data sets, a line for each model."""
    lines = []
    for j, model in enumerate(models):
        cells = []
        for metric, (_, factor, form) in METRICS.items():
            means = arrays[metric].mean(axis=0)
            is_best = not np.isnan(means[j]) and means[j] == np.nanmin(means)
            cells.append(cell(factor * means[j], form, is_best))
        lines.append([model, *cells])
    return markdown(["model", *TITLES], lines)


def by_size(results, arrays, models):
    """Means over small and over larger data sets."""
    rows, lines = row_counts(results, models), []
    sizes = {f"up to {FEW_ROWS}": rows <= FEW_ROWS, f"more than {FEW_ROWS}": rows > FEW_ROWS}
    for title, mask in sizes.items():
        for metric in ("error", "log_loss"):
            if mask.any():
                name, factor, form = METRICS[metric]
                means = arrays[metric][mask].mean(axis=0)
                cells = [cell(factor * mean, form, mean == np.nanmin(means)) for mean in means]
                lines.append([f"{title} rows ({int(mask.sum())}), {name}", *cells])
    return markdown(["data sets", *models], lines)


def each_data_set(results, arrays, models, metric):
    """One metric, a line for each data set."""
    _, factor, form = METRICS[metric]
    lines = [
        [data, *(cell(factor * value, form, value == np.nanmin(values)) for value in values)]
        for data, values in zip(results, arrays[metric], strict=True)
    ]
    return markdown(["data", *models], lines)


def separate_tables(results, models):
    """Data sets by themselves, with the models that have been run on them; empty without results."""
    lines = [
        [data, model, *all_metrics(by_model[model])]
        for data, by_model in results.items()
        for model in models
        if model in by_model
    ]
    return markdown(["data", "model", *TITLES], lines) if lines else ""


def image_table(results):
    """Models on one split of MNIST."""
    return markdown(["model", *TITLES], [[model, *all_metrics([fold])] for model, fold in results.items()])

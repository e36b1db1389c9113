"""Tables of the leaderboard's page: models, sizes, wins, data sets."""

from __future__ import annotations

import numpy as np
from accuracy_tables import cell, markdown

from leaderboard.results import SIZES, geometric_ratios, means, of_size

RATIO_TO = ("LightGBM", "CatBoost")
DATA_METRICS = {
    "error": ("error %", 100.0, "{:.2f}", min),
    "log_loss": ("log loss", 1.0, "{:.3f}", min),
    "auc": ("AUC", 1.0, "{:.4f}", max),
}
"""Metric -> title, factor, number format, and which value is best."""


def standing_columns(results, elo):
    """Title -> (values by model, number format, best of the values) of the table of models."""
    errors, losses = means(results, "error"), means(results, "log_loss")
    everywhere = errors.columns[errors.notna().all()]
    seconds = means(results, "fit") + means(results, "predict")
    columns = {
        "tables": (errors.notna().sum(), "{:.0f}", None),
        "error %": (100 * errors[everywhere].mean(), "{:.2f}", min),
        **{f"log loss / {other}": (geometric_ratios(losses, other), "{:.3f}", min) for other in RATIO_TO},
        "calibration error %": (100 * means(results, "calibration")[everywhere].mean(), "{:.2f}", min),
        "time / LightGBM": (geometric_ratios(seconds, "LightGBM"), "{:.1f}", min),
    }
    return {"Elo": (elo.points, "{:.0f}", max), **columns}


def standings(results, elo):
    """A line for each model, the highest rating first."""
    columns = {title: found for title, found in standing_columns(results, elo).items() if len(found[0])}
    lines = []
    for model in elo.points.index:
        cells = [value_cell(values, model, form, best) for values, form, best in columns.values()]
        lines.append([model, f"{cells[0]} ({interval(elo, model)})", *cells[1:]])
    return markdown(["model", "Elo (95 % interval)", *list(columns)[1:]], lines)


def value_cell(values, model, form, best):
    """A number, in bold if it is the best one; empty if the model has none."""
    value = values.get(model, np.nan)
    return cell(value, form, best is not None and value == best(values.dropna(), default=np.nan))


def interval(elo, model):
    low, high = elo.interval(model)
    return f"{low:.0f} to {high:.0f}"


def by_size(results, elo_of):
    """Elo and the ratio of log losses to LightGBM's, for each size of which there are two tables; else empty."""
    parts = {size: of_size(results, size) for size in SIZES}
    parts = {size: part for size, part in parts.items() if part["table"].nunique() > 1}
    elo = {size: elo_of(part) for size, part in parts.items()}
    ratios = {size: geometric_ratios(means(part, "log_loss"), "LightGBM") for size, part in parts.items()}
    lines = []
    for model in results["model"].unique():
        cells = []
        for size in parts:
            shown = f"({interval(elo[size], model)})" if model in elo[size].points else ""
            cells.append(f"{value_cell(elo[size].points, model, '{:.0f}', max)} {shown}".strip())
            cells.append(value_cell(ratios[size], model, "{:.3f}", min))
        lines.append([model, *cells])
    titles = [
        f"{title}, {size} rows ({part['table'].nunique()} tables)"
        for size, part in parts.items()
        for title in ("Elo", "log loss / LightGBM")
    ]
    return markdown(["model", *titles], lines) if titles else ""


def wins(results, model):
    """Share of the comparisons that a model wins against each other one, in percent, by size of the table."""
    parts = {"all": results, **{size: of_size(results, size) for size in SIZES}}
    others = [other for other in results["model"].unique() if other != model]
    lines = [
        [other, *(cell(100 * win_share(part, model, other), "{:.0f}") for part in parts.values())]
        for other in others
    ]
    return markdown(["against", *parts], lines)


def win_share(results, model, other):
    """Share of tables won, a tie being half a win, each table on average over its folds; NaN without common tables."""
    losses = results.pivot(index=["table", "fold"], columns="model", values="loss")
    if model not in losses or other not in losses:
        return np.nan
    losses = losses[[model, other]].dropna()
    won = (losses[model] < losses[other]) + 0.5 * (losses[model] == losses[other])
    return won.groupby("table").mean().mean() if len(won) else np.nan


def by_table(results, metric):
    """One metric, a line for each table, the smallest table first."""
    _, factor, form, best = DATA_METRICS[metric]
    values, models = means(results, metric), list(results["model"].unique())
    sizes = results.groupby("table")[["rows", "columns", "classes"]].first().sort_values("rows")
    lines = []
    for table, (rows, columns, classes) in zip(sizes.index, sizes.to_numpy(), strict=True):
        cells = [value_cell(factor * values.loc[table], model, form, best) for model in models]
        lines.append([table, f"{rows:,} x {columns}", f"{classes}", *cells])
    return markdown(["data", "rows x columns", "classes", *models], lines)

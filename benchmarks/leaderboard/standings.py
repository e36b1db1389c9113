"""Tables of the leaderboard's page: models, sizes, wins, data sets."""

from __future__ import annotations

import numpy as np
from accuracy_tables import cell, markdown

from leaderboard.results import by_size, geometric_ratios, means

LOWEST, HIGHEST = 0, 3000
"""Ratings beyond these are not shown as numbers."""
RATIO_TO = ("LightGBM", "CatBoost")
DATA_METRICS = {
    "error": ("error %", 100.0, "{:.2f}", min),
    "log_loss": ("log loss", 1.0, "{:.3f}", min),
    "auc": ("AUC", 1.0, "{:.4f}", max),
}
"""Metric -> title, factor, number format, and which value is best."""


def standing_columns(results):
    """Title -> (values by model, number format, best of the values) of the table of models."""
    errors = means(results, "error")
    folds = results["model"].value_counts()
    everywhere = folds.index[folds == len(results[["table", "fold"]].drop_duplicates())]
    return {
        "tables": (errors.notna().sum(), "{:.0f}", None),
        "error %": (100 * errors[everywhere].mean(), "{:.2f}", min),
        **{
            f"log loss / {other}": (geometric_ratios(results, "log_loss", other), "{:.3f}", min)
            for other in RATIO_TO
        },
        "calibration error %": (100 * means(results, "calibration")[everywhere].mean(), "{:.2f}", min),
        "fit time / LightGBM": (geometric_ratios(results, "fit", "LightGBM"), "{:.1f}", min),
        "predict time / LightGBM": (geometric_ratios(results, "predict", "LightGBM"), "{:.1f}", min),
    }


def standings(results, elo):
    """A line for each model, the highest rating first."""
    columns = {title: found for title, found in standing_columns(results).items() if len(found[0])}
    lines = []
    for model in elo.points.index:
        cells = [value_cell(values, model, form, best) for values, form, best in columns.values()]
        lines.append([model, rating_cell(elo, model), *cells])
    return markdown(["model", "Elo (95 % interval)", *columns], lines)


def value_cell(values, model, form, best):
    """A number, in bold if it is the best one; empty if the model has none."""
    value = values.get(model, np.nan)
    return cell(value, form, best is not None and value == best(values.dropna(), default=np.nan))


def by_part(results, parts, elo_of):
    """Title -> table with a column for each part of the results that has two tables of data or more."""
    parts = {title: part for title, part in parts.items() if part["table"].nunique() > 1}
    models, elo = results["model"].unique(), {title: elo_of(part) for title, part in parts.items()}
    heads = ["model", *(f"{title} ({part['table'].nunique()} tables)" for title, part in parts.items())]
    rated = [[model, *(rating_cell(found, model) for found in elo.values())] for model in models]
    return {
        "Elo (95 % interval)": markdown(heads, rated),
        "Log loss / LightGBM": markdown(heads, ratio_lines(parts, models, "log_loss", "{:.3f}")),
        "Time of fit and predict / LightGBM": markdown(
            heads, ratio_lines(parts, models, "seconds", "{:.1f}")
        ),
    }


def ratio_lines(parts, models, metric, form):
    """For each model its ratio to LightGBM in each part."""
    ratios = [geometric_ratios(part, metric, "LightGBM") for part in parts.values()]
    return [[model, *(value_cell(found, model, form, min) for found in ratios)] for model in models]


def rating_cell(elo, model):
    """Rating and interval, the highest rating in bold; empty if the model has none."""
    if model not in elo.points:
        return ""
    rating, (low, high) = elo.points[model], elo.interval(model)
    text = f"**{bounded(rating)}**" if rating == elo.points.max() else bounded(rating)
    return f"{text} ({bounded(low)} to {bounded(high)})"


def bounded(rating):
    """A rating as text. A model that loses or wins all comparisons has no finite one."""
    if rating < LOWEST:
        return f"below {LOWEST}"
    return f"above {HIGHEST}" if rating > HIGHEST else f"{rating:.0f}"


def wins(results, model):
    """Share of the comparisons that a model wins against each other one, in percent, by size of the table."""
    parts = {"all": results, **{size: part for size, part in by_size(results).items() if len(part)}}
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

"""Learning curves: the same test rows, predicted from more and more training rows.

A curve is measured like the folds of a table: "fold" number i has SIZES[i] training rows (the last one all there are).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from accuracy_tables import cell, markdown
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from sklearn.model_selection import StratifiedShuffleSplit

from calibayes.versions import DOCUMENTATION
from leaderboard.log import latest
from leaderboard.tables import Table

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
TEST_SHARE, TEST_ROWS = 0.1, 30_000
MADE_UP, MADE_UP_ROWS = "made-up", 330_000
PICTURE = f"{DOCUMENTATION}/leaderboard.html#picture-leaderboard-curve"
"""The documentation site draws it from the log."""
NOTE = """\
The same test rows, predicted from more and more training rows. The table called made-up has two classes, whose log odds are
a sum of products of three columns' signs (`benchmarks/leaderboard/curve.py`)."""


class CurveTable(Table):
    """A table whose splits have the same test rows and nested sets of training rows."""

    def folds(self):
        rows = np.zeros(len(self.target))
        test_rows = min(TEST_ROWS, round(TEST_SHARE * len(rows)))
        splitter = StratifiedShuffleSplit(1, test_size=test_rows, random_state=0)
        train, test = next(splitter.split(rows, self.target))
        return [(train[:size], test) for size in training_sizes(len(train))]


def training_sizes(most):
    """The sizes of a curve, of which the last one has all rows."""
    smaller = [size for size in SIZES if size < most]
    return [*smaller, most] if len(smaller) < len(SIZES) else list(SIZES)


def curve_loaders(loaders):
    """The loaders of curves for some loaders of tables, and one for the table that is made up."""
    found = {name: lambda load=load: as_curve(load()) for name, load in loaders.items()}
    return {**found, MADE_UP: made_up}


def as_curve(table):
    return CurveTable(table.name, table.frame, table.target)


def made_up(rows=MADE_UP_ROWS):
    """Two classes whose log odds are a sum of four products of three columns' signs, out of twelve normal columns."""
    values = np.random.default_rng(0).normal(size=(rows, 12))
    products = np.sign(values).reshape(rows, 4, 3).prod(axis=2)
    chance = 1 / (1 + np.exp(-products.sum(axis=1)))
    target = np.random.default_rng(1).random(rows) < chance
    names = [f"x{j}" for j in range(12)]
    return CurveTable(MADE_UP, pd.DataFrame(values, columns=names), target.astype(int))


def curves(records):
    """A line for each table, model and number of training rows."""
    return pd.DataFrame(
        {
            "table": table,
            "model": model,
            "rows": training_sizes(record["rows"] - record["scores"]["rows"])[fold],
            "error": record["scores"]["error"],
            "log_loss": record["scores"]["log_loss"],
        }
        for table, by_model in latest(records).items()
        for model, by_fold in by_model.items()
        for fold, record in sorted(by_fold.items())
    )


def curve_section(records):
    """Table of the curves and a link to their picture, as parts of the page; none without results."""
    found = curves(records)
    if found.empty:
        return []
    models = list(found["model"].unique())
    values = found.pivot(index=["table", "rows"], columns="model", values=["error", "log_loss"])
    lines = [
        [
            table,
            f"{rows:,}",
            *(cell(100 * line["error"][model], "{:.2f}") for model in models),
            *(cell(line["log_loss"][model], "{:.3f}") for model in models),
        ]
        for (table, rows), line in values.iterrows()
    ]
    heads = [f"{model}: {title}" for title in ("error %", "log loss") for model in models]
    return [
        "## By number of training rows",
        NOTE,
        f"[Picture: Error by number of training rows]({PICTURE})",
        markdown(["data", "training rows", *heads], lines),
    ]


def draw_curves(found, path):
    """A panel for each table: error over training rows, a line for each model."""
    tables = list(found["table"].unique())
    figure = Figure(figsize=(0.8 + 3.1 * len(tables), 3.2), layout="constrained")
    panels = np.ravel(figure.subplots(1, len(tables)))
    for panel, table in zip(panels, tables, strict=True):
        for model, line in found[found["table"] == table].groupby("model", sort=False):
            panel.plot(line["rows"], line["error"], marker="o", markersize=4, label=model)
        panel.set(xscale="log", title=table, xlabel="training rows")
        panel.yaxis.set_major_formatter(PercentFormatter(1.0))
        panel.grid(color="#dddddd")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("error")
    panels[0].legend(frameon=False)
    with rc_context({"svg.hashsalt": "leaderboard"}):  # the same picture every time
        figure.savefig(path, metadata={"Date": None})

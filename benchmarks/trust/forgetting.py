"""How far models that have forgotten rows are from models that never saw them: `python -m benchmarks.trust.forgetting`."""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.trust.tables import tables
from calibayes import GaussianNB

SHARE = 0.05
"""Rows that are forgotten."""
FLOOR = 1e-17
"""Where differences of 0 are drawn."""


class Result(NamedTuple):
    """One table and rule."""

    table: str
    rows: int
    rule: str
    before: float
    """Largest difference of a probability between the model of all rows and that of the rows left."""
    after: float
    """The same after the rows were forgotten."""
    forget_seconds: float
    fit_seconds: float


def measured(name: str, X: pd.DataFrame, y: np.ndarray, rule: str) -> Result:
    """Forget some rows of every table, and compare with a fit on the others."""
    gone = np.random.default_rng(0).permutation(len(y)) < SHARE * len(y)
    model = GaussianNB(rule=rule).fit(X, y)
    start = time.perf_counter()
    left = model.forget(X[gone], y[gone])
    forgotten = time.perf_counter()
    refit = GaussianNB(rule=rule).fit(X[~gone], y[~gone])
    end = time.perf_counter()
    expected = refit.predict_proba(X)
    distances = [float(np.abs(m.predict_proba(X) - expected).max()) for m in (model, left)]
    return Result(name, len(y), rule, *distances, forgotten - start, end - forgotten)


def draw(results: list[Result], path: Path) -> None:
    """One dot for each table and rule, before and after."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
    for height, rule in enumerate(("rc", "ml")):
        of_rule = [result for result in results if result.rule == rule]
        for values, color, label in (
            ([r.after for r in of_rule], "tab:blue", "after forget"),
            ([r.before for r in of_rule], "tab:orange", "before"),
        ):
            axes.plot(
                np.maximum(values, FLOOR), [height] * len(values), "o", color=color, alpha=0.5, label=label
            )
    axes.set(
        xscale="log",
        ylim=(-0.6, 1.6),
        xlabel="largest difference of a probability from a model without the rows",
    )
    axes.set_yticks([0, 1], ["calibrated (rc)", "closed form (ml)"])
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[:2], labels[:2], loc="center", frameon=False)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = []
    for name, X, y in tables(options.quick):
        numbers = X.select_dtypes("number")
        if numbers.shape[1]:
            results += [measured(name, numbers, y, rule) for rule in ("ml", "rc")]
    frame = pd.DataFrame(results)
    print(frame.to_string(index=False, float_format="{:.2g}".format))
    print(
        frame.groupby("rule")[["before", "after"]]
        .agg(["median", "max"])
        .to_string(float_format="{:.1e}".format)
    )
    ratio = frame.forget_seconds / frame.fit_seconds
    print(
        ratio.groupby(frame.rule)
        .median()
        .rename("median time of forget / fit")
        .to_string(float_format="{:.2f}".format)
    )
    if options.picture:
        draw(results, options.picture)


if __name__ == "__main__":
    main()

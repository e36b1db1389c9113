"""Influence of training rows and groups beside models that are fitted again without them.

`python -m benchmarks.trust.influence` prints the table of docs/influence.md and draws its picture. It needs the folder of data
sets that CALIBAYES_DATA names. ``--quick`` uses two data sets of scikit-learn and draws nothing.

200 rows of each table (at most half) train naive Bayes (Gaussian numbers, categorical levels), at most 300 others test. The training rows
are in 20 groups, such as sources of data; the labels of four groups are permuted at random.

- ML: largest difference between the change of the log loss and that of fits without the group, and the time of 40 single
  rows by `influence` and by fits. Groups that have a level which no other row has are also counted apart: a fit without the group
  does not know the level.
- RC (8 updates): rank correlation of groups and of 40 single rows with fits; how many of the four groups with permuted labels
  are among the four that are least worth keeping.
- RC until the objective rises no more, 64 updates at most: rank correlation of groups with fits.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr
from sklearn.base import clone

from benchmarks.trust.tables import tables
from calibayes import GenerativeClassifier, categorical, numeric
from calibayes.families import Categorical, Diagonal, Gaussian

TRAINING_ROWS, TEST_ROWS, SINGLE_ROWS, GROUPS, PERMUTED = 200, 300, 40, 20, 4
PICTURE = Path(__file__).parents[2] / "docs" / "influence.svg"


class TableResult(NamedTuple):
    """Scores of a table."""

    name: str
    differences: np.ndarray
    has_own_level: np.ndarray
    seconds: float
    refit_seconds: float
    rank_of_groups: float
    rank_of_rows: float
    permuted_found: int
    rank_until_stop: float
    approximate: np.ndarray
    refitted: np.ndarray


class Data(NamedTuple):
    """Training and test rows of a table."""

    X: object
    y: np.ndarray
    groups: np.ndarray
    X_test: object
    y_test: np.ndarray


def naive_bayes(rule, **options):
    numbers = ("numbers", Gaussian(Diagonal(), prior="auto"), numeric)
    levels = ("levels", Categorical(alpha=1.0), categorical)
    return GenerativeClassifier(
        families=[numbers, levels], rule=rule, **(options or {"max_iter": 8, "stop": None})
    )


def data_of(X, y):
    """Rows of a table; labels of the first groups are permuted."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    size = min(TRAINING_ROWS, len(y) // 2)
    training, test = order[:size], order[size : size + TEST_ROWS]
    groups, labels = np.arange(len(training)) % GROUPS, y[training].copy()
    labels[groups < PERMUTED] = rng.permutation(labels[groups < PERMUTED])
    present = np.isin(y[test], np.unique(labels))
    return Data(X.iloc[training], labels, groups, X.iloc[test[present]], y[test[present]])


def has_own_level(X, left_out):
    """Whether some level of a column that is not numeric occurs in the rows that are left out, and in no other."""
    levels = X.select_dtypes(exclude="number")
    return any(set(levels[c][left_out].dropna()) - set(levels[c][~left_out].dropna()) for c in levels)


def loss_without(model, data, left_out):
    """Log loss of a model that is fitted without some rows."""
    again = clone(model).fit(data.X[~left_out], data.y[~left_out])
    codes = np.searchsorted(again.classes_, data.y_test)
    return -again.predict_log_proba(data.X_test)[np.arange(len(codes)), codes].mean()


def refits(model, data, masks):
    nothing = np.zeros(len(data.y), dtype=bool)
    before = loss_without(model, data, nothing)
    return np.array([loss_without(model, data, mask) - before for mask in masks])


def measured(name, X, y):
    """The result of one table."""
    data = data_of(X, y)
    group_masks = [data.groups == group for group in range(GROUPS)]
    row_masks = [np.arange(len(data.y)) == i for i in range(SINGLE_ROWS)]
    exact = naive_bayes("ml").fit(data.X, data.y)
    difference = exact.influence(*rows_of(data), groups=data.groups).values - refits(exact, data, group_masks)
    start = time.perf_counter()
    exact.influence(data.X[:SINGLE_ROWS], data.y[:SINGLE_ROWS], data.X_test, data.y_test)
    middle = time.perf_counter()
    refits(exact, data, row_masks)
    end = time.perf_counter()
    model = naive_bayes("rc").fit(data.X, data.y)
    approximate = model.influence(*rows_of(data), groups=data.groups).values
    refitted = refits(model, data, group_masks)
    single = model.influence(*rows_of(data)).values[:SINGLE_ROWS]
    found = int(np.sum(np.argsort(approximate)[:PERMUTED] < PERMUTED))
    return TableResult(
        name,
        np.abs(difference),
        np.array([has_own_level(data.X, mask) for mask in group_masks]),
        middle - start,
        end - middle,
        spearmanr(approximate, refitted).statistic,
        spearmanr(single, refits(model, data, row_masks)).statistic,
        found,
        until_stop(data, group_masks),
        approximate,
        refitted,
    )


def until_stop(data, masks):
    """Rank correlation of groups of a model that is trained until its objective rises no more."""
    model = naive_bayes("rc", max_iter=64).fit(data.X, data.y)
    approximate = model.influence(*rows_of(data), groups=data.groups).values
    return spearmanr(approximate, refits(model, data, masks)).statistic


def rows_of(data):
    return data.X, data.y, data.X_test, data.y_test


def draw(results):
    """Approximate changes of groups against those of fits, each table divided by its largest change."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "calibayes"
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    axes.axline((0, 0), slope=1, color="0.7", linewidth=1)
    for chosen, label in ((slice(PERMUTED), "labels permuted"), (slice(PERMUTED, None), "other groups")):
        scaled = [(r.refitted[chosen], r.approximate[chosen]) / np.abs(r.refitted).max() for r in results]
        x, y = np.concatenate(scaled, axis=1)
        axes.plot(x, y, "o", markersize=3, label=label, rasterized=True)
    axes.set(
        xlabel="change of log loss in a fit without the group",
        ylabel="influence",
        xlim=(-1.3, 1.3),
        ylim=(-1.3, 1.3),
    )
    axes.set_title(
        f"RC, {GROUPS} groups of {len(results)} tables, in units of the table's largest change", fontsize=9
    )
    axes.legend(frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None}, dpi=150)


def report(results):
    print(
        "| table | ML: largest difference | seconds | seconds, fits | RC: groups | RC: rows | permuted groups found | RC until stop: groups |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for r in results:
        times = f"{r.seconds:.3f} | {r.refit_seconds:.3f}"
        ranks = f"{r.rank_of_groups:.2f} | {r.rank_of_rows:.2f} | {r.permuted_found} of {PERMUTED} | {r.rank_until_stop:.2f}"
        print(f"| {r.name} | {r.differences.max():.0e} | {times} | {ranks} |")
    means = [np.mean([getattr(r, name) for r in results]) for name in TableResult._fields[3:9]]
    seconds, refit_seconds, groups, rows, found, until = means
    largest = max(r.differences.max() for r in results)
    ranks = f"{groups:.2f} | {rows:.2f} | {found:.1f} of {PERMUTED} | {until:.2f}"
    print(f"| mean | (largest) {largest:.0e} | {seconds:.3f} | {refit_seconds:.3f} | {ranks} |\n")
    report_levels(results)


def report_levels(results):
    """Differences of groups with a level of their own, and of the others."""
    differences = np.concatenate([r.differences for r in results])
    own = np.concatenate([r.has_own_level for r in results])
    for said, chosen in (("with a level of their own", own), ("other", ~own)):
        largest = differences[chosen].max(initial=0.0)
        print(f"groups {said}: {chosen.sum()}, largest difference of ML {largest:.0e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two small tables, no picture")
    quick = parser.parse_args().quick
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = [measured(*table) for table in tables(quick)]
    report(results)
    if not quick:
        draw(results)


if __name__ == "__main__":
    main()

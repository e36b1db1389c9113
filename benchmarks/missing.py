"""Held-out log loss of the default classifier when cells are missing in new rows, or in a few training rows.

`python benchmarks/missing.py` prints the table of docs/lab/0037-missing-cells.md. It needs the folder of data sets that
CALIBAYES_DATA names. ``--quick`` uses two data sets that come with the packages.

For each table, two thirds of the rows train and the others test:

- complete: log loss of `BayesClassifier`.
- blanked: one column is missing in all test rows, averaged over at most ten columns.
- refitted: a `BayesClassifier` that was trained without this column.
- best: the best of its members on the test rows, chosen in hindsight.
- behind: columns in which "blanked" exceeds "best" by more than two standard errors of the difference and by 0.02; and
  the same for "refitted", which no treatment of missing values can be expected to beat.
- 30 %: so many cells of the test rows, chosen at random, are missing.
- 1 % in training: so many cells of the training rows are missing, too; then with complete and with 30 % test rows.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris, load_wine

from calibayes import BayesClassifier

NAMES = (
    "iris",
    "wdbc",
    "vehicle",
    "ecoli",
    "diabetes",
    "redwine",
    "parkinsons",
    "vote",
    "breast-cancer",
    "australian",
    "zoo",
    "optdigits",
)
MOST_COLUMNS, MOST_ROWS = 10, 3000


def tables(quick):
    """Name, features and target of each table."""
    if quick:
        for name, loader in (("iris", load_iris), ("wine", load_wine)):
            bunch = loader(as_frame=True)
            yield name, bunch.data, bunch.target
        return
    folder = os.environ.get("CALIBAYES_DATA")
    if not folder:
        raise SystemExit("set CALIBAYES_DATA to the folder of data sets, or use --quick")
    for name in NAMES:
        frame = pd.read_csv(Path(folder) / f"{name}.csv.gz")
        yield name, frame.drop(columns="target"), frame["target"]


def split(X, y, rng):
    """Training and test rows; classes with fewer than four rows are left out."""
    counts = y.value_counts()
    labeled = np.flatnonzero(y.isin(counts.index[counts >= 4]))
    order = rng.permutation(labeled)[:MOST_ROWS]
    train, test = order[: 2 * len(order) // 3], order[2 * len(order) // 3 :]
    test = test[np.isin(y.iloc[test], y.iloc[train])]
    return X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test]


def row_losses(log_posterior, classes, y):
    return -log_posterior[np.arange(len(y)), np.searchsorted(classes, y)]


def default_losses(model, X, y):
    return row_losses(model.predict_log_proba(X), model.classes_, y)


def losses_without(X, y, X_test, y_test):
    """Losses of the test rows under a model of these columns, and under its best member."""
    model = BayesClassifier().fit(X, y)
    members = [
        row_losses(m.predict_log_proba(X_test), model.classes_, y_test) for m in model.models_.values()
    ]
    refitted = default_losses(model, X_test, y_test)
    return refitted, min(members, key=np.mean, default=refitted)


def is_behind(losses, reference):
    difference = losses - reference
    return difference.mean() > max(2 * difference.std() / np.sqrt(len(difference)), 0.02)


def blanked_cells(X, share, rng):
    """A copy in which a share of the cells is missing."""
    return X.mask(rng.random(X.shape) < share)


def figures(X, y):
    """The entries of one line of the table."""
    rng = np.random.default_rng(0)
    X, y, X_test, y_test = split(X, y, rng)
    model = BayesClassifier().fit(X, y)
    columns = X.columns[np.unique(np.linspace(0, X.shape[1] - 1, MOST_COLUMNS).astype(int))]
    means, behind = [], []
    for column in columns:
        absent = X_test.copy()
        absent[column] = absent[column].mask(np.ones(len(absent), dtype=bool))
        ours = default_losses(model, absent, y_test)
        refitted, best = losses_without(X.drop(columns=column), y, X_test.drop(columns=column), y_test)
        means.append((ours.mean(), refitted.mean(), best.mean()))
        behind.append((is_behind(ours, best), is_behind(refitted, best)))
    with_gaps = BayesClassifier().fit(blanked_cells(X, 0.01, rng), y)
    X_gaps = blanked_cells(X_test, 0.3, rng)
    pairs = [(model, X_test), (model, X_gaps), (with_gaps, X_test), (with_gaps, X_gaps)]
    losses = [default_losses(fitted, rows, y_test).mean() for fitted, rows in pairs]
    counts = " / ".join(map(str, [len(columns), *np.sum(behind, axis=0)]))
    shown = [losses[0], *np.mean(means, axis=0), *losses[1:]]
    return [f"{loss:.3f}" for loss in shown[:4]] + [counts] + [f"{loss:.3f}" for loss in shown[4:]]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    names = "complete", "blanked", "refitted", "best", "columns / behind / refitted behind", "30 %"
    header = "table", *names, "1 % in training", "1 % in training, 30 %"
    print(f"| {' | '.join(header)} |\n|{' --- |' * len(header)}")
    for name, X, y in tables(quick):
        print(f"| {name} | {' | '.join(figures(X, y))} |", flush=True)


if __name__ == "__main__":
    main()

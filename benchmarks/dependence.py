"""Held-out error and log loss of tree-augmented naive Bayes, k-dependence Bayes and AODE, by maximum likelihood and calibrated.

`CALIBAYES_DATA=FOLDER python benchmarks/dependence.py NAME ...` prints a table of the data sets NAME.csv.gz (last column:
target) in that folder; ``--folds`` is the number of stratified folds and ``--first`` evaluates the first of them alone.
``--quick`` runs all models on two folds of the penguins that ship. The figures are in docs/lab/0041-aode-and-kdb.md.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from calibayes import AODE, KDependenceBayes, NaiveBayes, TreeAugmentedNB
from calibayes.datasets import load_penguins

MODELS = {
    "naive Bayes": NaiveBayes,
    "tree": TreeAugmentedNB,
    "KDB, 1": lambda rule: KDependenceBayes(max_parents=1, rule=rule),
    "KDB, 2": KDependenceBayes,
    "AODE": AODE,
}
RULES = ("ml", "rc")
MIN_PROBABILITY = 1e-15
"""Probabilities are clipped to this, as in scikit-learn's log loss."""


def load(name, folds):
    """Columns and target, without classes that have fewer rows than there are folds."""
    folder = os.environ.get("CALIBAYES_DATA")
    if folder is None:
        raise SystemExit("CALIBAYES_DATA is not set: set it to the folder of data sets, or give --quick")
    table = pd.read_csv(Path(folder) / f"{name}.csv.gz")
    target = table.iloc[:, -1]
    table = table[target.map(target.value_counts()) >= folds].reset_index(drop=True)
    return table.iloc[:, :-1], table.iloc[:, -1].to_numpy()


def scores(model, X, y, train, test):
    """Error in percent, log loss, and seconds of processor time of the fit."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X.iloc[train], y[train])
    seconds, posterior = time.process_time() - start, model.predict_proba(X.iloc[test])
    truth = np.searchsorted(model.classes_, y[test])
    likelihood = np.clip(posterior[np.arange(len(test)), truth], MIN_PROBABILITY, 1.0)
    return 100.0 * np.mean(posterior.argmax(axis=1) != truth), -np.mean(np.log(likelihood)), seconds


def row(name, X, y, folds, first):
    """A row of the table: error / log loss of each model and rule."""
    splits = list(StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y))[: 1 if first else None]
    cells = []
    for rule in RULES:
        for make in MODELS.values():
            error, log_loss, _ = np.mean([scores(make(rule=rule), X, y, *split) for split in splits], axis=0)
            cells.append(f"{error:.1f} / {log_loss:.3f}")
    return f"| {name} | {len(y):,} x {X.shape[1]} | {len(np.unique(y))} | {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--first", action="store_true", help="evaluate the first fold alone")
    parser.add_argument("--quick", action="store_true", help="two folds of the penguins that ship")
    options = parser.parse_args()
    columns = [f"{model}, {rule}" for rule in RULES for model in MODELS]
    print(f"| data | size | classes | {' | '.join(columns)} |")
    print(f"| --- | --- | --- |{' --- |' * len(columns)}")
    if options.quick:
        print(row("penguins", *load_penguins(return_X_y=True), folds=2, first=False))
    for name in options.names:
        print(row(name, *load(name, options.folds), options.folds, options.first), flush=True)


if __name__ == "__main__":
    main()

"""Test log loss, error, trees and seconds of the default, of `CalibratedTrees` alone and of LightGBM, by number of rows.

`python benchmarks/growth_end.py` makes tables of three kinds of interactions and fits the three on one thread. It shows whether
growth ends too early, and whether the default loses to its own part. With ``--data FOLDER`` it takes the tables of a folder
(``NAME.csv.gz``, the last column is the class) instead, with random test rows, and with ``--folds`` cross-validation. LightGBM
is left out if it is missing. ``--quick`` runs everything on few rows.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, train_test_split

from calibayes import BayesClassifier, CalibratedTrees

ROWS, CLASSES, TEST_ROWS = (20_000, 60_000, 200_000), (2, 3), 30_000
QUICK_ROWS, QUICK_TEST_ROWS = (2_000,), 2_000
LEAST_ROWS = 5
"""Classes with fewer rows are left out."""
LEAST = 1e-12
"""Smallest probability in a log loss."""


def products(rng, n, k):
    """Products of pairs of columns, with the sign of a third one, beside additive terms."""
    X = rng.normal(size=(n, 24))
    X[:, 12:] = np.round(2.0 * X[:, 12:])
    terms = [
        X[:, j] * X[:, j + 1] * np.sign(X[:, j + 2]) + X[:, (j + 5) % 12] + 0.5 * X[:, 12 + j]
        for j in range(0, 3 * k, 3)
    ]
    return X, np.stack(terms, axis=1)


def boxes(rng, n, k):
    """Rows inside of boxes of three columns each."""
    X, scores, places = rng.random((n, 20)), np.zeros((n, k)), np.random.default_rng(99)
    for number in range(6 * k):
        columns, low = places.choice(20, 3, replace=False), 0.5 * places.random(3)
        inside = (X[:, columns] > low) & (X[:, columns] < low + 0.5)
        scores[:, number // 6] += 2.5 * inside.all(axis=1)
    return X, scores


def additive(rng, n, k):
    """Sixty weak columns that add up, half of them by a sine."""
    X, strength = rng.normal(size=(n, 60)), 0.25 * np.random.default_rng(98).normal(size=(60, k))
    terms = np.where(np.arange(60) % 2 == 1, X, np.sin(2.0 * X))
    return X, terms @ strength


def made(kind, n, k):
    """Columns and classes; the class is that of the largest score after Gumbel noise, a multinomial logistic model."""
    rng = np.random.default_rng(0)
    X, scores = kind(rng, n, k)
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def default():
    return BayesClassifier(n_jobs=1)


def trees():
    return CalibratedTrees(n_jobs=1)


def lightgbm():
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbose=-1)


def models():
    """Name -> function that makes a model."""
    found = {"default": default, "CalibratedTrees": trees}
    if importlib.util.find_spec("lightgbm") is not None:
        found["LightGBM"] = lightgbm
    return found


def tree_count(model):
    """Number of trees of a forest."""
    if hasattr(model, "n_trees_"):
        return model.n_trees_
    if hasattr(model, "trees_"):
        return model.trees_.tree_count
    return getattr(model, "n_estimators", 0)


def result(make, train, labels, test, truth):
    """Test log loss, test error in percent, trees and seconds of the fit."""
    begin = time.perf_counter()
    model = make().fit(train, labels)
    seconds = time.perf_counter() - begin
    p = model.predict_proba(test)
    of_class = p[np.arange(len(truth)), np.searchsorted(model.classes_, truth)]
    loss = -float(np.mean(np.log(np.maximum(of_class, LEAST))))
    return loss, 100.0 * float(np.mean(model.classes_[p.argmax(axis=1)] != truth)), tree_count(model), seconds


def numeric(frame):
    """Text as categories, which LightGBM reads, too."""
    texts = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    return frame.astype(dict.fromkeys(texts, "category"))


def folder_tables(folder, names, folds, most):
    """(name, splits) of the tables of a folder: as many folds, or a quarter of the rows once."""
    for path in sorted(Path(folder).glob("*.csv.gz")):
        name = path.name.removesuffix(".csv.gz")
        if names and name not in names:
            continue
        frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
        X, y = numeric(frame.iloc[:, :-1]), frame.iloc[:, -1].to_numpy()
        rows_of_class = pd.Series(y).map(pd.Series(y).value_counts())
        known = (rows_of_class >= LEAST_ROWS).to_numpy()
        X, y = X[known].reset_index(drop=True), y[known]
        if folds:
            parts = StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y)
        else:
            rows = np.arange(len(y))
            parts = [train_test_split(rows, test_size=0.25, random_state=0, stratify=y)]
        yield name, [(X.iloc[a[:most]], y[a[:most]], X.iloc[b], y[b]) for a, b in parts]


def made_tables(sizes, test_rows):
    """(name, splits) of made-up tables."""
    for kind in (products, boxes, additive):
        for n in sizes:
            for k in CLASSES:
                X, y = made(kind, n + test_rows, k)
                yield f"{kind.__name__}, {n:,} rows, {k} classes", [(X[:n], y[:n], X[n:], y[n:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows")
    parser.add_argument("--rows", type=int, nargs="+", help="numbers of training rows of the made-up tables")
    parser.add_argument("--data", help="a folder of tables instead of made-up ones")
    parser.add_argument("--names", nargs="+", help="these tables of the folder")
    parser.add_argument("--folds", type=int, help="cross-validation with so many folds")
    parser.add_argument(
        "--most", type=int, default=60_000, help="largest number of training rows of a folder's tables"
    )
    given = parser.parse_args()
    if given.data:
        tables = folder_tables(given.data, given.names, given.folds, given.most)
    else:
        sizes = given.rows or (QUICK_ROWS if given.quick else ROWS)
        tables = made_tables(sizes, QUICK_TEST_ROWS if given.quick else TEST_ROWS)
    print(
        "| table | model | test log loss | error in % | trees | seconds |\n| --- | --- | --- | --- | --- | --- |"
    )
    for name, splits in tables:
        for model, make in models().items():
            loss, error, count, seconds = np.mean([result(make, *split) for split in splits], axis=0)
            print(
                f"| {name} | {model} | {loss:.4f} | {error:.2f} | {count:.0f} | {seconds:.1f} |", flush=True
            )


if __name__ == "__main__":
    main()

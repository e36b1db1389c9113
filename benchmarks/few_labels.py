"""Splits of 15 tables with few labels, for `unlabeled.py` and for `unlabeled_mrc.py`, which runs without this package.

At most 900 rows of a table are drawn, a third of them for the test. Of the training rows one in ten of each class, but at
least three, has a label.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris, load_wine

NAMES = (
    *(
        "australian",
        "breast-cancer",
        "car",
        "diabetes",
        "ionosphere",
        "kr-vs-kp",
        "mushroom",
        "optdigits",
        "qsar",
    ),
    *("satellite", "splice", "tic-tac-toe", "vehicle", "vote", "wdbc"),
)
MOST_ROWS, LABELED, LEAST_OF_CLASS, BINS = 900, 0.1, 3, 5


def tables(quick):
    """Name -> features and target."""
    if quick:
        loaded = {"iris": load_iris(as_frame=True), "wine": load_wine(as_frame=True)}
        return {name: (bunch.data, bunch.target) for name, bunch in loaded.items()}
    folder = os.environ.get("CALIBAYES_DATA")
    if not folder:
        raise SystemExit("set CALIBAYES_DATA to the folder of data sets, or use --quick")
    frames = {name: pd.read_csv(Path(folder) / f"{name}.csv.gz") for name in NAMES}
    return {name: (frame.drop(columns="target"), frame["target"]) for name, frame in frames.items()}


def encoded(X, train):
    """The columns as codes of levels, and as numbers; bins, means and scales are those of the training rows."""
    codes, numbers = [], []
    for name in X:
        column = X[name]
        is_number = pd.api.types.is_numeric_dtype(column) and column.iloc[train].nunique() > BINS
        if is_number:
            known = column.iloc[train].dropna()
            edges = np.unique(np.quantile(known, np.arange(1, BINS) / BINS))
            codes.append(np.where(column.isna(), len(edges) + 1, np.searchsorted(edges, column, "right")))
            numbers.append((column.fillna(known.median()) - known.mean()) / (known.std() or 1.0))
            continue
        column = column.astype(object).fillna("missing").astype(str)
        levels = {level: code for code, level in enumerate(sorted(column.iloc[train].unique()))}
        code = column.map(levels).fillna(-1).to_numpy(dtype=int)
        codes.append(np.where(code < 0, 0, code))  # a level that does not occur in training is the first one
        numbers += [(code == level).astype(float) for level in range(1, len(levels))]
    return np.column_stack(codes).astype(int), np.column_stack(numbers)


def splits(X, y, number):
    """Training rows with some labels, and test rows."""
    codes = y.astype("category").cat.codes.to_numpy()
    many = np.flatnonzero(np.isin(codes, np.flatnonzero(np.bincount(codes) >= 4 * LEAST_OF_CLASS)))
    for seed in range(number):
        rng = np.random.default_rng(seed)
        chosen = rng.permutation(many)[:MOST_ROWS]
        train, test = chosen[: 2 * len(chosen) // 3], chosen[2 * len(chosen) // 3 :]
        labels = np.full(len(train), np.nan)
        for code in np.unique(codes[train]):
            rows = rng.permutation(np.flatnonzero(codes[train] == code))
            few = rows[: max(round(LABELED * len(rows)), LEAST_OF_CLASS)]
            labels[few] = codes[train][few]
        test = test[np.isin(codes[test], codes[train])]
        levels, numbers = encoded(X, train)
        yield SimpleNamespace(
            levels=(levels[train], levels[test]),
            numbers=(numbers[train], numbers[test]),
            labels=labels,
            truth=codes[train],
            test=codes[test],
        )


def scores(log_posterior, classes, truth):
    """Error, and log loss of the true class."""
    true = np.searchsorted(classes, truth)
    return np.mean(log_posterior.argmax(axis=1) != true), -np.mean(log_posterior[np.arange(len(true)), true])

"""Twenty tables to measure on: those in the folder that CALIBAYES_DATA names, or in several folders, by size alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets

FEWEST_ROWS, MOST_ROWS = 300, 20_000
LEAST_OF_CLASS = 30
"""Rows of the smallest class of a table."""


def tables(
    quick: bool, most: int | None = 20, *, sampled: bool = False, fewest: int = FEWEST_ROWS
) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Name, columns and labels of at most so many tables, or of all; with ``quick`` of two that come with scikit-learn.

    Tables of too few or too many rows are left out; if ``sampled``, rows of those with too many are drawn at random.
    """
    if quick:
        for load in (datasets.load_breast_cancer, datasets.load_wine):
            frame = load(as_frame=True)
            yield load.__name__.removeprefix("load_"), frame.data, frame.target.to_numpy()
        return
    folder = os.environ.get("CALIBAYES_DATA")
    if folder is None:
        raise SystemExit("CALIBAYES_DATA is not set: set it to the folder of data sets, or give --quick")
    found = 0
    paths = [path for part in folder.split(os.pathsep) for path in Path(part).glob("*.csv.gz")]
    for path in sorted(paths, key=lambda path: path.name):
        frame = pd.read_csv(path)
        if sampled and len(frame) > MOST_ROWS:
            frame = frame.sample(MOST_ROWS, random_state=0)
        X, y = frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy()
        counts = pd.Series(y).value_counts()
        if (
            (most is None or found < most)
            and fewest <= len(y) <= MOST_ROWS
            and counts.min() >= LEAST_OF_CLASS
        ):
            found += 1
            yield path.name.removesuffix(".csv.gz"), X, y

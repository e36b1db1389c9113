"""Splits of training rows inside `fit`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, check_cv

from calibayes.core.protocols import Array
from calibayes.estimators.checks import WHOLE, whole_number
from calibayes.estimators.inner_choice import Splits
from calibayes.estimators.reading import Rows


def inner_splits(cv: Any, rows: Rows, y: Any, seed: int) -> Splits:
    """Training and held-out positions among the rows; splitters count all rows that were passed to `fit`."""
    if isinstance(cv, WHOLE):
        rarest = int(np.bincount(rows.codes).min())
        if rarest < 2:
            raise ValueError(
                "a class has one row only (n_samples = 1), so nothing can be chosen by cross-validation: give one "
                "selection and one C"
            )
        folds = StratifiedKFold(min(whole_number("cv", cv, 2), rarest), shuffle=True, random_state=seed)
        return list(folds.split(rows.codes, rows.codes))
    given = np.asarray(y)
    place = np.full(len(given), -1)
    place[rows.where] = np.arange(len(rows.where))
    found = check_cv(cv, given, classifier=True).split(given, given)
    return [_checked(place[train], place[test], rows.codes) for train, test in found]


def _checked(train: Array, test: Array, codes: Array) -> tuple[Array, Array]:
    train, test = train[train >= 0], test[test >= 0]
    if len(np.unique(codes[train])) < len(np.unique(codes)) or not len(test):
        raise ValueError("a split of cv has no row of some class to train on, or none to hold out")
    return train, test


def some_rows(codes: Array, most: int | None, seed: int) -> Array:
    """Positions of at most so many rows, drawn class by class; all of them where no class would be lost otherwise."""
    n = len(codes)
    if most is None or n <= most:
        return np.arange(n)
    drawn, _ = next(StratifiedShuffleSplit(1, train_size=most, random_state=seed).split(codes, codes))
    few = np.flatnonzero(
        np.bincount(codes)[codes] * most < 10 * n
    )  # all rows of classes that a draw would thin out
    return np.union1d(drawn, few)

"""Tables that metamorphic laws are tried on: random ones by number, and real ones from the folder `CALIBAYES_DATA`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

LARGEST_REAL = 1500
"""Rows of a real table that are used, drawn at random."""


class LawTable(NamedTuple):
    """Training rows with labels, and new rows of the same columns."""

    name: str
    training: pd.DataFrame
    labels: np.ndarray
    new: pd.DataFrame

    @property
    def is_numeric(self) -> bool:
        return all(kind.kind in "fiu" for kind in self.training.dtypes)


NEW_ROWS = 30
THEMES = (
    ("normal", "skewed", "count", "rounded", "flag", "level", "many", "date", "instant"),
    ("normal", "skewed", "count", "rounded", "flag"),
    ("normal", "skewed", "count", "rounded", "flag", "level", "many", "date", "instant"),
    ("count", "flag"),
)
"""Kinds of columns of a table, by its number: many estimators read numbers alone, some only counts."""


def random_table(number: int) -> LawTable:
    """A table of ordinary columns, some with missing values, some with a column that repeats or recodes another one."""
    rng = np.random.default_rng([number, 32])
    n, k = int(rng.integers(60, 220)), int(rng.integers(2, 5))
    drawn = rng.choice(k, n + NEW_ROWS - 6 * k, p=rng.dirichlet(np.full(k, 3.0)))
    y = np.concatenate(
        [rng.permutation(np.concatenate([np.repeat(np.arange(k), 6), drawn[NEW_ROWS:]])), drawn[:NEW_ROWS]]
    )
    kinds = rng.choice(THEMES[number % len(THEMES)], int(rng.integers(2, 8)))
    frame = pd.DataFrame({f"{kind}{j}": MAKERS[kind](rng, y) for j, kind in enumerate(kinds)})
    if rng.random() < 0.4:
        source = frame[frame.columns[rng.integers(frame.shape[1])]]
        frame["again"] = _recoded(rng, source) if rng.random() < 0.6 else source
    if rng.random() < 0.3:
        for name in frame.columns[rng.random(frame.shape[1]) < 0.5]:
            frame[name] = frame[name].mask(rng.random(len(frame)) < 0.1)
    labels = np.array(["no", "yes", "maybe", "late"])[y[:n]]
    return LawTable(f"random {number}", frame[:n].copy(), labels, frame[n:].reset_index(drop=True))


def _normal(rng, y):
    return rng.normal(size=len(y)) * rng.uniform(0.5, 3) + rng.normal(size=8)[y]


def _skewed(rng, y):
    return np.exp(_normal(rng, y))


def _count(rng, y):
    return rng.poisson(rng.uniform(0.3, 5, 8)[y]).astype(float)


def _rounded(rng, y):
    return np.round(_normal(rng, y), 1)


def _flag(rng, y):
    return (rng.random(len(y)) < rng.uniform(0.1, 0.9, 8)[y]).astype(float)


def _level(rng, y):
    names = np.array(["red", "green", "blue", "grey", "pink"], dtype=object)[: rng.integers(2, 6)]
    shares = rng.dirichlet(np.ones(len(names)), 8)
    return np.array([rng.choice(names, p=shares[code]) for code in y], dtype=object)


def _many_levels(rng, y):
    return np.array([f"item {number}" for number in rng.poisson(rng.uniform(4, 25, 8)[y])], dtype=object)


def _date(rng, y):
    days = rng.integers(0, 500, len(y)) + rng.integers(0, 300, 8)[y]
    return pd.Series(
        pd.Timestamp("2021-03-01 05:30") + pd.to_timedelta(days * 24 + rng.integers(0, 24, len(y)), unit="h")
    )


def _instant(rng, y):
    return _date(rng, y).dt.tz_localize("UTC")


MAKERS = {
    "normal": _normal,
    "skewed": _skewed,
    "count": _count,
    "rounded": _rounded,
    "flag": _flag,
    "level": _level,
    "many": _many_levels,
    "date": _date,
    "instant": _instant,
}


def _recoded(rng, column: pd.Series) -> pd.Series:
    """The same information under other values: each distinct value becomes a number, in any order."""
    codes, values = pd.factorize(column)
    return pd.Series(rng.permutation(len(values))[codes].astype(float))


def real_tables(most: int) -> Iterator[LawTable]:
    """The smallest tables of the folder `CALIBAYES_DATA`, most of each drawn at random."""
    folder = os.environ.get("CALIBAYES_DATA")
    if not folder:
        return
    paths = [path for part in folder.split(os.pathsep) for path in sorted(Path(part).glob("*.csv.gz"))]
    for path in sorted(paths, key=lambda path: path.stat().st_size)[: 3 * most : 3]:
        frame = pd.read_csv(path)
        labels = frame.pop("target").astype(str).to_numpy()
        order = np.random.default_rng(0).permutation(len(labels))[:LARGEST_REAL]
        split = int(0.8 * len(order))
        training, new = (frame.iloc[part].reset_index(drop=True) for part in (order[:split], order[split:]))
        yield LawTable(path.name.partition(".")[0], training, labels[order[:split]], new)

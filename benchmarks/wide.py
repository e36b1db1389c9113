"""Processor time and accuracy of the default classifier beside LightGBM on tables of many columns or many classes.

`python benchmarks/wide.py` makes up four tables and prints for each the processor seconds of fit and predict, their ratio,
and log loss and error on test rows. ``--quick`` takes small tables, ``--tables NAME ...`` some of them, ``--repeats`` the
lowest time of several runs, ``--profile`` the functions that took most of the time. Without LightGBM its columns are left
out.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib.util
import pstats
import time
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from calibayes import BayesClassifier

TEST_SHARE = 0.25


# -- tables ----------------------------------------------------------------------------------------------------


def sparse_mixed(rng, n, d):
    """Mostly zero counts and indicators, a few texts, numbers and missing cells; two classes."""
    factors = rng.normal(size=(n, 20))
    cells = np.zeros((n, d))
    for j in range(d):
        rate = np.exp(
            rng.normal(-6.5, 1.7) + rng.normal(0.0, 0.7, 20) @ factors.T * (rng.random() < 0.5) * 0.5
        )
        counts = rng.poisson(np.minimum(rate, 20.0))
        cells[:, j] = counts if j % 3 == 0 else counts > 0
    numbers, texts = d // 50, 5
    cells[:, :numbers] = factors[:, rng.integers(0, 20, numbers)] + rng.normal(size=(n, numbers))
    frame = pd.DataFrame(cells, columns=[f"x{j}" for j in range(d)])
    frame = frame.mask(rng.random(frame.shape) < np.where(rng.random(d) < 0.1, 0.25, 0.0))
    for j in range(texts):
        levels = np.array([f"level {i}" for i in range(3 + 10 * j)])
        place = np.abs(factors[:, j] * (1 + 3 * j) + rng.normal(size=n)).astype(int)
        frame[f"x{d - 1 - j}"] = levels[place % len(levels)]
    rare = cells[:, d // 2 :].sum(axis=1)
    score = factors[:, 0] + factors[:, 1] * factors[:, 2] + (rare - np.median(rare)) / rare.std()
    return frame, (score + rng.logistic(0.0, 0.5, n) > 0).astype(int)


def images(rng, n, side, k=10):
    """Black and white images of strokes that are shifted and distorted at random; one class for each drawing."""
    strokes = rng.uniform(0.15, 0.85, (k, 4, 2))
    share = np.linspace(0.0, 1.0, 20)[:, None]
    grid = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, side)] * 2), axis=-1).reshape(-1, 2)
    y, cells = rng.integers(0, k, n), np.empty((n, side * side))
    for row, label in enumerate(y):
        ends = strokes[label] + rng.normal(0.0, 0.05, (4, 2)) + rng.normal(0.0, 0.03, 2)
        points = np.concatenate([a + (b - a) * share for a, b in pairwise(ends)])
        distance = np.sqrt(((grid[:, None] - points) ** 2).sum(axis=2)).min(axis=1)
        cells[row] = distance < 0.06 + rng.normal(0.0, 0.005)
    return cells, y


def hypercube(rng, n, d):
    """Clusters at the corners of a cube in five columns, fifteen sums of these, and columns of noise; two classes."""
    return make_classification(
        n_samples=n,
        n_features=d,
        n_informative=5,
        n_redundant=15,
        n_clusters_per_class=16,
        flip_y=0.01,
        class_sep=2.0,
        random_state=int(rng.integers(1 << 30)),
    )


def many_classes(rng, n, d, k=12):
    """Classes of several correlated clusters each that overlap."""
    y, of_class = rng.integers(0, k, n), 4
    centers = rng.normal(0.0, 1.5, (k, of_class, d))
    shapes = rng.normal(0.0, 0.6, (k, of_class, d, d)) / np.sqrt(d) + 0.5 * np.eye(d)
    cluster = rng.integers(0, of_class, n)
    noise = np.einsum("nij,nj->ni", shapes[y, cluster], rng.normal(size=(n, d)))
    return np.round(centers[y, cluster] + 1.5 * noise, 2), y


TABLES = {
    "sparse mixed": lambda rng, quick: sparse_mixed(rng, *((600, 80) if quick else (8190, 1502))),
    "images": lambda rng, quick: images(rng, *((600, 6) if quick else (1600, 16))),
    "hypercube": lambda rng, quick: hypercube(rng, *((600, 40) if quick else (2600, 500))),
    "many classes": lambda rng, quick: many_classes(rng, *((800, 6) if quick else (20_000, 10))),
}


# -- models ----------------------------------------------------------------------------------------------------


def lightgbm():
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbose=-1)


def models():
    """Name -> function that makes the model."""
    known = {"BayesClassifier": lambda: BayesClassifier(n_jobs=1)}
    return known if importlib.util.find_spec("lightgbm") is None else {**known, "LightGBM": lightgbm}


def as_categories(X):
    """Texts as categories, which LightGBM needs."""
    if not isinstance(X, pd.DataFrame):
        return X
    return X.astype({name: "category" for name in X if not pd.api.types.is_numeric_dtype(X[name])})


def split(X, y, rng):
    """Training columns and labels, test columns and labels."""
    order = rng.permutation(len(y))
    test, train = np.split(order, [int(TEST_SHARE * len(y))])
    rows = (lambda part: X.iloc[part]) if isinstance(X, pd.DataFrame) else (lambda part: X[part])
    return rows(train), y[train], rows(test), y[test]


def measured(make, train, y_train, test, y_test):
    """Processor seconds of fit and predict, log loss and error on test rows."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = make().fit(train, y_train)
        probability = model.predict_proba(test)
    seconds = time.process_time() - begin
    loss = log_loss(y_test, np.clip(probability, 1e-15, 1.0), labels=model.classes_)
    error = float(np.mean(model.classes_[probability.argmax(axis=1)] != y_test))
    return seconds, loss, error


def compare(name, quick, repeats):
    """Print one line of the table."""
    rng = np.random.default_rng(0)
    X, y = TABLES[name](rng, quick)
    train, y_train, test, y_test = split(as_categories(X), np.asarray(y), rng)
    runs = {
        model: [measured(make, train, y_train, test, y_test) for _ in range(repeats)]
        for model, make in models().items()
    }
    best = {model: min(results) for model, results in runs.items()}
    seconds = [result[0] for result in best.values()]
    ratio = f"{seconds[0] / seconds[1]:.1f}" if len(seconds) > 1 else ""
    scores = " | ".join(f"{value[0]:.2f} | {value[1]:.4f} | {100 * value[2]:.2f}" for value in best.values())
    print(f"| {name} | {len(y)} x {X.shape[1]} | {len(set(y))} | {ratio} | {scores} |", flush=True)


def profile(name, quick):
    """Print the functions that took most of the time of a fit."""
    rng = np.random.default_rng(0)
    X, y = TABLES[name](rng, quick)
    train, y_train, *_ = split(as_categories(X), np.asarray(y), rng)
    profiler = cProfile.Profile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        profiler.runcall(BayesClassifier(n_jobs=1).fit, train, y_train)
    pstats.Stats(profiler).sort_stats("cumulative").print_stats(90)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    if given.profile:
        for name in given.tables:
            profile(name, given.quick)
        return
    columns = " | ".join(f"{model}: seconds | log loss | error %" for model in models())
    print(f"| table | size | classes | ratio of seconds | {columns} |")
    for name in given.tables:
        compare(name, given.quick, given.repeats)


if __name__ == "__main__":
    main()

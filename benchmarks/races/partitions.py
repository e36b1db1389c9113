"""Races of trees that are grown by calibration, with as many trees and leaves for all contestants."""

from __future__ import annotations

import tracemalloc

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

import calibayes as cb
from races import peers
from races.race import race

TREES, LEAVES = 100, 31
GOAL = 0.5
"""Target: at most twice the time of LightGBM."""


def interactions(n, d, k, seed=0):
    """Normal columns, and classes that are decided by products of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = 2.0 * X[:, :k] + X[:, k : 2 * k] * X[:, 2 * k : 3 * k]
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def trees(sizes, rounds, jobs):
    """CalibratedTrees: fit and predict, with two and with ten classes."""
    n, d = sizes
    return [result for k in (2, 10) for result in _trees(*interactions(n, d, k), rounds, jobs)]


def _trees(X, y, rounds, jobs):
    shape = f"{X.shape[0]:,} x {X.shape[1]}, {y.max() + 1} classes, {TREES} rounds of {LEAVES} leaves"
    ours = cb.CalibratedTrees(max_trees=TREES, max_leaves=LEAVES, patience=TREES + 1, n_jobs=jobs)
    contestants = {name: (model, goal) for name, model, goal in _peers(jobs)}
    fits = {name: (lambda model=model: model.fit(X, y), goal) for name, (model, goal) in contestants.items()}
    results = race(f"trees, fit: {shape}", lambda: ours.fit(X, y), fits, rounds)
    predicts = {
        name: (lambda model=model: model.predict_proba(X), goal)
        for name, (model, goal) in contestants.items()
    }
    return results + race(f"trees, predict: {shape}", lambda: ours.predict_proba(X), predicts, rounds)


def _peers(jobs):
    """Name, model and goal of each peer that is installed."""
    lightgbm = peers.optional("lightgbm")
    if lightgbm is not None:
        options = {"n_estimators": TREES, "num_leaves": LEAVES, "n_jobs": jobs, "verbose": -1}
        yield "LightGBM", lightgbm.LGBMClassifier(**options), GOAL
    options = {"max_iter": TREES, "max_leaf_nodes": LEAVES, "early_stopping": False}
    yield "scikit-learn HistGradientBoosting", HistGradientBoostingClassifier(**options), None


def memory(sizes, k):
    """Largest memory that a fit of CalibratedTrees allocates in Python, relative to a byte per cell of the table."""
    X, y = interactions(*sizes, k)
    model = cb.CalibratedTrees(max_trees=TREES, patience=TREES + 1)
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / X.size

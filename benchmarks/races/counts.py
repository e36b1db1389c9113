"""Races of naive Bayes over levels, binary flags and word counts."""

from __future__ import annotations

import numpy as np
from sklearn import naive_bayes as theirs

import calibayes as cb
from calibayes.rules import RC
from races import data, peers
from races.race import race
from races.timing import one_pass

FIXED_STEP = {"rule": RC(step=0.1), "stop": None}
LEVELS = 5


def levels(sizes, rounds, jobs):
    """CategoricalNB: fit, predict, calibration passes."""
    X, y = data.codes(*sizes)
    shape = f"{sizes[0]:,} x {sizes[1]} codes, {LEVELS} levels, {sizes[2]} classes"
    results = []
    for dtype, goal in ((np.uint8, 80.0), (np.int64, 40.0)):
        codes = X.astype(dtype)
        results += _fit_and_predict(codes, y, f"{shape}, {np.dtype(dtype)}", goal, rounds, jobs)
    return results + _calibration(X, y, shape, rounds, jobs)


def _fit_and_predict(X, y, shape, goal, rounds, jobs):
    ours, peer = cb.CategoricalNB(rule="ml", n_jobs=jobs), theirs.CategoricalNB(min_categories=LEVELS)
    fits = {"scikit-learn CategoricalNB": (lambda: peer.fit(X, y), goal)}
    skbn = peers.optional("skbn")
    if skbn is not None and X.dtype == np.int64:
        mixed = skbn.MixedNB(categorical_features=list(range(X.shape[1])))
        fits["scikit-bayes MixedNB"] = (lambda: mixed.fit(X, y), None)
    fitted = race(f"naive Bayes over levels, fit: {shape}", lambda: ours.fit(X, y), fits, rounds)
    ours.fit(X, y), peer.fit(X, y)
    predicts = {"scikit-learn CategoricalNB": (lambda: peer.predict(X), goal)}
    if "scikit-bayes MixedNB" in fits:
        predicts["scikit-bayes MixedNB"] = (lambda: mixed.predict(X), None)
    return fitted + race(
        f"naive Bayes over levels, predict: {shape}", lambda: ours.predict(X), predicts, rounds
    )


def _calibration(X, y, shape, rounds, jobs):
    rc, peer = (
        cb.CategoricalNB(n_jobs=jobs, max_iter=64, **FIXED_STEP),
        theirs.CategoricalNB(min_categories=LEVELS),
    )
    one_fit = {"one fit and predict of scikit-learn CategoricalNB": (lambda: peer.fit(X, y).predict(X), 2.0)}
    results = race(
        f"naive Bayes over levels, 64 iterations of RC: {shape}", lambda: rc.fit(X, y), one_fit, rounds
    )
    short = cb.CategoricalNB(max_iter=6, n_jobs=jobs, **FIXED_STEP)
    encodings = {
        "SciPy CSR products": (peers.sparse_indicators, 5.0),
        "plain NumPy on indicators, made level by level": (peers.ByLevel, 25.0),
        "plain NumPy on indicators, 40 times the codes, held in memory": (peers.dense_indicators, 25.0),
    }
    for name, (encode, goal) in encodings.items():
        plain = peers.PlainCalibration(X, y, LEVELS, encode)
        results += race(
            f"naive Bayes over levels, one pass of RC: {shape}",
            lambda: one_pass(short, X, y),
            {name: (plain.one_pass, goal)},
            rounds,
        )
    return results


def flags(sizes, rounds, jobs):
    """BernoulliNB: fit and predict."""
    X, y = data.codes(*sizes)
    X = (X > 2).astype(np.float64)
    ours, peer = cb.BernoulliNB(rule="ml", n_jobs=jobs), theirs.BernoulliNB()
    shape = f"{sizes[0]:,} x {sizes[1]} flags, {sizes[2]} classes"
    peer_name = "scikit-learn BernoulliNB"
    fitted = race(
        f"naive Bayes over flags, fit: {shape}",
        lambda: ours.fit(X, y),
        {peer_name: (lambda: peer.fit(X, y), None)},
        rounds,
    )
    return fitted + race(
        f"naive Bayes over flags, predict: {shape}",
        lambda: ours.predict(X),
        {peer_name: (lambda: peer.predict(X), None)},
        rounds,
    )


def words(sizes, rounds, jobs):
    """MultinomialNB on a sparse table: fit and predict, one calibration pass."""
    X, y = data.words(*sizes)
    ours, peer = cb.MultinomialNB(rule="ml", n_jobs=jobs), theirs.MultinomialNB()
    shape = f"sparse {sizes[0]:,} x {sizes[1]:,}, {sizes[2]} classes"
    peer_name, rc = "scikit-learn MultinomialNB", cb.MultinomialNB(max_iter=6, n_jobs=jobs, **FIXED_STEP)
    peer.fit(X, y)
    closed_form = race(
        f"multinomial naive Bayes, fit and predict: {shape}",
        lambda: ours.fit(X, y).predict(X),
        {peer_name: (lambda: peer.fit(X, y).predict(X), 1.0)},
        rounds,
    )
    return closed_form + race(
        f"multinomial naive Bayes, one pass of RC: {shape}",
        lambda: one_pass(rc, X, y),
        {f"one predict of {peer_name}": (lambda: peer.predict(X), 1.0 / 3.0)},
        rounds,
    )

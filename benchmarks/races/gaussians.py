"""Races of Gaussian classifiers."""

from __future__ import annotations

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

import calibayes as cb
from calibayes.datasets import load
from calibayes.kernels.posterior import without_negligible
from calibayes.rules import RC, Backtracking
from races import data, peers
from races.race import race
from races.timing import one_pass


def diagonal(sizes, rounds, jobs):
    """GaussianNB: fit and predict."""
    X, y = data.numbers(*sizes)
    ours, rivals = cb.GaussianNB(rule="ml", n_jobs=jobs), {"scikit-learn GaussianNB": GaussianNB()}
    skbn = peers.optional("skbn")
    if skbn is not None:
        rivals["scikit-bayes MixedNB"] = skbn.MixedNB()
    if peers.optional("pomegranate") is not None:
        rivals["pomegranate, diagonal Gaussians"] = peers.Pomegranate(sizes[2])
    goals = {"scikit-learn GaussianNB": (4.0, 15.0)}
    shape = f"{sizes[0]:,} x {sizes[1]}, {sizes[2]} classes"
    fits = {name: (lambda m=m: m.fit(X, y), goals.get(name, (None,))[0]) for name, m in rivals.items()}
    fitted = race(f"Gaussian naive Bayes, fit: {shape}", lambda: ours.fit(X, y), fits, rounds)
    predicts = {name: (lambda m=m: m.predict(X), goals.get(name, (None,))[-1]) for name, m in rivals.items()}
    return fitted + race(f"Gaussian naive Bayes, predict: {shape}", lambda: ours.predict(X), predicts, rounds)


def quadratic(sizes, rounds, jobs):
    """QDA: predict in two precisions, and one calibration pass compared with the matrix products it needs."""
    X, y = data.ellipses(*sizes)
    shape = f"{sizes[0]:,} x {sizes[1]}, {sizes[2]} classes"
    peer, single_X = QuadraticDiscriminantAnalysis().fit(X, y), X.astype(np.float32)
    ours = cb.QuadraticDiscriminantAnalysis(rule="ml", n_jobs=jobs).fit(X, y)
    # Statistics of float32 rows are summed in float64, so the parameters equal those of the float64 rows.
    single = cb.QuadraticDiscriminantAnalysis(rule="ml", n_jobs=jobs).fit(single_X, y)
    peer_name = "scikit-learn QDA"
    peer_single = QuadraticDiscriminantAnalysis().fit(single_X, y)
    results = race(
        f"QDA, predict: {shape}", lambda: ours.predict(X), {peer_name: (lambda: peer.predict(X), 1.7)}, rounds
    )
    singles = {
        f"{peer_name} in float64": (lambda: peer.predict(X), 3.0),
        f"{peer_name} in float32": (lambda: peer_single.predict(single_X), None),
    }
    results += race(f"QDA, predict of float32: {shape}", lambda: single.predict(single_X), singles, rounds)
    return results + _quadratic_pass(X, y, shape, rounds, jobs)


def _quadratic_pass(X, y, shape, rounds, jobs):
    # Steps so short that the undecided rows stay the same in every pass.
    tiny_step = {"rule": RC(step=1e-12), "stop": None}
    calibrated = cb.QuadraticDiscriminantAnalysis(max_iter=4, n_jobs=jobs, **tiny_step)
    start = cb.QuadraticDiscriminantAnalysis(rule="ml", n_jobs=jobs).fit(X, y)
    undecided_rows = np.count_nonzero(
        without_negligible(np.eye(y.max() + 1)[y] - start.predict_proba(X)), axis=0
    )
    bare = peers.BareProducts(X, start.parameters_["columns"]["whitener"], undecided_rows, jobs)
    plain = peers.PlainQuadratic(X, y)
    share = 100.0 * undecided_rows.sum() / (len(X) * len(undecided_rows))
    return race(
        f"QDA, one pass of RC, {share:.1f} % of weights undecided: {shape}",
        lambda: one_pass(calibrated, X, y),
        {"the bare BLAS calls": (bare.run, 1.0 / 1.6), "plain NumPy": (plain.one_pass, None)},
        rounds,
    )


def linear(sizes, rounds, jobs):
    """LDA in closed form: fit and predict."""
    X, y = data.numbers(*sizes)
    ours, peer = cb.LinearDiscriminantAnalysis(rule="ml", n_jobs=jobs), LinearDiscriminantAnalysis("lsqr")
    shape, peer_name = f"{sizes[0]:,} x {sizes[1]}, {sizes[2]} classes", "scikit-learn LDA(lsqr)"
    fits, predicts = (lambda: peer.fit(X, y), 1.0), (lambda: peer.predict(X), None)
    return [
        *race(f"LDA, fit: {shape}", lambda: ours.fit(X, y), {peer_name: fits}, rounds),
        *race(f"LDA, predict: {shape}", lambda: ours.predict(X), {peer_name: predicts}, rounds),
    ]


def logistic(name, table, rounds, jobs):
    """LDA calibrated with backtracking until its log loss is within 1 % of that of logistic regression."""
    X, y = table
    peer = LogisticRegression(C=1e6, max_iter=10_000).fit(X, y)
    target_loss = 1.01 * log_loss(y, peer.predict_proba(X))
    passes = []

    def reached(progress):
        passes.append(progress.entry.passes)
        return progress.entry.log_loss <= target_loss

    rule = RC(step=Backtracking(growth=1.5, most=8.0))
    ours = cb.LinearDiscriminantAnalysis(
        rule=rule, stop=None, max_iter=2_000, n_jobs=jobs, training=cb.TrainingOptions(callbacks=[reached])
    )
    ours.fit(X, y)
    if ours.history_["log_loss"].min() > target_loss:
        raise RuntimeError(f"calibration did not reach the log loss of logistic regression on {name}")
    return race(
        f"LDA by RC to the training log loss of logistic regression + 1 %: {name}, {max(passes)} passes",
        lambda: ours.fit(X, y),
        {f"scikit-learn LogisticRegression, {peer.n_iter_[0]} iterations": (lambda: peer.fit(X, y), 1.0)},
        rounds,
    )


def satellite():
    """The satellite data set, or None if it is not available."""
    try:
        X, y = load("satellite", return_X_y=True)
    except (OSError, ValueError):
        return None
    return StandardScaler().fit_transform(X.to_numpy(dtype=np.float64)), y.to_numpy()

"""The library against a plain reading of the papers.

Everything above the tests is a slow reference, one row at a time, written from rc-generative-2025 and
rc-probabilistic-2024 (gdt-2004 for GDT), never from the library's source. It shares no code with the library: agreement
over several updates says that both read the papers in the same way. As there, s(x, y) puts psi(x) in the place of class
y, so that the statistics S of rows with class weights W are a (classes, psi) matrix.
"""

import numpy as np

from calibayes import CategoricalNB, GaussianNB, GenerativeLogisticRegression, QuadraticDiscriminantAnalysis
from calibayes.rules import DFE, GD, GDT, RC, TM

LEVELS = (2, 3, 4, 2)


class Plain:
    def stats(self, X, W):
        return sum(np.outer(w, self.psi(x)) for x, w in zip(X, W, strict=True))

    def posterior(self, parameters, X):
        P = []
        for x in X:
            log_joint = np.array(self.log_joint(parameters, x))
            joint = np.exp(log_joint - log_joint.max())
            P.append(joint / joint.sum())
        return np.array(P)


class PlainNB(Plain):
    """Counts. ``alpha`` more in each cell, ``class_alpha`` more in each class; parameters are log probabilities."""

    blocks = np.split(1 + np.arange(sum(LEVELS)), np.cumsum(LEVELS)[:-1])

    def __init__(self, alpha=0.0, class_alpha=0.0):
        self.alpha, self.class_alpha = alpha, class_alpha

    def psi(self, x):
        return np.concatenate([[1.0], *(np.eye(r)[level] for r, level in zip(LEVELS, x, strict=True))])

    def log_joint(self, eta, x):
        return eta @ self.psi(x)

    def normalised(self, S, to_shares):
        eta = np.zeros_like(S)
        eta[:, 0] = np.log(floored(to_shares(S[:, 0])))
        for y in range(len(S)):
            for block in self.blocks:
                eta[y, block] = np.log(floored(to_shares(S[y, block])))
        return eta

    def parameters(self, S):
        added = np.full(S.shape[1], self.alpha)
        added[0] = self.class_alpha
        return self.normalised(S + added, lambda counts: counts / counts.sum())

    def after_gradient(self, eta):
        return self.normalised(np.exp(eta), onto_simplex)

    def keep_valid(self, old, new):
        return np.where(new < 0, old, new)


def floored(shares):
    shares = np.maximum(shares, 1e-12)
    return shares / shares.sum()


def onto_simplex(v):
    """Nearest point of the simplex: max(v - c, 0), with c such that the sum is 1, by bisection."""
    low, high = v.min() - 1.0, v.max()
    for _ in range(200):
        c = (low + high) / 2
        low, high = (c, high) if np.maximum(v - c, 0).sum() > 1 else (low, c)
    return np.maximum(v - c, 0)


class PlainQDA(Plain):
    """Moments of each class. ``prior`` is (m1, m2, mu0, Sigma0) of the papers' MAP, which has p(y) with m0 = r."""

    def __init__(self, prior=None):
        self.prior = prior

    def psi(self, x):
        return np.concatenate([[1.0], x, np.outer(x, x).ravel()])

    def gaussian(self, s, d=3):
        m, mean = s[0], s[1 : 1 + d] / s[0]
        covariance = s[1 + d :].reshape(d, d) / m - np.outer(mean, mean)
        if self.prior is not None:
            m1, m2, mean0, covariance0 = self.prior
            mean = (m1 * mean0 + m * mean) / (m1 + m)
            covariance = (m2 * covariance0 + m * covariance) / (m2 + m)
        return mean, covariance

    def parameters(self, S):
        m = S[:, 0] + (0 if self.prior is None else 1)
        return [(p, *self.gaussian(s)) for p, s in zip(m / m.sum(), S, strict=True)]

    def log_joint(self, parameters, x):
        return [
            np.log(p)
            - np.log(np.linalg.det(covariance)) / 2
            - (x - mean) @ np.linalg.inv(covariance) @ (x - mean) / 2
            for p, mean, covariance in parameters
        ]

    def keep_valid(self, old, new):
        valid = [s[0] > 0 and np.linalg.eigvalsh(self.gaussian(s)[1]).min() > 0 for s in new]
        return np.array([n if ok else o for o, n, ok in zip(old, new, valid, strict=True)])


class PlainGaussianNB(PlainQDA):
    def gaussian(self, s, d=3):
        mean, covariance = super().gaussian(s, d)
        return mean, np.diag(np.diag(covariance))


class PlainLR(Plain):
    """Section VI-A of rc-probabilistic-2024: a mean for each class, one variance for each column."""

    def psi(self, x):
        return np.concatenate([[1.0], x, x**2])

    def moments(self, S, d=3):
        p, mean = S[:, 0] / S[:, 0].sum(), S[:, 1 : 1 + d] / S[:, :1]
        return p, mean, S[:, 1 + d :].sum(axis=0) / S[:, 0].sum() - p @ mean**2

    def parameters(self, S):
        p, mean, variance = self.moments(S)
        return np.c_[np.log(p) - (mean**2 / variance).sum(axis=1) / 2, mean / variance]

    def log_joint(self, theta, x):
        return theta @ [1.0, *x]

    def after_gradient(self, theta):
        return theta

    def keep_valid(self, old, new):
        return new if (new[:, 0] > 0).all() and (self.moments(new)[2] > 0).all() else old


def reference(model, rule, X, Y, T, step=1.0, lam=None, weight=None):
    """Parameters after 0 to T updates, and the number of updates that froze something."""
    weight = np.ones((len(X), 1)) if weight is None else weight[:, None]
    known = Y.sum(axis=1, keepdims=True) > 0
    S = model.stats(X, weight * Y)
    path, frozen = [model.parameters(S)], 0
    for _ in range(T):
        P = model.posterior(path[-1], X)
        if rule == "gd":
            gradient = model.stats(X, weight * (Y - P))[:, : path[-1].shape[1]]
            path.append(model.after_gradient(path[-1] + step / weight.sum() * gradient))
            continue
        if rule == "rc":
            new = S + step * model.stats(X, weight * (Y - P))
        elif rule == "dfe":
            new = S + step * model.stats(X, weight * Y * (1 - P))
        elif rule == "gdt":
            new = (1 - step * lam) * S + step * model.stats(X, weight * (Y - (1 - lam) * P))
        elif rule == "em":
            new = model.stats(X, weight * np.where(known, Y, P))
        S = model.keep_valid(S, new)
        frozen += (new != S).any()
        path.append(model.parameters(S))
    return path, frozen


def assert_same(fitted, model, path, X, Y, fresh, weight=None):
    """Metrics after every update; posteriors, of training rows and of others, at the one that the library kept."""
    known = Y.sum(axis=1) > 0
    weight = (np.ones(len(X)) if weight is None else weight)[known]
    soft, error, log_loss = [], [], []
    for parameters in path:
        P = model.posterior(parameters, X[known])
        of_true = (P * Y[known]).sum(axis=1)
        soft.append(np.average(1 - of_true, weights=weight))
        error.append(np.average(P.argmax(axis=1) != Y[known].argmax(axis=1), weights=weight))
        log_loss.append(np.average(-np.log(of_true), weights=weight))
    close = {"rtol": 1e-9, "atol": 1e-9}
    for name, expected in {"soft_error": soft, "error": error, "log_loss": log_loss}.items():
        np.testing.assert_allclose(fitted.history_[name], expected, **close, err_msg=name)
    np.testing.assert_allclose(soft[fitted.best_iter_], min(soft), **close)
    for Z in (X, fresh):
        expected = model.posterior(path[fitted.best_iter_], Z)
        np.testing.assert_allclose(fitted.predict_proba(Z), expected, **close)


def codes(k, n=150, seed=0, noise=1.0):
    """Independent columns of levels with a score for each class: given the class they depend on each other."""
    rng = np.random.default_rng(seed)
    X, fresh = (np.stack([rng.integers(0, r, size) for r in LEVELS], axis=1) for size in (n, 20))
    score = sum(rng.normal(size=(r, k))[X[:, j]] for j, r in enumerate(LEVELS))
    y = (score + noise * rng.gumbel(size=(n, k))).argmax(axis=1)
    return X, y, np.eye(k)[y], fresh


def numbers(k, n=120, seed=0, apart=0.8):
    """Skewed, correlated columns of overlapping classes."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) ** 2 // 7 % k)
    mixing = np.array([[1.0, 0.5, 0.0], [0.0, 0.8, 0.3], [0.0, 0.0, 1.2]])
    X = (rng.normal(size=(n, 3)) + 0.4 * rng.exponential(size=(n, 3))) @ mixing + apart * rng.normal(
        size=(k, 3)
    )[y]
    return X, y, np.eye(k)[y], rng.normal(size=(20, 3))


NB = (CategoricalNB, {"alpha": 0.0}, PlainNB, codes)
SMOOTH_NB = (CategoricalNB, {"alpha": 1.0}, lambda: PlainNB(alpha=1.0), codes)
QDA = (QuadraticDiscriminantAnalysis, {"prior": None}, PlainQDA, numbers)
LR = (GenerativeLogisticRegression, {"prior": None}, PlainLR, numbers)
GNB = (GaussianNB, {"prior": None, "var_smoothing": 0.0}, PlainGaussianNB, numbers)
MODELS = {"nb": NB, "smooth_nb": SMOOTH_NB, "qda": QDA, "lr": LR, "gnb": GNB}
RULES = {
    "rc": (RC(step=0.1), {"rule": "rc", "step": 0.1}),
    "tm": (TM(), {"rule": "rc", "step": 1.0}),
    "dfe": (DFE(), {"rule": "dfe"}),
    "gdt": (GDT(lam=0.3, step=0.5), {"rule": "gdt", "step": 0.5, "lam": 0.3}),
    "gd": (GD(step=0.1), {"rule": "gd", "step": 0.1}),
}
PAIRS = [
    (m, r) for m in MODELS for r in RULES if (r != "dfe" or "nb" in m) and (r != "gd" or m in ("nb", "lr"))
]

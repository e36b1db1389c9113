"""The library against a plain reading of the papers.

Everything above the tests is a slow reference, one row at a time, written from rc-generative-2025 and
rc-probabilistic-2024 (gdt-2004 for GDT), never from the library's source. It shares no code with the library: agreement
over several updates says that both read the papers in the same way. As there, s(x, y) puts psi(x) in the place of class
y, so that the statistics S of rows with class weights W are a (classes, psi) matrix.
"""

import numpy as np
import pytest
from sklearn.base import clone

from calibayes import CategoricalNB, GaussianNB, GenerativeLogisticRegression, QuadraticDiscriminantAnalysis
from calibayes.families import ClassPrior, Dirichlet, NormalInverseWishart
from calibayes.rules import DFE, EM, GD, GDT, RC, TM

LEVELS = (2, 3, 4, 2)


class Plain:
    def stats(self, X, W):
        return sum(np.outer(w, self.psi(x)) for x, w in zip(X, W, strict=True))

    def posterior(self, parameters, X):
        joint = [np.exp(row - np.max(row)) for row in (self.log_joint(parameters, x) for x in X)]
        return np.array([row / row.sum() for row in joint])


class PlainNB(Plain):
    """Counts. ``alpha`` more in each cell, ``class_alpha`` more in each class; parameters are log probabilities."""

    blocks = np.split(1 + np.arange(sum(LEVELS)), np.cumsum(LEVELS)[:-1])

    def __init__(self, alpha=0.0, class_alpha=0.0):
        self.alpha, self.class_alpha = alpha, class_alpha

    def psi(self, x):
        return np.concatenate([[1.0], *(np.eye(r)[level] for r, level in zip(LEVELS, x, strict=True))])

    def log_joint(self, eta, x):
        return eta @ self.psi(x)

    def normalized(self, S, to_shares):
        eta = np.zeros_like(S)
        for cells in [np.s_[:, 0], *((y, block) for y in range(len(S)) for block in self.blocks)]:
            shares = np.maximum(to_shares(S[cells]), 1e-12)
            eta[cells] = np.log(shares / shares.sum())
        return eta

    def parameters(self, S):
        added = np.r_[self.class_alpha, np.full(sum(LEVELS), self.alpha)]
        return self.normalized(S + added, lambda counts: counts / counts.sum())

    def after_gradient(self, eta):
        return self.normalized(np.exp(eta), onto_simplex)

    def keep_valid(self, old, new):
        return np.where(new < 0, old, new)


def onto_simplex(v):
    """Nearest point of the simplex: max(v - c, 0), with c such that the sum is 1, by bisection."""
    low, high = v.min() - 1.0, v.max()
    for _ in range(200):
        c = (low + high) / 2
        low, high = (c, high) if np.maximum(v - c, 0).sum() > 1 else (low, c)
    return np.maximum(v - c, 0)


class PlainQDA(Plain):
    """Moments of each class. ``prior`` is (m1, m2, mu0, Sigma0) of the papers' MAP."""

    def __init__(self, prior=None, class_alpha=0.0):
        self.prior, self.class_alpha = prior, class_alpha

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
        m = S[:, 0] + self.class_alpha
        return [(p, *self.gaussian(s)) for p, s in zip(m / m.sum(), S, strict=True)]

    def log_joint(self, parameters, x):
        row = []
        for p, mean, covariance in parameters:
            distance = (x - mean) @ np.linalg.inv(covariance) @ (x - mean)
            row.append(np.log(p) - np.log(np.linalg.det(covariance)) / 2 - distance / 2)
        return row

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


def reference(model, rule, step, lam=None, *, X, Y, T, weight=None):
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
    noise = rng.normal(size=(n, 3)) + 0.4 * rng.exponential(size=(n, 3))
    X = noise @ mixing + apart * rng.normal(size=(k, 3))[y]
    return X, y, np.eye(k)[y], rng.normal(size=(20, 3))


MODELS = {
    "nb": (CategoricalNB(alpha=0.0), PlainNB(), codes),
    "smooth_nb": (CategoricalNB(alpha=1.0), PlainNB(alpha=1.0), codes),
    "qda": (QuadraticDiscriminantAnalysis(prior=None), PlainQDA(), numbers),
    "lr": (GenerativeLogisticRegression(prior=None), PlainLR(), numbers),
    "gnb": (GaussianNB(prior=None, var_smoothing=0.0), PlainGaussianNB(), numbers),
}
RULES = {  # the library's; the reference's, its step and lambda
    "rc": (RC(step=0.1), "rc", 0.1),
    "tm": (TM(), "rc", 1.0),
    "dfe": (DFE(), "dfe", 1.0),
    "gdt": (GDT(lam=0.3, step=0.5), "gdt", 0.5, 0.3),
    "em": (EM(), "em", 1.0),
    "gd": (GD(step=0.1), "gd", 0.1),
    "long_gd": (GD(step=8.0), "gd", 8.0),  # for NB: shares that the projection makes zero
}
PAIRS = [(model, rule) for model in MODELS for rule in ("rc", "tm", "gdt")]
PAIRS += [(model, "dfe") for model in ("nb", "smooth_nb")]
PAIRS += [(model, rule) for model in ("nb", "smooth_nb", "lr") for rule in ("gd", "long_gd")]


def compare(estimator, plain, rule, data, T=12, weight=None):
    """Metrics after every update; posteriors, of training rows and others, at the one that the library kept."""
    X, y, Y, fresh = data
    path, frozen = reference(plain, *RULES[rule][1:], X=X, Y=Y, T=T, weight=weight)
    fitted = clone(estimator).set_params(rule=RULES[rule][0], stop=None, max_iter=T)
    fitted.fit(X, y, sample_weight=weight)
    known = Y.sum(axis=1) > 0
    weight = None if weight is None else weight[known]
    metrics = {"soft_error": [], "error": [], "log_loss": []}
    for parameters in path:
        P = plain.posterior(parameters, X[known])
        of_true = (P * Y[known]).sum(axis=1)
        metrics["soft_error"].append(np.average(1 - of_true, weights=weight))
        metrics["error"].append(np.average(P.argmax(axis=1) != Y[known].argmax(axis=1), weights=weight))
        metrics["log_loss"].append(np.average(-np.log(of_true), weights=weight))
    close = {"rtol": 1e-9, "atol": 1e-9}
    for name, expected in metrics.items():
        np.testing.assert_allclose(fitted.history_[name], expected, **close, err_msg=name)
    best = fitted.best_iter_
    # Rules that climb an objective with the generative likelihood in it end where that is highest.
    score = -fitted.history_["objective"] if rule in ("gdt", "em") else metrics["soft_error"]
    np.testing.assert_allclose(score[best], min(score), **close)
    for Z in (X, fresh):
        np.testing.assert_allclose(fitted.predict_proba(Z), plain.posterior(path[best], Z), **close)
    return fitted, frozen


def test_the_reference_gives_the_numbers_of_the_paper():
    """Table 1 of rc-generative-2025: only means move. Its first number, 0.958, is printed there as 0.95."""

    class Toy(Plain):
        psi = staticmethod(lambda x: np.array([1.0, x]))
        parameters = staticmethod(lambda S: S[:, 1] / S[:, 0])
        log_joint = staticmethod(lambda mean, x: -((x - mean) ** 2) / 2)
        keep_valid = staticmethod(lambda old, new: new)

    X, Y = np.array([0.0, 1.0, 4.0]), np.eye(2)[[0, 1, 1]]
    path, _ = reference(Toy(), "rc", 0.5, X=X, Y=Y, T=64)
    of_true = np.array([(Toy().posterior(path[t], X) * Y).sum(axis=1) for t in (0, 1, 2, 4, 8, 16, 32, 64)])
    np.testing.assert_allclose(of_true[:, 0], [0.96, 0.93, 0.87, 0.84, 0.86, 0.90, 0.93, 0.96], atol=0.005)
    np.testing.assert_allclose(of_true[:, 1], [0.35, 0.56, 0.80, 0.89, 0.90, 0.92, 0.94, 0.96], atol=0.005)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(("model", "rule"), PAIRS)
def test_updates(model, rule, k, weighted):
    estimator, plain, make = MODELS[model]
    data = make(k)
    weight = np.random.default_rng(5).uniform(0.2, 2.0, len(data[0])) if weighted else None
    compare(estimator, plain, rule, data, weight=weight)


@pytest.mark.parametrize(
    ("model", "rule", "data", "freezes"),
    [
        ("nb", "rc", codes(2, noise=0.05), True),
        ("nb", "gdt", codes(2, noise=0.05), True),
        ("nb", "dfe", codes(3, seed=2, noise=0.05), False),  # its counts only grow
        ("smooth_nb", "tm", codes(3, noise=0.05), True),
        ("qda", "tm", numbers(3, n=60, seed=2, apart=0.3), True),
        ("gnb", "tm", numbers(3, n=60, seed=10, apart=0.3), True),
        ("lr", "tm", numbers(2, seed=3), True),  # a column's variance would be negative: nothing moves
    ],
)
def test_freezing(model, rule, data, freezes):
    fitted, frozen = compare(*MODELS[model][:2], rule, data)
    assert (frozen > 0) == freezes
    assert fitted.best_iter_ > 0


@pytest.mark.parametrize(("k", "seed", "missing"), [(2, 0, None), (3, 2, np.nan)])
def test_em(k, seed, missing):
    X, y, Y, fresh = numbers(k, seed=seed)
    hidden = np.random.default_rng(9).random(len(y)) < 0.5
    y = np.array(list("abc"), dtype=object)[y] if missing is None else y.astype(float)
    y[hidden] = missing
    fitted, _ = compare(*MODELS["gnb"][:2], "em", (X, y, np.where(hidden[:, None], 0.0, Y), fresh))
    assert fitted.best_iter_ == 12


# Appendix C of rc-generative-2025: m1 = m2 = 10, m0 = r for the levels, and p(y) "using the same procedure".
CLASS_ROWS = pytest.mark.parametrize("class_rows", [0.0, 1.0], ids=["p(y)_counted", "p(y)_as_in_the_papers"])


@CLASS_ROWS
def test_map_nb(class_rows):
    compare(
        CategoricalNB(prior=Dirichlet(), class_prior=ClassPrior(alpha=class_rows)),
        PlainNB(1.0, class_rows),
        "rc",
        codes(3),
    )


@CLASS_ROWS
def test_map_qda(class_rows):
    prior = 10.0, 10.0, np.array([0.2, -0.1, 0.4]), np.diag([1.0, 2.0, 1.5]) + 0.2
    estimator = QuadraticDiscriminantAnalysis(
        prior=NormalInverseWishart(*prior), priors=ClassPrior(alpha=class_rows)
    )
    compare(estimator, PlainQDA(prior, class_rows), "rc", numbers(3))

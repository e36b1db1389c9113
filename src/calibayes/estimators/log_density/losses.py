"""Linear classifiers on features: scikit-learn's solvers, each as coefficients and intercepts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import sklearn
from scipy.special import log_expit
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from calibayes.core.protocols import Array
from calibayes.posterior import log_normalize

ITERATIONS = 5000
PAIR_STEPS = 1_000_000
"""Of the support vector machine, which takes forever on some features that are not standardized; it then warns."""
NEWTON_COEFFICIENTS = 2000
"""With no more coefficients than these a few Newton steps are quicker, and more exact, than many cheap ones."""
L1 = {"l1_ratio": 1.0} if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8) else {"penalty": "l1"}
"""scikit-learn 1.8 changed how logistic regression is told its penalty."""


class Plane(NamedTuple):
    """A linear decision: one score for two classes, else one for each class."""

    coefficients: Array
    """(1 or k, p)"""
    intercepts: Array

    def scores(self, features: Array) -> Array:
        return np.asarray(features @ self.coefficients.T + self.intercepts)


Problem = tuple[Array, Array, int, Array]
"""Features (n, p), codes (n,), number of classes, weights (n,)."""


@dataclass(frozen=True)
class Loss:
    """How a plane is fitted and judged.

    Parameters
    ----------
    solve : function of a problem and its cost
    turns : bool
        Whether a rotation of the features changes nothing, as for a squared norm.
    log_probability : function of scores, optional
        log p(class | x), (n, k), where the scores have a meaning as probabilities.
    """

    solve: Callable[[Problem, float], Plane]
    turns: bool
    log_probability: Callable[[Array], Array] | None = None

    def of_rows(self, scores: Array, codes: Array) -> Array:
        """Loss of each held-out row: -log p(class | x), or 1 for a wrong decision."""
        if self.log_probability is None:
            return (decided(scores) != codes).astype(np.float64)
        return -self.log_probability(scores)[np.arange(len(codes)), codes]


def decided(scores: Array) -> Array:
    """The code of each row's class."""
    return (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)


def multinomial(scores: Array) -> Array:
    """log p(class | x) of a logistic model of all classes."""
    both = np.concatenate([np.zeros_like(scores), scores], axis=1) if scores.shape[1] == 1 else scores
    return np.asarray(log_normalize(both)[0])


def one_against_others(scores: Array) -> Array:
    """log p(class | x) of a logistic model for each class, normalized."""
    return multinomial(scores) if scores.shape[1] == 1 else np.asarray(log_normalize(log_expit(scores))[0])


def _logistic(problem: Problem, cost: float) -> Plane:
    features, codes, k, weights = problem
    newton = features.shape[1] * (1 if k == 2 else k) <= NEWTON_COEFFICIENTS
    solver, tolerance = ("newton-cholesky", 1e-9) if newton else ("lbfgs", 1e-4)
    model = LogisticRegression(C=cost, solver=solver, tol=tolerance, max_iter=ITERATIONS)
    model.fit(features, codes, sample_weight=weights)
    return Plane(model.coef_, model.intercept_)


def _sparse_logistic(problem: Problem, cost: float) -> Plane:
    return _each_class(
        lambda: LogisticRegression(C=cost, solver="liblinear", max_iter=ITERATIONS, random_state=0, **L1),
        problem,
    )


def _hinge(problem: Problem, cost: float) -> Plane:
    return _each_class(lambda: SVC(C=cost, kernel="linear", max_iter=PAIR_STEPS), problem)


def _sparse_hinge(problem: Problem, cost: float) -> Plane:
    return _each_class(
        lambda: LinearSVC(C=cost, penalty="l1", dual=False, max_iter=ITERATIONS, random_state=0), problem
    )


def _each_class(make: Callable[[], Any], problem: Problem) -> Plane:
    """The second class against the first, or each class against the others."""
    features, codes, k, weights = problem
    sides = [codes == 1] if k == 2 else [codes == c for c in range(k)]
    fitted = [make().fit(features, side, sample_weight=weights) for side in sides]
    intercepts = [float(np.ravel(model.intercept_)[0]) for model in fitted]
    return Plane(np.concatenate([model.coef_ for model in fitted]), np.array(intercepts))


LOSSES: dict[tuple[str, str], Loss] = {
    ("log", "l2"): Loss(_logistic, turns=True, log_probability=multinomial),
    ("log", "l1"): Loss(_sparse_logistic, turns=False, log_probability=one_against_others),
    ("hinge", "l2"): Loss(_hinge, turns=True),
    ("hinge", "l1"): Loss(_sparse_hinge, turns=False),
}
"""Loss and penalty -> how to fit. With l1 the hinge is squared, which is what scikit-learn makes sparse."""

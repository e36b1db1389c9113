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
from calibayes.kernels.posterior.logspace import log_normalize

ITERATIONS = 5000
SVC_ITERATIONS = 1_000_000
"""Limit for the support vector machine, which may not converge on features that are not standardized; it then warns."""
NEWTON_COEFFICIENTS = 2000
"""Up to this number of coefficients Newton's method is faster, and more exact, than L-BFGS."""
NEWTON, L_BFGS = (("newton-cg", 1e-4), ("newton-cholesky", 1e-9)), (("lbfgs", 1e-4),)
"""Solvers and tolerances, each from the solution of the one before: Cholesky decompositions are exact and take long."""
L1 = {"l1_ratio": 1.0} if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8) else {"penalty": "l1"}
"""The L1 penalty of logistic regression, whose parameter scikit-learn 1.8 renamed."""


class LinearModel(NamedTuple):
    """Linear scores: one for two classes, otherwise one for each class."""

    coefficients: Array
    """(1 or k, p)"""
    intercepts: Array
    """(1 or k,)"""

    def scores(self, features: Array) -> Array:
        """Scores of rows, (n, 1 or k)."""
        return np.asarray(features @ self.coefficients.T + self.intercepts)


Problem = tuple[Array, Array, int, Array]
"""Features (n, p), codes (n,), number of classes, weights (n,)."""


@dataclass(frozen=True)
class Loss:
    """How a linear model is fitted and judged.

    Parameters
    ----------
    solve : function of a problem and its cost
    rotation_invariant : bool
        Whether a rotation of the features does not change the scores, as with an L2 penalty.
    log_probability : function of scores, optional
        log p(class | x), (n, k), if the model has probabilities.
    """

    solve: Callable[[Problem, float], LinearModel]
    rotation_invariant: bool
    log_probability: Callable[[Array], Array] | None = None

    def row_losses(self, scores: Array, codes: Array) -> Array:
        """Loss of each row, (n,): -log p(class | x), or 1 for a wrong class if there are no probabilities."""
        if self.log_probability is None:
            return wrong_classes(scores, codes)
        return -self.log_probability(scores)[np.arange(len(codes)), codes]


def predicted_codes(scores: Array) -> Array:
    """The code of the class of highest score, (n,)."""
    return (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)


def wrong_classes(scores: Array, codes: Array) -> Array:
    """1 for each row whose predicted class is wrong, else 0, (n,)."""
    return (predicted_codes(scores) != codes).astype(np.float64)


def multinomial(scores: Array) -> Array:
    """log p(class | x), (n, k), of multinomial logistic regression."""
    both = np.concatenate([np.zeros_like(scores), scores], axis=1) if scores.shape[1] == 1 else scores
    return np.asarray(log_normalize(both)[0])


def one_against_others(scores: Array) -> Array:
    """log p(class | x), (n, k), of one binary logistic regression for each class, normalized."""
    return multinomial(scores) if scores.shape[1] == 1 else np.asarray(log_normalize(log_expit(scores))[0])


def _logistic(problem: Problem, cost: float) -> LinearModel:
    features, codes, k, weights = problem
    newton = features.shape[1] * (1 if k == 2 else k) <= NEWTON_COEFFICIENTS
    model = LogisticRegression(C=cost, max_iter=ITERATIONS, warm_start=True)
    for solver, tolerance in NEWTON if newton else L_BFGS:
        model.set_params(solver=solver, tol=tolerance).fit(features, codes, sample_weight=weights)
    return LinearModel(model.coef_, model.intercept_)


def _sparse_logistic(problem: Problem, cost: float) -> LinearModel:
    return _each_class(
        lambda: LogisticRegression(C=cost, solver="liblinear", max_iter=ITERATIONS, random_state=0, **L1),
        problem,
    )


def _hinge(problem: Problem, cost: float) -> LinearModel:
    return _each_class(lambda: SVC(C=cost, kernel="linear", max_iter=SVC_ITERATIONS), problem)


def _sparse_hinge(problem: Problem, cost: float) -> LinearModel:
    return _each_class(
        lambda: LinearSVC(C=cost, penalty="l1", dual=False, max_iter=ITERATIONS, random_state=0), problem
    )


def _each_class(make: Callable[[], Any], problem: Problem) -> LinearModel:
    """The second class against the first, or each class against the others."""
    features, codes, k, weights = problem
    targets = [codes == 1] if k == 2 else [codes == c for c in range(k)]
    models = [make().fit(features, target, sample_weight=weights) for target in targets]
    intercepts = [float(np.ravel(model.intercept_)[0]) for model in models]
    return LinearModel(np.concatenate([model.coef_ for model in models]), np.array(intercepts))


LOSSES: dict[tuple[str, str], Loss] = {
    ("log", "l2"): Loss(_logistic, rotation_invariant=True, log_probability=multinomial),
    ("log", "l1"): Loss(_sparse_logistic, rotation_invariant=False, log_probability=one_against_others),
    ("hinge", "l2"): Loss(_hinge, rotation_invariant=True),
    ("hinge", "l1"): Loss(_sparse_hinge, rotation_invariant=False),
}
"""(loss, penalty) -> how to fit. With L1 the hinge loss is squared: scikit-learn has no other one with this penalty."""

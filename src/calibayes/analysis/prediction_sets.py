"""Prediction sets (conformal prediction): the classes that cannot be ruled out, with a stated coverage.

The score of a class is large if it does not suit the row. A set holds the classes whose score is at most a quantile of the
scores of the true classes of held-out rows. Vovk, Gammerman and Shafer, "Algorithmic learning in a random world", 2005;
Sadinle, Lei and Wasserman, "Least ambiguous set-valued classifiers with bounded error levels", 2019; Angelopoulos, Bates,
Malik and Jordan, "Uncertainty sets for image classifiers using conformal prediction", 2021.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from calibayes.analysis.held_out import held_out_of
from calibayes.core.protocols import Array
from calibayes.kernels.cut_points import MULTIPLIER, mixed
from calibayes.kernels.moments import weight_of_one
from calibayes.model.parameters import number, open_fraction, whole_number
from calibayes.model.table_inputs import on_numpy
from calibayes.model.training_rows import HeldOut

ROUNDING = 1e-12
"""Relative rounding error of a sum of weights."""
GRID = 2.0**20
"""Log posteriors are rounded to multiples of 1 / GRID before they are hashed, so that rounding errors hardly matter."""


SetScore: TypeAlias = Callable[[Array], Array]
"""How badly each class suits a row: scores (n, k) from log p(class | x), (n, k)."""


def probability_score(log_posterior: Array) -> Array:
    """1 - p(class | x), on the scale of log odds: sets of the smallest average size. They may be empty.

    The scores are log((1 - p) / p), which has the order of 1 - p and does not round to 0 where p is close to 1.
    """
    rows, best = np.arange(len(log_posterior)), np.argmax(log_posterior, axis=1)
    others = np.log1p(-np.minimum(np.exp(log_posterior), 0.5))  # p is above 1/2 for the best class only
    rest = log_posterior.copy()
    rest[rows, best] = -np.inf
    others[rows, best] = np.logaddexp.reduce(rest, axis=1)
    return np.asarray(others - log_posterior)


@dataclass(frozen=True)
class AdaptiveScore:
    """The probability of all classes up to this one, the most probable first: regularized adaptive sets (RAPS).

    Sets become larger for rows that are hard to classify, and coverage depends less on how hard a row is than with
    1 - p(class | x). Sets are larger on average.

    Parameters
    ----------
    lam : float, default=0.01
        Penalty of each class beyond the first ``k_reg``: large sets become smaller. 0 is without (APS).
    k_reg : int, default=5
        Number of classes without a penalty.
    randomized : bool, default=True
        Whether a random part of the class's own probability is left out, without which sets are too large. The random
        number is a hash of the row's posterior: equal rows have equal sets.
    seed : int, default=0
        Of the hash.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GaussianNB(rule="ml").fit(X, y).predict_set(X, 0.9, score=AdaptiveScore(seed=0)).shape
    (150, 3)
    """

    lam: float = 0.01
    k_reg: int = 5
    randomized: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        number("lam", self.lam, 0.0, 1e300)
        whole_number("k_reg", self.k_reg, 0)
        whole_number("seed", self.seed, 0, 2**63 - 1)

    def __call__(self, log_posterior: Array) -> Array:
        posterior = np.exp(log_posterior)
        order = np.argsort(-log_posterior, axis=1, kind="stable")
        sums = np.cumsum(np.take_along_axis(posterior, order, axis=1), axis=1)
        sums += self.lam * np.maximum(np.arange(1, posterior.shape[1] + 1) - self.k_reg, 0)
        scores = np.empty(posterior.shape)
        np.put_along_axis(scores, order, sums, axis=1)
        part = _uniform(log_posterior, self.seed)[:, None] if self.randomized else 0.0
        return np.asarray(scores - part * posterior)


SCORES: dict[str, SetScore] = {"probability": probability_score, "adaptive": AdaptiveScore()}


def predict_set(
    self: Any,
    X: Any,
    coverage: float = 0.9,
    *,
    by_class: bool = False,
    score: str | AdaptiveScore = "probability",
) -> Array:
    """The classes that cannot be ruled out: a set that contains the true class with a stated probability.

    The scores of the classes are compared with a quantile of those of held-out rows (split conformal prediction); see
    `with_held_out` for where these rows come from. For held-out rows that the model was not trained on, and new rows from
    the same distribution, the set contains the true class with probability ``coverage`` or more, whatever the model. For
    training rows that were left out in folds or one by one this holds approximately.

    Parameters
    ----------
    X : array or data frame of shape (n, d)
    coverage : float, default=0.9
        The probability that the true class is in the set, between 0 and 1.
    by_class : bool, default=False
        Whether this holds among the rows of each class, by a quantile for each, and not only on average. A class with
        too few held-out rows for a quantile, fewer than coverage / (1 - coverage), is in all sets.
    score : {"probability", "adaptive"} or AdaptiveScore, default="probability"
        "probability": 1 - p(class | x), which has the smallest sets on average. They may be empty, where each class is less
        probable than the true class of most held-out rows. "adaptive": regularized adaptive sets (RAPS), which are larger
        for rows that are hard to classify; `calibayes.trust.AdaptiveScore` has its parameters.

    Returns
    -------
    sets : (n, k) booleans
        Which classes of ``classes_`` are in the set of each row. A larger coverage gives supersets.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X[::3], y[::3]).with_held_out(X[1::3], y[1::3])
    >>> model.predict_set(X[2::3], coverage=0.95)[[0, 27]]
    array([[ True, False, False],
           [False,  True,  True]])
    """
    level, scores_of = open_fraction("coverage", coverage), _score(score)
    held_out = held_out_of(self, "predict_set")
    scores = scores_of(np.asarray(on_numpy(self.predict_log_proba(X))))
    return np.asarray(scores <= thresholds(held_out, scores_of, level, by_class=by_class))


def thresholds(held_out: HeldOut, score: SetScore, coverage: float, *, by_class: bool) -> Array:
    """The largest score of a class in a set, (k,): all the same unless ``by_class``."""
    m, k = held_out.log_posterior.shape
    scores = score(held_out.log_posterior)[np.arange(m), held_out.codes]
    if not by_class:
        return np.full(k, conformal_quantile(scores, held_out.weight, coverage))
    members = [held_out.codes == code for code in range(k)]
    return np.array([conformal_quantile(scores[rows], held_out.weight[rows], coverage) for rows in members])


def conformal_quantile(scores: Array, weight: Array, coverage: float) -> float:
    """The least score that a share ``coverage`` of the weight does not exceed, counting one further row of infinite score.

    That row, of the weight of one row, is the new one. The quantile is infinite if there are too few rows.

    >>> conformal_quantile(np.array([3.0, 1.0, 2.0]), np.ones(3), 0.5)
    2.0
    >>> conformal_quantile(np.array([3.0, 1.0, 2.0]), np.ones(3), 0.9)
    inf
    """
    if not len(scores):
        return np.inf
    order = np.argsort(scores, kind="stable")
    sums = np.cumsum(weight[order])
    needed = coverage * (sums[-1] + weight_of_one(weight)) * (1.0 - ROUNDING)
    place = int(np.searchsorted(sums, needed))
    return float(scores[order[place]]) if place < len(scores) else np.inf


def _score(given: Any) -> SetScore:
    """The score that was named or given. Raises ValueError if there is none of that name."""
    if isinstance(given, AdaptiveScore):
        return given
    if not isinstance(given, str) or given not in SCORES:
        raise ValueError(f"score must be {', '.join(map(repr, SCORES))} or an AdaptiveScore, got {given!r}")
    return SCORES[given]


def _uniform(log_posterior: Array, seed: int) -> Array:
    """Numbers between 0 and 1, (n,): a hash of each row's log posterior."""
    words = np.rint(np.maximum(log_posterior, -1e6) * GRID).astype(np.int64).view(np.uint64)
    hashes = np.full(len(words), np.uint64(seed) + MULTIPLIER)
    for column in words.T:
        hashes = mixed(hashes ^ column)
    return np.asarray((hashes >> np.uint64(11)) * 2.0**-53)

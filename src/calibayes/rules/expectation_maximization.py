"""Expectation maximization over rows without a label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibayes.core.protocols import Array, Family
from calibayes.kernels.posterior.logspace import log_normalize
from calibayes.rules.update import ML, exactly_penalized, joint_log_likelihood


@dataclass(frozen=True)
class EM(ML):
    """W = Y for labeled rows, P for unlabeled ones: maximum likelihood of both together.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> X, y = [[0.0], [1.0], [5.0], [6.0], [0.5], [5.5]], ["a", "a", "b", "b", None, None]
    >>> GaussianNB(rule=EM()).fit(X, y).predict(X)
    array(['a', 'a', 'b', 'b', 'a', 'b'], dtype=object)
    """

    name: ClassVar[str] = "em"
    is_closed_form: ClassVar[bool] = False
    uses_unlabeled: ClassVar[bool] = True

    def adapt(self, family: Family) -> Family:
        return exactly_penalized(family)

    def entry_weights(self, onehot: Array, posterior: Array) -> Array:
        return self.weights(onehot, posterior)

    def weights(self, onehot: Array, posterior: Array) -> Array:
        return onehot + _unknown(onehot)[:, None] * posterior

    def objective(self, log_joint: Array, onehot: Array) -> Array:
        return joint_log_likelihood(log_joint, onehot) + _unknown(onehot) * log_normalize(log_joint)[1]


def _unknown(onehot: Array) -> Array:
    """1 for a row without a label, else 0."""
    return 1.0 - np.sum(onehot, axis=1)

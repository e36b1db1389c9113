"""The one update that all rules but gradient descent share."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from calibayes.core.abilities import Penalised
from calibayes.core.protocols import Array, Family, Model, Trees
from calibayes.core.tree import add, combine
from calibayes.kernels.logspace import log_normalise


class Update:
    """``S <- (1 - step * shrink) * S + step * statistics(X, W)``, invalid statistics kept as they were.

    The state is the statistics; the parameters follow from them by the model's closed form.
    """

    needs: ClassVar[tuple[type, ...]] = ()
    closed_form: ClassVar[bool] = False
    climbs: ClassVar[bool] = False
    unlabelled: ClassVar[bool] = False

    @property
    def shrink(self) -> float:
        return 0.0

    def adapt(self, family: Family) -> Family:
        return family

    def brings(self, onehot: Array, posterior: Array) -> Array:
        return onehot

    def begin(self, model: Model, statistics: Trees) -> Trees:
        return statistics

    def absorb(self, state: Trees, new: Trees) -> Trees:
        total: Trees = add(state, new)
        return total

    def statistics(self, state: Trees) -> Trees | None:
        return state

    def parameters(self, model: Model, state: Trees) -> Trees:
        return model.parameters(state)

    def advance(
        self, model: Model, state: Trees, direction: Trees, step: float, size: float, share: float = 1.0
    ) -> tuple[Trees, int]:
        proposed = combine(1.0 - step * share * self.shrink, state, step, direction)
        return model.admit(state, proposed)


class Blend(Update):
    """W = Y - (1 - g) P: climbs g * log p(x, true class) + (1 - g) * log p(true class | x), summed over rows.

    From g = 1, maximum likelihood, to g = 0, calibration.
    """

    @property
    def generative(self) -> float:
        """g, between 0 and 1."""
        return 0.0

    @property
    def blend(self) -> float | None:
        own = type(self)
        whole = own.weights is Blend.weights and own.objective is Blend.objective
        return self.generative if whole else None

    def weights(self, onehot: Array, posterior: Array) -> Array:
        return onehot - (1.0 - self.generative) * posterior

    def objective(self, log_joint: Array, onehot: Array) -> Array | None:
        parts = ((self.generative, joint_log_likelihood), (1.0 - self.generative, conditional_log_likelihood))
        return np.sum([share * part(log_joint, onehot) for share, part in parts if share], axis=0)


def exactly_penalised(family: Family) -> Family:
    """The family with a prior that an objective can count with, for rules that climb one with a prior in it."""
    return family.exact() if isinstance(family, Penalised) else family


def joint_log_likelihood(log_joint: Array, onehot: Array) -> Array:
    """log p(x, true class) of each row, 0 for a row without a label."""
    return np.sum(log_joint * onehot, axis=1)


def conditional_log_likelihood(log_joint: Array, onehot: Array) -> Array:
    """log p(true class | x) of each row, 0 for a row without a label."""
    return np.sum(log_normalise(log_joint)[0] * onehot, axis=1)

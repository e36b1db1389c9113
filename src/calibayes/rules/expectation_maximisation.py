"""Expectation maximisation over rows without a label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.logspace import log_normalise
from calibayes.rules.steps import Fixed
from calibayes.rules.update import Update, joint_log_likelihood


@dataclass(frozen=True)
class EM(Update):
    """W = Y where the label is known, else P: maximum likelihood of labelled and unlabelled rows together."""

    name: ClassVar[str] = "em"
    unlabelled: ClassVar[bool] = True

    @property
    def control(self) -> Fixed:
        return Fixed(1.0)

    @property
    def shrink(self) -> float:
        return 1.0

    def weights(self, onehot: Array, posterior: Array) -> Array:
        return onehot + _unknown(onehot)[:, None] * posterior

    def objective(self, log_joint: Array, onehot: Array) -> Array:
        return joint_log_likelihood(log_joint, onehot) + _unknown(onehot) * log_normalise(log_joint)[1]


def _unknown(onehot: Array) -> Array:
    """1 for a row without a label, else 0."""
    return 1.0 - np.sum(onehot, axis=1)

"""Discriminative frequency estimate of Su et al. (2008), for families that count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from calibayes.core.abilities import CountStatistics
from calibayes.core.protocols import Array, StepControl
from calibayes.rules.update import Fixed, Update, step_control


@dataclass(frozen=True)
class DFE(Update):
    """W = Y (1 - P of the true class): each pass adds each row's soft error to the counts of its class.

    There is no objective that is known to rise, so the step cannot adapt.

    Parameters
    ----------
    step : float or step control, default=1

    Examples
    --------
    >>> from calibayes import CategoricalNB
    >>> X, y = [[0, 1], [0, 0], [1, 1], [1, 0]], [0, 0, 1, 1]
    >>> CategoricalNB(rule=DFE(), max_iter=3, stop=None).fit(X, y).predict(X)
    array([0, 0, 1, 1])
    """

    step: float | StepControl = 1.0
    control: StepControl = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "dfe"
    needs: ClassVar[tuple[type, ...]] = (CountStatistics,)

    def __post_init__(self) -> None:
        control = step_control(self.step, Fixed(1.0))
        if control.guarded:
            raise ValueError(
                f"DFE has no objective for an adaptive step: give a fixed step or a schedule, got {self.step!r}"
            )
        object.__setattr__(self, "control", control)

    def weights(self, onehot: Array, posterior: Array) -> Array:
        return onehot * (1.0 - np.sum(onehot * posterior, axis=1, keepdims=True))

    def objective(self, log_joint: Array, onehot: Array) -> None:
        return None

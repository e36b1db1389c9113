"""Step controls: a fixed step, a schedule, or back-tracking on the objective."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from calibayes.core.protocols import StepControl

LONGEST = 1e6
"""Longest step that is accepted; longer ones overflow."""


@dataclass(frozen=True)
class Fixed:
    """A constant step, as in the papers."""

    length: float = 0.1

    guarded = False

    def __post_init__(self) -> None:
        if not 0 < self.length <= LONGEST:
            raise ValueError(f"a step must be positive and at most {LONGEST:g}, got {self.length}")

    def step(self, update: int, previous: float | None) -> float:
        return self.length

    def retry(self, step: float, tries: int) -> float | None:
        return None


@dataclass(frozen=True)
class Schedule:
    """A step for each update: a function of its number, counted from 1, or a sequence whose last entry is repeated.

    >>> Schedule([1.0, 0.5]).step(7, None)
    0.5
    """

    lengths: Callable[[int], float] | Sequence[float]

    guarded = False

    def __post_init__(self) -> None:
        if not callable(self.lengths) and not (hasattr(self.lengths, "__getitem__") and len(self.lengths)):
            raise ValueError(
                f"a schedule is a function of the update or a list of steps, got {self.lengths!r}"
            )

    def step(self, update: int, previous: float | None) -> float:
        of_update = self.lengths
        length = of_update(update) if callable(of_update) else of_update[min(update, len(of_update)) - 1]
        return Fixed(length).length

    def retry(self, step: float, tries: int) -> float | None:
        return None


@dataclass(frozen=True)
class Backtracking:
    """A step that grows while the objective rises and is halved when the objective would fall.

    Parameters
    ----------
    start : float
        First step.
    growth : float
        Factor after an accepted step.
    most : float
        Longest step.
    tries : int
        How often one step is halved before training ends.
    """

    start: float = 0.5
    growth: float = 1.3
    most: float = 8.0
    tries: int = 12

    guarded = True

    def __post_init__(self) -> None:
        if not (0 < self.start <= self.most and self.growth >= 1 and self.tries >= 1):
            raise ValueError(f"need 0 < start <= most, growth >= 1, tries >= 1: {self}")

    def step(self, update: int, previous: float | None) -> float:
        return self.start if previous is None else min(self.growth * previous, self.most)

    def retry(self, step: float, tries: int) -> float | None:
        return step / 2 if tries < self.tries else None


def step_control(step: float | StepControl | None, default: StepControl) -> StepControl:
    """The step control that a ``step`` parameter means: None, a length, or a control."""
    if step is None:
        return default
    if isinstance(step, numbers.Real):
        return Fixed(float(step))
    if isinstance(step, type) or not hasattr(step, "retry"):
        raise ValueError(f"step must be a number or a step control such as Backtracking(), got {step!r}")
    return cast(StepControl, step)

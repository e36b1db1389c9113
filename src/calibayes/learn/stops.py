"""Stopping criteria, and which of the states is the best one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

from calibayes.core.resolve import resolve
from calibayes.learn.run import Entry


class Stop(Protocol):
    """When training ends, and which state it returns."""

    def score(self, entry: Entry) -> float | None:
        """The state with the lowest score is returned; None leaves the choice to the rule."""

    def met(self, history: Sequence[Entry]) -> bool:
        """Whether to stop at the last entry."""

    def unfinished(self, history: Sequence[Entry]) -> bool:
        """Whether training would have gone on if the number of updates had not ended it."""


@dataclass(frozen=True)
class Never:
    """No criterion: train for the full number of updates; the rule chooses the best state."""

    def score(self, entry: Entry) -> float | None:
        return None

    def met(self, history: Sequence[Entry]) -> bool:
        return False

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return False


@dataclass(frozen=True)
class LastState(Never):
    """Train for the full number of updates or sum of steps; the last state is the best."""

    def score(self, entry: Entry) -> float:
        return -entry.total_step


@dataclass(frozen=True)
class SoftErrorRises(Never):
    """Stop at the first update that raises the soft error, as in the papers; the lowest soft error is the best."""

    def score(self, entry: Entry) -> float:
        return entry.soft_error

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return NoGain().unfinished(history)

    def met(self, history: Sequence[Entry]) -> bool:
        return len(history) > 1 and history[-1].soft_error > history[-2].soft_error


@dataclass(frozen=True)
class NoGain(Never):
    """Stop when an update gains less than ``tolerance`` per row in the objective; the highest objective is the best."""

    tolerance: float = 1e-4

    def score(self, entry: Entry) -> float:
        return -entry.objective

    def met(self, history: Sequence[Entry]) -> bool:
        return len(history) > 1 and not self.unfinished(history)

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return len(history) > 1 and history[-1].objective - history[-2].objective >= self.tolerance


@dataclass(frozen=True)
class NoGainBeforeTraining(NoGain):
    """`NoGain` for a start that training continues from: ending it early is no problem."""

    def met(self, history: Sequence[Entry]) -> bool:
        return len(history) > 1 and not super().unfinished(history)

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return False


@dataclass(frozen=True)
class Patience(Never):
    """Stop when ``metric`` (lower is better) has not improved for ``rounds`` updates."""

    metric: str = "soft_error"
    rounds: int = 5

    def __post_init__(self) -> None:
        if self.metric not in {field.name for field in fields(Entry)}:
            raise ValueError(
                f"unknown metric {self.metric!r}; the metrics are {', '.join(f.name for f in fields(Entry))}"
            )

    def score(self, entry: Entry) -> float:
        value = float(getattr(entry, self.metric))
        if math.isnan(value):
            raise ValueError(f"there is no {self.metric}: it needs held-out rows, set validation_fraction")
        return value

    def met(self, history: Sequence[Entry]) -> bool:
        scores = [self.score(entry) for entry in history]
        return len(scores) - 1 - scores.index(min(scores)) >= self.rounds


@dataclass(frozen=True)
class MaxPasses(Never):
    """Stop after a number of passes over the data, those of rejected steps included."""

    passes: int = 100

    def met(self, history: Sequence[Entry]) -> bool:
        return history[-1].passes >= self.passes


@dataclass(frozen=True)
class TimeLimit(Never):
    """Stop after a number of seconds."""

    seconds: float = math.inf

    def met(self, history: Sequence[Entry]) -> bool:
        return history[-1].seconds >= self.seconds


@dataclass(frozen=True)
class AnyOf:
    """Stop when any of several is met; the first one with a score chooses the best state."""

    stops: tuple[Stop, ...]

    def __post_init__(self) -> None:
        if not self.stops:
            raise ValueError("give at least one stop, or None")

    def score(self, entry: Entry) -> float | None:
        scores = [stop.score(entry) for stop in self.stops]
        return next((score for score in scores if score is not None), None)

    def met(self, history: Sequence[Entry]) -> bool:
        return any(stop.met(history) for stop in self.stops)

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return any(stop.unfinished(history) for stop in self.stops)


@dataclass(frozen=True)
class ValidationLoss:
    """Held-out log loss: the lowest is the best; stop after ``rounds`` updates without a lower one, or with ``also``."""

    also: Stop
    rounds: int = 10

    def score(self, entry: Entry) -> float:
        return entry.validation_log_loss

    def met(self, history: Sequence[Entry]) -> bool:
        patience = Patience("validation_log_loss", self.rounds)
        return patience.met(history) or self.also.met(history)

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return False


NAMES: dict[str | None, Callable[[], Stop]] = {None: Never, "objective": NoGain, "soft_error": SoftErrorRises}


def stop_named(stop: str | Stop | list[Stop] | tuple[Stop, ...] | None) -> Stop:
    """The stop of that name, the stop itself, or any of several."""
    if isinstance(stop, list | tuple):
        return AnyOf(tuple(stop_named(part) for part in stop))
    named: Stop = resolve("stop", stop, NAMES, ability="unfinished", example="Patience()")
    return named

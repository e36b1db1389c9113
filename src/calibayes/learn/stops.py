"""When to stop, and which of the states passed through is the best one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol

from calibayes.learn.history import Entry


class Stop(Protocol):
    """When learning ends, and which state it ends with."""

    def score(self, entry: Entry) -> float | None:
        """The state with the least score is the one that is returned; None leaves that to the rule."""

    def met(self, history: Sequence[Entry]) -> bool:
        """Whether to stop at the last entry."""

    def unfinished(self, history: Sequence[Entry]) -> bool:
        """Whether an end at the last entry, forced by the number of updates, came too early."""


@dataclass(frozen=True)
class Never:
    """Until the number of updates is reached; which state is the best is left to the rule."""

    def score(self, entry: Entry) -> float | None:
        return None

    def met(self, history: Sequence[Entry]) -> bool:
        return False

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return False


@dataclass(frozen=True)
class ToTheEnd(Never):
    """Until the number of updates or the sum of steps is reached; the last state is the best."""

    def score(self, entry: Entry) -> float:
        return -entry.tau


@dataclass(frozen=True)
class SoftErrorRises(Never):
    """As in the papers: at the first update that makes the soft error worse; the least soft error is the best."""

    def score(self, entry: Entry) -> float:
        return entry.soft_error

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return NoGain().unfinished(history)

    def met(self, history: Sequence[Entry]) -> bool:
        return len(history) > 1 and history[-1].soft_error > history[-2].soft_error


@dataclass(frozen=True)
class NoGain(Never):
    """When an update gains less than ``tolerance`` per row in the objective; the highest objective is the best."""

    tolerance: float = 1e-4

    def score(self, entry: Entry) -> float:
        return -entry.objective

    def met(self, history: Sequence[Entry]) -> bool:
        return len(history) > 1 and not self.unfinished(history)

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return len(history) > 1 and history[-1].objective - history[-2].objective >= self.tolerance


@dataclass(frozen=True)
class Settled(NoGain):
    """The same for a start: learning goes on from it, so that an end that comes early loses nothing."""

    def met(self, history: Sequence[Entry]) -> bool:
        return len(history) > 1 and not super().unfinished(history)

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return False


@dataclass(frozen=True)
class Patience(Never):
    """When ``metric`` (lower is better) has not improved for ``rounds`` updates."""

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
            raise ValueError(f"there is no {self.metric} to be patient about: it needs validation_fraction")
        return value

    def met(self, history: Sequence[Entry]) -> bool:
        scores = [self.score(entry) for entry in history]
        return len(scores) - 1 - scores.index(min(scores)) >= self.rounds


@dataclass(frozen=True)
class MaxPasses(Never):
    """After so many passes over the data, those of refused steps included."""

    passes: int = 100

    def met(self, history: Sequence[Entry]) -> bool:
        return history[-1].passes >= self.passes


@dataclass(frozen=True)
class TimeLimit(Never):
    """After so many seconds."""

    seconds: float = math.inf

    def met(self, history: Sequence[Entry]) -> bool:
        return history[-1].seconds >= self.seconds


@dataclass(frozen=True)
class AnyOf:
    """When any of several is met; the first that has an opinion says what is best."""

    stops: tuple[Stop, ...]

    def __post_init__(self) -> None:
        if not self.stops:
            raise ValueError("give at least one stop, or None")

    def score(self, entry: Entry) -> float | None:
        opinions = [stop.score(entry) for stop in self.stops]
        return next((opinion for opinion in opinions if opinion is not None), None)

    def met(self, history: Sequence[Entry]) -> bool:
        return any(stop.met(history) for stop in self.stops)

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return any(stop.unfinished(history) for stop in self.stops)


@dataclass(frozen=True)
class ValidationLoss:
    """The least log loss on held-out rows is the best; stops after ``rounds`` updates without it, or with ``also``."""

    also: Stop
    rounds: int = 10

    def score(self, entry: Entry) -> float:
        return entry.validation_log_loss

    def met(self, history: Sequence[Entry]) -> bool:
        patience = Patience("validation_log_loss", self.rounds)
        return patience.met(history) or self.also.met(history)

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return False


NAMES: dict[str | None, Stop] = {None: Never(), "objective": NoGain(), "soft_error": SoftErrorRises()}


def stop_named(stop: str | Stop | list[Stop] | tuple[Stop, ...] | None) -> Stop:
    """The stop of that name, the stop itself, or any of several."""
    if isinstance(stop, str | None):
        if stop not in NAMES:
            names = ", ".join(repr(name) for name in NAMES)
            raise ValueError(
                f"unknown stop {stop!r}; the stops are {names} or an object of calibayes.learn such as Patience()"
            )
        return NAMES[stop]
    if isinstance(stop, list | tuple):
        return AnyOf(tuple(stop_named(part) for part in stop))
    if isinstance(stop, type) or not hasattr(stop, "unfinished"):
        raise ValueError(
            f"stop must be a name or an object of calibayes.learn such as Patience(), got {stop!r}"
        )
    return stop

"""One state on its way: proposed, measured, accepted or refused, until it may stop.

The loop shows a lane the sums of one pass at a time; the lane decides what to measure next. Several lanes can share
the reading of the data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from calibayes.core.block import Block
from calibayes.core.named_arrays import combine
from calibayes.core.protocols import Model, Rule, Trees
from calibayes.learn.history import Entry
from calibayes.learn.stops import Never, Stop

ROUNDING = 1e-12
"""A fall of the objective by less than this share of it is rounding, not a fall."""


@dataclass(frozen=True)
class Point:
    """A state, its parameters, and the step that led to it."""

    state: Trees
    parameters: Trees
    step: float = 0.0
    frozen: int = 0
    tau: float = 0.0
    """The sum of all steps that led to it."""


Sweep = Callable[["Lane", Trees, float], tuple[Trees, int]]
"""A pass of many small updates: from a state with a step to the next state and how much of it froze."""


@dataclass
class Lane:
    """
    Parameters
    ----------
    model, rule : Model, Rule
    state : where to start: the rule's state
    stop : Stop
    limit : int
        Most updates.
    horizon : float
        Most tau (sum of steps); the last step is cut to end there.
    view : callable
        The block as this lane sees it: its weights and held-out rows.
    sweep : callable, optional
        Makes an update out of many small ones (mini-batches) instead of one on the whole data.
    brought : statistics, optional
        What these rows brought to the state, where the state holds earlier rows too: that alone shrinks.
    """

    model: Model
    rule: Rule
    state: Trees
    stop: Stop = field(default_factory=Never)
    limit: int = 64
    horizon: float = math.inf
    view: Callable[[Block], Block] = lambda block: block
    sweep: Sweep | None = None
    brought: Trees | None = None

    history: list[Entry] = field(default_factory=list)
    done: bool = False
    converged: bool = False
    diverged: bool = False
    best_iter: int = 0

    def __post_init__(self) -> None:
        self.candidate = Point(self.state, self.rule.parameters(self.model, self.state))
        self.accepted = self.best = self.candidate
        self.size = math.nan
        self._direction: Trees = {}
        self._previous: float | None = None
        self._wanted = 0.0
        self._tries = self._passes = 0
        self._began = time.perf_counter()

    @property
    def updates(self) -> int:
        return max(len(self.history) - 1, 0)

    @property
    def last(self) -> bool:
        """Whether the candidate's measurements are needed but no direction from it."""
        return len(self.history) >= self.limit or self.sweep is not None

    @property
    def waiting(self) -> bool:
        """Whether it was the horizon alone that has stopped it."""
        short = not self.converged and not self.diverged and self.updates < self.limit
        return self.done and short and self.accepted.tau >= self.horizon

    def aim(self, horizon: float) -> None:
        """Move the horizon; a lane that waits there goes on, with steps as long as if it had not been stopped."""
        waits, self.horizon = self.waiting, horizon
        if waits and self.accepted.tau < horizon:
            self.done = False
            self._propose(self.rule.control.step(self.updates + 1, self._previous))

    def receive(self, totals: Mapping[str, Any]) -> Entry | None:
        """Take the sums of a pass at the candidate; the new entry, or None where the step was refused."""
        self._passes += 1
        self.size = totals["size"]
        entry = self._entry(totals)
        if not math.isfinite(entry.objective) and not (self.history and self.rule.control.guarded):
            self._diverge()
            return None
        if self.history and self.rule.control.guarded and not self._risen(entry):
            self._refuse()
            return None
        self._accept(entry, totals.get("statistics", {}))
        return entry

    def _entry(self, totals: Mapping[str, Any]) -> Entry:
        train, held_out = totals["train"], totals["held_out"]
        point = self.candidate
        averages = {
            name: _ratio(train[name], train["weight"]) for name in ("soft_error", "error", "log_loss")
        }
        objective = -averages["log_loss"]
        if "objective" in totals:
            prior = self.rule.shrink * self.model.log_prior(point.parameters) if self.rule.shrink else 0.0
            objective = (totals["objective"] + prior) / self.size
        return Entry(
            **averages,
            objective=objective,
            step=point.step,
            tau=point.tau,
            frozen=point.frozen,
            passes=self._passes,
            seconds=time.perf_counter() - self._began,
            validation_error=_ratio(held_out["error"], held_out["weight"]),
            validation_log_loss=_ratio(held_out["log_loss"], held_out["weight"]),
        )

    def _risen(self, entry: Entry) -> bool:
        before = self.history[-1].objective
        return entry.objective >= before - ROUNDING * abs(before)

    def _diverge(self) -> None:
        if not self.history:
            raise ValueError(
                "the likelihood of the training rows is not finite at the start: "
                "check the columns for values of extreme size"
            )
        self.done = self.diverged = True

    def _refuse(self) -> None:
        self._tries += 1
        step = self.rule.control.retry(self.candidate.step, self._tries)
        if step is None:
            self.done = self.converged = True
        else:
            self._propose(step)

    def _accept(self, entry: Entry, direction: Trees) -> None:
        self.history.append(entry)
        self.accepted, self._direction, self._tries = self.candidate, direction, 0
        self._previous = (
            self._wanted or None
        )  # a step that was cut at the horizon says nothing of the next one
        if self.updates == 0 or self._score(entry) < self._score(self.history[self.best_iter]):
            self.best, self.best_iter = self.accepted, self.updates
        self.converged = self.stop.met(self.history)
        self.done = self.converged or self.updates >= self.limit or entry.tau >= self.horizon
        if not self.done:
            self._propose(self.rule.control.step(self.updates + 1, self._previous))

    def _score(self, entry: Entry) -> float:
        opinion = self.stop.score(entry)
        if opinion is not None:
            return opinion
        return -entry.objective if self.rule.climbs else entry.soft_error

    def _propose(self, step: float) -> None:
        self._wanted, before = step, self.accepted.tau
        step = min(step, self.horizon - before)
        tau = self.horizon if step < self._wanted else before + step
        state = self.accepted.state
        if self.sweep is not None:
            state, frozen = self.sweep(self, state, step)
        elif self.brought is None:
            state, frozen = self.rule.advance(self.model, state, self._direction, step, self.size)
        else:
            direction = combine(1.0, self._direction, -self.rule.shrink, self.brought)
            state, frozen = self.rule.advance(self.model, state, direction, step, self.size, share=0.0)
        self.candidate = Point(state, self.rule.parameters(self.model, state), step, frozen, tau)


def _ratio(total: float, weight: float) -> float:
    return total / weight if weight > 0 else math.nan

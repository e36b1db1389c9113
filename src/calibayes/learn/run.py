"""One training run: states are proposed, measured, accepted or rejected until a stop is met.

The loop passes the sums of one pass at a time to a run, which decides what to measure next. Several runs can share the
reading of the data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import Any, Protocol

import numpy as np

from calibayes.core.named_arrays import combine
from calibayes.core.protocols import Array, Block, Model, ModelArrays, Rule, State
from calibayes.learn.checkpoint import PointSnapshot, RunSnapshot, verify_like

ROUNDING = 1e-12
"""A fall of the objective by less than this share of it counts as rounding."""


@dataclass(frozen=True)
class Entry:
    """Measurements of one state: weighted averages over rows; NaN where one does not apply.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> history = GaussianNB().fit([[0.0], [2.0], [1.0], [6.0]], [0, 0, 1, 1]).history_  # the entries, as arrays
    >>> round(float(history["error"][0]), 2)
    0.25
    """

    soft_error: float
    error: float
    log_loss: float
    objective: float
    """What the rule maximizes, per row; the conditional log likelihood for a rule without an objective."""
    step: float
    """The step that led to this state, 0 at the start."""
    total_step: float
    """The sum of all steps so far."""
    frozen: int
    """Number of statistics that kept their old value in that step."""
    passes: int
    """Passes over the data so far, those of rejected steps included."""
    seconds: float
    validation_error: float = math.nan
    validation_log_loss: float = math.nan


def as_arrays(history: Sequence[Entry]) -> dict[str, Array]:
    """Name -> array over the states, entry 0 the start; measurements that never applied are left out.

    Examples
    --------
    >>> entry = Entry(0.2, 0.1, 0.3, -0.3, 0.0, 0.0, 0, 1, 0.01)
    >>> as_arrays([entry, entry])["error"]
    array([0.1, 0.1])
    """
    named = _all_arrays(history)
    return {name: column for name, column in named.items() if not np.isnan(column).all()}


def _all_arrays(history: Sequence[Entry]) -> dict[str, Array]:
    """Name -> array over the states, for all measurements."""
    columns = np.array([astuple(entry) for entry in history], dtype=np.float64).T
    return {field.name: column for field, column in zip(fields(Entry), columns, strict=True)}


def _entries(arrays: Mapping[str, Array]) -> list[Entry]:
    """The entries of a history, from arrays over the states."""
    whole = ("frozen", "passes")
    columns = [
        arrays[field.name].astype(np.int64 if field.name in whole else np.float64).tolist()
        for field in fields(Entry)
    ]
    return [Entry(*values) for values in zip(*columns, strict=True)]


@dataclass(frozen=True)
class Point:
    """A state and the step that led to it."""

    state: State
    step: float = 0.0
    frozen: int = 0
    total_step: float = 0.0

    @property
    def parameters(self) -> ModelArrays:
        return self.state.parameters


class Sweep(Protocol):
    """A pass of many small updates, in random order."""

    @property
    def generator(self) -> np.random.Generator:
        """Draws the order."""

    def __call__(self, run: Run, state: State, step: float) -> tuple[State, int]:
        """From a state and a step to the next state and the number of frozen statistics."""


@dataclass
class Run:
    """
    Parameters
    ----------
    model, rule : Model, Rule
    state : the rule's state to start from
    stop : Stop
    limit : int
        Largest number of updates.
    horizon : float
        Largest sum of steps; the last step is shortened to end there.
    view : callable
        Maps a block to the one that this run uses: its columns, training weights and held-out rows.
    sweep : callable, optional
        Makes an update of many small ones (mini-batches) instead of one on all rows.
    added : statistics, optional
        Statistics of the current rows, if the state contains earlier rows too: only these shrink.
    """

    model: Model
    rule: Rule
    state: State
    stop: Any
    limit: int = 64
    horizon: float = math.inf
    view: Callable[[Block], Block] = lambda block: block
    sweep: Sweep | None = None
    added: ModelArrays | None = None

    history: list[Entry] = field(default_factory=list)
    done: bool = False
    converged: bool = False
    diverged: bool = False
    best_iter: int = 0

    def __post_init__(self) -> None:
        self.candidate = Point(self.state)
        self.accepted = self.best = self.candidate
        self.size = math.nan
        self._direction: ModelArrays = {}
        self._previous: float | None = None
        self._wanted = 0.0
        self._rejections = self._passes = 0
        self._began = time.perf_counter()

    @property
    def updates(self) -> int:
        return max(len(self.history) - 1, 0)

    @property
    def needs_no_direction(self) -> bool:
        """Whether the candidate is to be measured only: no further step will start from it."""
        return len(self.history) >= self.limit or self.sweep is not None

    def set_horizon(self, horizon: float) -> None:
        """Change the largest sum of steps; a run that ended at the old one continues as if it had not been stopped."""
        stopped_by_horizon = (
            self.done
            and not (self.converged or self.diverged)
            and self.updates < self.limit
            and self.accepted.total_step >= self.horizon
        )
        self.horizon = horizon
        if stopped_by_horizon and self.accepted.total_step < horizon:
            self.done = False
            self._propose_next()

    def receive(self, totals: Mapping[str, Any]) -> Entry | None:
        """Take the sums of a pass at the candidate; returns the new entry, or None if the step was rejected."""
        self._passes += 1
        self.size = totals["size"]
        entry = self._entry(totals)
        if not math.isfinite(entry.objective) and not (self.history and self.rule.control.guarded):
            self._diverge()
            return None
        if self.history and self.rule.control.guarded and not self._has_risen(entry):
            self._reject()
            return None
        self._accept(entry, totals.get("statistics", {}))
        return entry

    def snapshot(self) -> RunSnapshot:
        """This run after the last pass."""
        kept = {
            id(point): PointSnapshot(point.state.value, point.step, point.frozen, point.total_step)
            for point in (self.candidate, self.accepted, self.best)
        }
        return RunSnapshot(
            candidate=kept[id(self.candidate)],
            accepted=kept[id(self.accepted)],
            best=kept[id(self.best)],
            best_iter=self.best_iter,
            direction={} if self.done else self._direction,
            history=_all_arrays(self.history),
            size=self.size,
            previous=self._previous,
            wanted=self._wanted,
            rejections=self._rejections,
            passes=self._passes,
            seconds=time.perf_counter() - self._began,
            limit=self.limit,
            done=self.done,
            converged=self.converged,
            diverged=self.diverged,
            batches=None if self.sweep is None else self.sweep.generator.bit_generator.state,
        )

    def restore(self, snapshot: RunSnapshot, statistics: ModelArrays) -> None:
        """Continue from a snapshot of the same run; ``statistics`` are those that it started from.

        Raises ValueError if the snapshot does not fit this run.
        """
        snapshot.verify_limit(self.limit)
        if snapshot.direction:
            verify_like("direction", snapshot.direction, statistics)
        points = (snapshot.candidate, snapshot.accepted, snapshot.best)
        made = {id(point): self._point(point) for point in points}
        self.candidate, self.accepted, self.best = (made[id(point)] for point in points)
        self.history, self.best_iter = _entries(snapshot.history), snapshot.best_iter
        self.size, self._direction = snapshot.size, snapshot.direction
        self._previous, self._wanted = snapshot.previous, snapshot.wanted
        self._rejections, self._passes = snapshot.rejections, snapshot.passes
        self._began = time.perf_counter() - snapshot.seconds
        self.done, self.converged, self.diverged = snapshot.done, snapshot.converged, snapshot.diverged
        if self.sweep is not None and snapshot.batches is not None:
            self.sweep.generator.bit_generator.state = snapshot.batches

    def _point(self, kept: PointSnapshot) -> Point:
        verify_like("state", kept.value, self.state.value)
        return Point(self.rule.state(self.model, kept.value), kept.step, kept.frozen, kept.total_step)

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
            total_step=point.total_step,
            frozen=point.frozen,
            passes=self._passes,
            seconds=time.perf_counter() - self._began,
            validation_error=_ratio(held_out["error"], held_out["weight"]),
            validation_log_loss=_ratio(held_out["log_loss"], held_out["weight"]),
        )

    def _has_risen(self, entry: Entry) -> bool:
        before = self.history[-1].objective
        return entry.objective >= before - ROUNDING * abs(before)

    def _diverge(self) -> None:
        if not self.history:
            raise ValueError(
                "the likelihood of the training rows is not finite at the start: "
                "check the columns for values of extreme size"
            )
        self.done = self.diverged = True

    def _reject(self) -> None:
        self._rejections += 1
        self._previous = self.candidate.step
        self._propose_next()

    def _accept(self, entry: Entry, direction: ModelArrays) -> None:
        self.history.append(entry)
        self.accepted, self._direction, self._rejections = self.candidate, direction, 0
        # The wanted step, not one that was shortened to end at the horizon, decides the next one.
        self._previous = self._wanted or None
        if self.updates == 0 or self._score(entry) < self._score(self.history[self.best_iter]):
            self.best, self.best_iter = self.accepted, self.updates
        self.converged = self.stop.met(self.history)
        self.done = self.converged or self.updates >= self.limit or entry.total_step >= self.horizon
        if not self.done:
            self._propose_next()

    def _score(self, entry: Entry) -> float:
        """The state with the lowest score is the best: by the stop, or by the rule if the stop has no criterion."""
        score: float | None = self.stop.score(entry)
        if score is not None:
            return score
        return -entry.objective if self.rule.maximizes_objective else entry.soft_error

    def _propose_next(self) -> None:
        """Propose the step that the rule's control chooses; end if it gives up, or if an unguarded step overflows."""
        step = self.rule.control.step(self.updates + 1, self._previous, self._rejections)
        while step is not None and not self._is_proposed(step):
            if not self.rule.control.guarded:
                self._diverge()
                return
            self._rejections += 1
            step = self.rule.control.step(self.updates + 1, step, self._rejections)
        if step is None:
            self.done = self.converged = True

    def _is_proposed(self, step: float) -> bool:
        """Propose a step; returns False if it overflows."""
        try:
            self._propose(step)
        except FloatingPointError:
            return False
        return True

    def _propose(self, step: float) -> None:
        self._wanted, before = step, self.accepted.total_step
        step = min(step, self.horizon - before)
        total_step = self.horizon if step < self._wanted else before + step
        state = self.accepted.state
        if self.sweep is not None:
            state, frozen = self.sweep(self, state, step)
        elif self.added is None:
            state, frozen = self.rule.advance(self.model, state, self._direction, step, self.size)
        else:
            direction = combine(1.0, self._direction, -self.rule.shrink, self.added)
            state, frozen = self.rule.advance(self.model, state, direction, step, self.size, share=0.0)
        self.candidate = Point(state, step, frozen, total_step)


def _ratio(total: float, weight: float) -> float:
    return total / weight if weight > 0 else math.nan

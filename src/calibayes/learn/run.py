"""One training run: states are proposed, measured, accepted or rejected until a stop is met.

The loop passes the sums of one pass at a time to a run, which decides what to measure next. Several runs can share the
reading of the data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from calibayes.core.named_arrays import combine
from calibayes.core.protocols import (
    Array,
    Block,
    Engine,
    InvalidUpdateError,
    Model,
    ModelArrays,
    Rule,
    Source,
    State,
)
from calibayes.kernels.dispatch import map_items
from calibayes.kernels.posterior import (
    NEGLIGIBLE,
    Assessment,
    assess,
    indicators,
    log_normalize,
    scores,
    without_negligible,
)
from calibayes.learn.checkpoint import PointSnapshot, RunSnapshot, verify_like

if TYPE_CHECKING:
    from calibayes.learn.starts_and_stops import Plan

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


KEPT = ("best_iter", "size", "previous", "wanted", "rejections", "passes", "done", "converged", "diverged")
"""Attributes of a run that its snapshot holds as they are."""


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
    sweep : MiniBatches, optional
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
    sweep: MiniBatches | None = None
    added: ModelArrays | None = None

    history: list[Entry] = field(default_factory=list)
    done: bool = False
    converged: bool = False
    diverged: bool = False
    best_iter: int = 0

    def __post_init__(self) -> None:
        self.candidate = Point(self.state)
        self.accepted = self.best = self.earlier = self.candidate
        self.changed = math.nan
        """Share of the rows whose most probable class the last updates have changed; NaN unless they were the last possible."""
        self.size = math.nan
        self.direction: ModelArrays = {}
        self.previous: float | None = None
        self.wanted = 0.0
        self.rejections = self.passes = 0
        self._began = time.perf_counter()

    @property
    def updates(self) -> int:
        return max(len(self.history) - 1, 0)

    @property
    def best_score(self) -> tuple[float, float]:
        """Score of the best state, and its soft error: the lower the better."""
        best = self.history[self.best_iter]
        return self._score(best), best.soft_error

    def measure_of_candidate(self) -> Callable[[Block], Mapping[str, Any]]:
        """The sums of a block, with nothing else of this run: it is sent to every worker of a distributed engine.

        They are without statistics if no further step will start from the candidate.
        """
        is_at_limit = len(self.history) >= self.limit
        last, warns = (
            is_at_limit or self.sweep is not None,
            is_at_limit and self.stop.unfinished(self.history),
        )
        view, model, rule, parameters = self.view, self.model, self.rule, self.candidate.parameters
        if not warns:
            return lambda block: measure(view(block), model, rule, parameters, last=last)
        earlier = self.earlier.parameters
        return lambda block: {
            **measure(view(block), model, rule, parameters, last=last),
            "changed": changed_weight(view(block), model, earlier, parameters),
        }

    def set_horizon(self, horizon: float) -> None:
        """Change the largest sum of steps; a run that ended at the old one continues as if it had not been stopped."""
        was_reached, total_step = self.accepted.total_step >= self.horizon, self.accepted.total_step
        self.horizon = horizon
        ended_otherwise = self.converged or self.diverged or self.updates >= self.limit
        if self.done and was_reached and not ended_otherwise and total_step < horizon:
            self.done = False
            self._propose_next()

    def receive(self, totals: Mapping[str, Any]) -> Entry | None:
        """Take the sums of a pass at the candidate; returns the new entry, or None if the step was rejected."""
        self.passes += 1
        self.size = totals["size"]
        self.changed = _ratio(totals.get("changed", math.nan), self.size)
        entry = self._entry(totals)
        may_be_rejected = bool(self.history) and self.rule.control.guarded
        if not (math.isfinite(entry.objective) or may_be_rejected):
            self._diverge()
            return None
        if may_be_rejected and not self._has_risen(entry):
            self.rejections += 1
            self.previous = self.candidate.step
            self._propose_next()
            return None
        self._accept(entry, totals.get("statistics", {}))
        return entry

    def snapshot(self) -> RunSnapshot:
        """This run after the last pass."""
        points = (self.candidate, self.accepted, self.best)
        kept = {id(p): PointSnapshot(p.state.value, p.step, p.frozen, p.total_step) for p in points}
        return RunSnapshot(
            candidate=kept[id(self.candidate)],
            accepted=kept[id(self.accepted)],
            best=kept[id(self.best)],
            direction={} if self.done else self.direction,
            history=_all_arrays(self.history),
            seconds=time.perf_counter() - self._began,
            limit=self.limit,
            batches=None if self.sweep is None else self.sweep.generator.bit_generator.state,
            **{name: getattr(self, name) for name in KEPT},
        )

    def restore(self, snapshot: RunSnapshot, statistics: ModelArrays) -> None:
        """Continue from a snapshot of the same run; ``statistics`` are those that it started from.

        Raises ValueError if the snapshot does not fit this run.
        """
        snapshot.verify_limit(self.limit)
        needs_direction = self.sweep is None and not snapshot.done
        if snapshot.direction or needs_direction:
            verify_like("direction", snapshot.direction, statistics)
        points = (snapshot.candidate, snapshot.accepted, snapshot.best)
        made = {id(point): self._point(point) for point in points}
        self.candidate, self.accepted, self.best = (made[id(point)] for point in points)
        self.earlier = self.accepted
        self.history, self.direction = _entries(snapshot.history), snapshot.direction
        self.stop.met(self.history)  # raises ValueError if a measurement that it needs is missing
        self._began = time.perf_counter() - snapshot.seconds
        for name in KEPT:
            setattr(self, name, getattr(snapshot, name))
        if self.sweep is not None and snapshot.batches is not None:
            self.sweep.generator.bit_generator.state = snapshot.batches

    def _point(self, kept: PointSnapshot) -> Point:
        verify_like("state", kept.value, self.state.value)
        return Point(self.rule.state(self.model, kept.value), kept.step, kept.frozen, kept.total_step)

    def _entry(self, totals: Mapping[str, Any]) -> Entry:
        train, held_out = totals["train"], totals["held_out"]
        point = self.candidate
        weight, metrics = train["weight"], ("soft_error", "error", "log_loss")
        averages = {name: _ratio(train[name], weight) for name in metrics}
        objective = -averages["log_loss"]
        if "objective" in totals:
            share = self.rule.shrink if self.rule.prior_weight is None else self.rule.prior_weight
            prior = share * self.model.log_prior(point.parameters) if share else 0.0
            objective = (totals["objective"] + prior) / self.size
        return Entry(
            **averages,
            objective=objective,
            step=point.step,
            total_step=point.total_step,
            frozen=point.frozen,
            passes=self.passes,
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

    def _accept(self, entry: Entry, direction: ModelArrays) -> None:
        self.history.append(entry)
        self.accepted, self.direction, self.rejections = self.candidate, direction, 0
        if self.updates == self.limit - max(self.limit // 4, FEW_UPDATES):
            self.earlier = self.accepted
        # The wanted step, not one that was shortened to end at the horizon, decides the next one.
        self.previous = self.wanted or None
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
        """Propose the step that the rule's control chooses; end if it gives up, or if an unguarded step cannot be taken."""
        control = self.rule.control
        step = control.step(self.updates + 1, self.previous, self.rejections)
        while step is not None:
            try:
                self._propose(step)
                return
            except FloatingPointError:
                if not control.guarded:
                    self._diverge()
                    return
            except InvalidUpdateError:
                if not control.guarded:
                    break
            self.rejections += 1
            step = control.step(self.updates + 1, step, self.rejections)
        self.done = self.converged = True

    def _propose(self, step: float) -> None:
        """Take a step from the accepted state. Raises FloatingPointError if it overflows."""
        self.wanted, before = step, self.accepted.total_step
        step = min(step, self.horizon - before)
        total_step = self.horizon if step < self.wanted else before + step
        state = self.accepted.state
        if self.sweep is not None:
            state, frozen = self.sweep(self, state, step)
        elif self.added is None:
            state, frozen = self.rule.advance(self.model, state, self.direction, step, self.size)
        else:
            direction = combine(1.0, self.direction, -self.rule.shrink, self.added)
            state, frozen = self.rule.advance(self.model, state, direction, step, self.size, share=0.0)
        self.candidate = Point(state, step, frozen, total_step)


def _ratio(total: float, weight: float) -> float:
    return total / weight if weight > 0 else math.nan


# -- The training loop: pass after pass over the source until every run is done --------------------------------


class Progress(NamedTuple):
    """Passed to a callback after each accepted state.

    Examples
    --------
    >>> from calibayes import GaussianNB, TrainingOptions
    >>> errors = []
    >>> training = TrainingOptions(callbacks=[lambda progress: errors.append(progress.entry.error)])
    >>> model = GaussianNB(training=training).fit([[0.0], [2.0], [1.0], [6.0]], [0, 0, 1, 1])
    >>> len(errors) > 0
    True
    """

    update: int
    limit: int
    entry: Entry


Callback: TypeAlias = Callable[[Progress], bool | None]
"""Called with the progress; a true result stops training."""

FEW_UPDATES, FEW_CHANGED = 4, 0.01
"""Training that ends by the number of updates is to be continued if the last quarter of them, at least four, has changed the
decisions for one in a hundred rows: where they changed fewer, many more updates hardly change any."""
MANY_CELLS = 2**17
"""Number of cells of a block from which on runs are measured in threads."""
DIVERGING_FALL = 1.0
"""A fall of the objective per row that is no fluctuation: the rule diverges."""
TOTAL_STEPS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Sums of steps at which a calibration path is evaluated. Statistics are sums over rows, so that the sum of steps means
the same for any number of rows; the number of updates does not."""


def learn(
    runs: Sequence[Run],
    source: Source,
    engine: Engine,
    callbacks: Sequence[Callback] = (),
    record: Callable[[Run], None] = lambda run: None,
) -> None:
    """Run to the end. A block is loaded once a pass and measured for every run that is not done.

    ``record`` is called with a run after each pass, before the callbacks, and again if a callback ends it.
    """
    while active := {str(i): run for i, run in enumerate(runs) if not run.done}:
        measures = {name: run.measure_of_candidate() for name, run in active.items()}
        totals = engine.total(partial(_measure_all, measures), source)
        for name, run in active.items():
            entry = run.receive(totals[name])
            record(run)
            answers = [call(Progress(run.updates, run.limit, entry)) for call in callbacks if entry]
            if any(answers):
                run.done = run.converged = True
                record(run)


def learn_recorded(
    run: Run, name: str, statistics: ModelArrays, source: Source, engine: Engine, plan: Plan
) -> None:
    """`learn` for one run, which with a recorder continues from its last finished pass, kept by name.

    ``statistics`` are those that the run starts from.
    """
    recorder = plan.recorder
    if recorder is None:
        learn([run], source, engine, plan.callbacks)
        return
    kept = recorder.load(name)
    if kept is not None:
        try:
            run.restore(kept, statistics)
        except (ValueError, TypeError, LookupError, ArithmeticError) as error:
            raise recorder.refusal(str(error)) from error
    learn([run], source, engine, plan.callbacks, lambda run: recorder.save(name, run.snapshot()))


def follow_path(
    runs: Sequence[Run],
    source: Source,
    engine: Engine,
    total_steps: Sequence[float] = TOTAL_STEPS,
    callbacks: Sequence[Callback] = (),
) -> Iterator[float]:
    """Train all runs to one sum of steps after another; yields each once they have reached it.

    A run that has converged stays where it is. The path ends where no run moves.
    """
    for total_step in total_steps:
        for run in runs:
            run.set_horizon(total_step)
        if all(run.done for run in runs):
            return
        learn(runs, source, engine, callbacks)
        yield total_step


@dataclass(frozen=True)
class MiniBatches:
    """A sweep of updates on ``size`` rows at a time, in an order that changes from pass to pass.

    A step on a batch is weighted by its share of the rows, so that a sweep moves about as far as one full update.
    """

    source: Source
    size: int
    generator: np.random.Generator
    """Draws the order."""

    def __call__(self, run: Run, state: State, step: float) -> tuple[State, int]:
        """From a state and a step to the next state and the number of frozen statistics."""
        frozen = 0
        for batch in self.source.batches(self.size, self.generator):
            sums = measure(run.view(batch), run.model, run.rule, state.parameters)
            share = sums["size"] / run.size
            state, frozen_now = run.rule.advance(run.model, state, sums["statistics"], step, run.size, share)
            frozen += frozen_now
        return state, frozen


def mini_batches(source: Source, size: int, seed: int) -> MiniBatches:
    """A sweep of mini-batches in a random order that follows from a seed."""
    return MiniBatches(source, size, np.random.default_rng(seed))


def _measure_all(measures: Mapping[str, Callable[[Block], Any]], block: Block) -> Mapping[str, Any]:
    """The sums of a block for each run; a large block in threads, if some are free."""
    is_large = sum(columns.size for columns in block.columns.values()) >= MANY_CELLS
    over_runs: Callable[..., Any] = map_items if is_large else map
    sums = over_runs(lambda sums_of: sums_of(block), list(measures.values()))
    return dict(zip(measures, sums, strict=True))


def measure(
    block: Block, model: Model, rule: Rule, parameters: ModelArrays, *, last: bool = False
) -> Mapping[str, Any]:
    """The sums of one block: scores of the parameters and, unless it is the last pass, statistics(X, W)."""
    g = rule.generative_weight
    is_mixed = rule.uses_unlabeled and int((block.labels < 0).sum()) > 0
    if g is not None and not (last or is_mixed) and model.has_fused_pass:
        fused = model.fused_pass(block, parameters, g, NEGLIGIBLE)
        return {**_sums(fused.assessment), "statistics": fused.statistics}
    # A rule without a generative part needs the posterior only.
    log_joint = (model.contrast if g == 0.0 else model.log_joint)(block, parameters)
    if g is None or is_mixed:
        sums, weights = _by_rule(log_joint, block, rule, last)
    else:
        found = assess(log_joint, block.labels, block.weight, block.held_out, g, NEGLIGIBLE, weights=not last)
        sums, weights = _sums(found), found.weights
    if weights is not None:
        sums["statistics"] = model.statistics(block, weights, parameters)
    return sums


def changed_weight(block: Block, model: Model, before: ModelArrays, after: ModelArrays) -> float:
    """Weight of the rows that have another most probable class under other parameters."""
    joint = (model.contrast(block, parameters) for parameters in (before, after))
    first, second = (log_joint.argmax(axis=1) for log_joint in joint)
    return float(block.weight[first != second].sum())


def _sums(assessment: Assessment) -> dict[str, Any]:
    return {
        "size": assessment.train.weight,
        "train": assessment.train._asdict(),
        "held_out": assessment.held_out._asdict(),
        "objective": assessment.objective,
    }


def _by_rule(log_joint: Array, block: Block, rule: Rule, last: bool) -> tuple[dict[str, Any], Array | None]:
    """Scores and weights by the methods of a rule, for rules that have no kernel and for rows without a label."""
    onehot = indicators(block.labels, log_joint.shape[1])
    log_posterior, _ = log_normalize(log_joint)
    labeled = onehot.sum(axis=1)
    weight = block.weight * (labeled + rule.weight_of_unlabeled * (1.0 - labeled))
    sums: dict[str, Any] = {
        "size": float(weight.sum()),
        "train": scores(log_posterior, onehot, block.weight),
        "held_out": scores(log_posterior, onehot, block.held_out),
    }
    objective = rule.objective(log_joint, onehot)
    if objective is not None:
        sums["objective"] = float(block.weight @ objective)
    if last:
        return sums, None
    return sums, without_negligible(rule.weights(onehot, np.exp(log_posterior))) * block.weight[:, None]


def problem_of(run: Run) -> str:
    """Why a run ended before its stopping criterion was met, and what to do; empty if it was met."""
    history: Sequence[Entry] = run.history
    if run.diverged:
        # Steps on parameters, not on statistics, are in the units of the columns.
        or_standardize = " or standardize the columns" if run.state.statistics is None else ""
        return (
            f"rule {run.rule.name!r} diverged; the best state before that is used. "
            f"Give the rule a smaller step{or_standardize}."
        )
    if run.updates and not run.best_iter and history[-1].objective < history[0].objective - DIVERGING_FALL:
        return (
            f"the first steps of rule {run.rule.name!r} lowered its objective, so the start is used. "
            "Give the rule a smaller step."
        )
    if not run.converged and run.stop.unfinished(history) and not run.changed < FEW_CHANGED:
        changed = f", the last of which changed {run.changed:.1%} of the decisions for training rows"
        return (
            f"the objective of rule {run.rule.name!r} was still rising after {run.updates} updates"
            f"{'' if math.isnan(run.changed) else changed}. "
            "Increase max_iter for a closer fit to the training rows, or set stop=None to end there on purpose."
        )
    return ""

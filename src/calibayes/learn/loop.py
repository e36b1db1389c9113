"""The training loop: pass after pass over the source until every run is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array, Block, Engine, Model, ModelArrays, Rule, Source, State
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
from calibayes.learn.plan import Plan
from calibayes.learn.progress import Callback, Progress
from calibayes.learn.run import Entry, Run, Sweep

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
        measured = {name: MeasuredState.of(run) for name, run in active.items()}
        totals = sum_over_blocks(partial(_measure_states, measured), source, engine)
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

    def __call__(self, run: Run, state: State, step: float) -> tuple[State, int]:
        frozen = 0
        for batch in self.source.batches(self.size, self.generator):
            block = run.view(batch)
            sums = measure(block, run.model, run.rule, state.parameters)
            share = sums["size"] / run.size
            state, frozen_now = run.rule.advance(run.model, state, sums["statistics"], step, run.size, share)
            frozen += frozen_now
        return state, frozen


def mini_batches(source: Source, size: int, seed: int) -> Sweep:
    """A sweep of mini-batches in a random order that follows from a seed."""
    return MiniBatches(source, size, np.random.default_rng(seed))


def sum_over_blocks(function: Callable[[Block], Mapping[str, Any]], source: Source, engine: Engine) -> Any:
    """The sum of a function over all blocks of a source."""

    def of_block(block: Block) -> Mapping[str, Any]:
        return function(block)

    return engine.total(of_block, source)


class MeasuredState(NamedTuple):
    """What a pass needs of a run, and nothing more: it is sent to every worker of a distributed engine."""

    view: Callable[[Block], Block]
    model: Model
    rule: Rule
    parameters: ModelArrays
    last: bool

    @classmethod
    def of(cls, run: Run) -> MeasuredState:
        """The candidate of a run."""
        return cls(run.view, run.model, run.rule, run.candidate.parameters, run.needs_no_direction)

    def sums(self, block: Block) -> Mapping[str, Any]:
        """The sums of a block."""
        return measure(self.view(block), self.model, self.rule, self.parameters, last=self.last)


def _measure_states(states: Mapping[str, MeasuredState], block: Block) -> Mapping[str, Any]:
    """The sums of a block for each state; a large block in threads, if some are free."""
    is_large = sum(columns.size for columns in block.columns.values()) >= MANY_CELLS
    active = list(states.values())
    if is_large:
        measured = map_items(lambda state: state.sums(block), active)
    else:
        measured = [state.sums(block) for state in active]
    return dict(zip(states, measured, strict=True))


def measure(
    block: Block, model: Model, rule: Rule, parameters: ModelArrays, *, last: bool = False
) -> Mapping[str, Any]:
    """The sums of one block: scores of the parameters and, unless it is the last pass, statistics(X, W)."""
    g = rule.generative_weight
    if g is not None and not last and model.has_fused_pass:
        fused = model.fused_pass(block, parameters, g, NEGLIGIBLE)
        return {**_sums(fused.assessment), "statistics": fused.statistics}
    # A rule without a generative part needs the posterior only.
    log_joint = (model.contrast if g == 0.0 else model.log_joint)(block, parameters)
    if g is None:
        sums, weights = _by_rule(log_joint, block, rule, last)
    else:
        found = assess(log_joint, block.labels, block.weight, block.held_out, g, NEGLIGIBLE, weights=not last)
        sums, weights = _sums(found), found.weights
    if weights is not None:
        sums["statistics"] = model.statistics(block, weights, parameters)
    return sums


def _sums(assessment: Assessment) -> dict[str, Any]:
    return {
        "size": assessment.train.weight,
        "train": assessment.train._asdict(),
        "held_out": assessment.held_out._asdict(),
        "objective": assessment.objective,
    }


def _by_rule(log_joint: Array, block: Block, rule: Rule, last: bool) -> tuple[dict[str, Any], Array | None]:
    """Scores and weights by the methods of a rule, for rules that have no kernel."""
    onehot = indicators(block.labels, log_joint.shape[1])
    log_posterior, _ = log_normalize(log_joint)
    weight = block.weight if rule.uses_unlabeled else block.weight * onehot.sum(axis=1)
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
        return (
            f"rule {run.rule.name!r} diverged; the best state before that is used. "
            f"Give the rule a smaller step{_other_remedy(run)}."
        )
    if run.updates and not run.best_iter and history[-1].objective < history[0].objective - DIVERGING_FALL:
        return (
            f"the first steps of rule {run.rule.name!r} lowered its objective, so the start is used. "
            "Give the rule a smaller step."
        )
    if not run.converged and run.stop.unfinished(history):
        return (
            f"the objective of rule {run.rule.name!r} was still rising after {run.updates} updates. "
            "Increase max_iter for a closer fit to the training rows, or set stop=None to end there on purpose."
        )
    return ""


def _other_remedy(run: Run) -> str:
    """What helps besides a smaller step: steps on parameters, not on statistics, are in the units of the columns."""
    return " or standardize the columns" if run.state.statistics is None else ""

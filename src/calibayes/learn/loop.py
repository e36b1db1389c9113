"""Pass after pass over the source, until every lane is done."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from calibayes.core.block import Block
from calibayes.core.protocols import Engine, Model, Rule, Source, Trees
from calibayes.kernels.threads import map_items
from calibayes.learn.lane import Lane, Sweep
from calibayes.learn.measuring import measure
from calibayes.learn.progress import Callback, Progress
from calibayes.learn.starts import Start
from calibayes.posterior import log_normalize

MANY_CELLS = 2**17
"""Cells of a block from which on threads are worth being called."""
FALL = 1.0
"""A fall of the objective by so much a row is no wobble: the rule ran off."""


def start_statistics(model: Model, source: Source, engine: Engine, start: Start, k: int) -> Trees:
    """Statistics of the rows with the start's weights."""
    total: Trees = engine.total(lambda block: model.statistics(block, start.weights(block, k)), source)
    return total


def survey(model: Model, source: Source, engine: Engine, start: Start, k: int) -> Trees:
    """The same sums, or the richer ones that a structure is found in."""
    total: Trees = engine.total(
        lambda block: model.structure_statistics(block, start.weights(block, k)), source
    )
    return total


def brought_statistics(model: Model, source: Source, engine: Engine, rule: Rule, parameters: Trees) -> Trees:
    """What further rows bring to a state: their labels, or their posterior where the rule uses rows without one."""

    def of_block(block: Block) -> Trees:
        log_joint = model.log_joint(block, parameters)
        onehot = block.onehot(log_joint.shape[1])
        weights = rule.brings(onehot, np.exp(log_normalize(log_joint)[0]))
        return model.statistics(block, weights * block.weight[:, None], parameters)

    total: Trees = engine.total(of_block, source)
    return total


def learn(lanes: Sequence[Lane], source: Source, engine: Engine, callbacks: Sequence[Callback] = ()) -> None:
    """Run the lanes to their ends. A block is loaded once a pass and visits every lane that is not done."""
    while active := {str(i): lane for i, lane in enumerate(lanes) if not lane.done}:

        def visit(block: Block, active: Mapping[str, Lane] = active) -> Mapping[str, Any]:
            return dict(zip(active, _looks(block, list(active.values())), strict=True))

        totals = engine.total(visit, source)
        for name, lane in active.items():
            entry = lane.receive(totals[name])
            answers = [call(Progress(lane.updates, lane.limit, entry)) for call in callbacks if entry]
            if any(answers):
                lane.done = lane.converged = True
    for lane in lanes:
        _warn(lane)


def _looks(block: Block, lanes: Sequence[Lane]) -> list[Mapping[str, Any]]:
    """What the lanes see in a block; in threads, where these are free and it is large."""

    def fused_pass(lane: Lane) -> Mapping[str, Any]:
        return measure(lane.view(block), lane.model, lane.rule, lane.candidate.parameters, last=lane.last)

    large = sum(columns.size for columns in block.columns.values()) >= MANY_CELLS
    return map_items(fused_pass, lanes) if large else [fused_pass(lane) for lane in lanes]


def _warn(lane: Lane) -> None:
    if lane.diverged:
        warnings.warn(
            f"rule {lane.rule.name!r} ran off at update {lane.updates + 1}; the best state before it is kept. "
            "A smaller step helps.",
            ConvergenceWarning,
            stacklevel=5,
        )
    elif (
        lane.updates and not lane.best_iter and lane.history[-1].objective < lane.history[0].objective - FALL
    ):
        warnings.warn(
            f"the first steps of rule {lane.rule.name!r} lowered its objective, so the start is kept: a smaller step helps",
            ConvergenceWarning,
            stacklevel=5,
        )
    elif not lane.converged and lane.stop.unfinished(lane.history):
        warnings.warn(
            f"the objective of rule {lane.rule.name!r} was still rising after {lane.updates} updates; "
            "a larger max_iter would fit the training rows better",
            ConvergenceWarning,
            stacklevel=5,
        )


def mini_batches(source: Source, size: int, seed: int) -> Sweep:
    """A sweep of updates on ``size`` rows at a time, in an order that changes from pass to pass.

    Steps count rows, not batches: a sweep moves about as far as one full update of the same step would.
    """
    rng = np.random.default_rng(seed)

    def sweep(lane: Lane, state: Trees, step: float) -> tuple[Trees, int]:
        frozen = 0
        for batch in source.batches(size, rng):
            block = lane.view(batch)
            sums = measure(block, lane.model, lane.rule, lane.rule.parameters(lane.model, state))
            share = sums["size"] / lane.size
            state, kept = lane.rule.advance(lane.model, state, sums["statistics"], step, lane.size, share)
            frozen += kept
        return state, frozen

    return sweep

"""One look at a block: how good the parameters are there, and the direction from them, while it is in the cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibayes.core.block import Block
from calibayes.core.protocols import Array, Model, Rule, Trees
from calibayes.kernels.posterior.logspace import Assessment
from calibayes.posterior import NEGLIGIBLE, assess, log_normalize, scores, undecided


def measure(
    block: Block, model: Model, rule: Rule, parameters: Trees, *, last: bool = False
) -> Mapping[str, Any]:
    """The sums of one block: how good the parameters are, and the direction from them unless it is the last look."""
    blend: float | None = getattr(rule, "blend", None)
    seen = model.fused_pass(block, parameters, blend, NEGLIGIBLE) if blend is not None and not last else None
    if seen is not None:
        return {**_sums(seen.assessment), "statistics": seen.statistics}
    # The posterior is all that a rule without a generative part looks at.
    log_joint = (model.contrast if blend == 0.0 else model.log_joint)(block, parameters)
    sums, weights = (
        _by_rule(log_joint, block, rule, last) if blend is None else _by_blend(log_joint, block, blend, last)
    )
    if weights is not None:
        sums["statistics"] = model.statistics(block, weights, parameters)
    return sums


def _by_blend(
    log_joint: Array, block: Block, blend: float, last: bool
) -> tuple[dict[str, Any], Array | None]:
    found = assess(log_joint, block.labels, block.weight, block.held_out, blend, NEGLIGIBLE, weights=not last)
    return _sums(found), found.weights


def _sums(found: Assessment) -> dict[str, Any]:
    return {
        "size": found.train.weight,
        "train": found.train._asdict(),
        "held_out": found.held_out._asdict(),
        "objective": found.objective,
    }


def _by_rule(log_joint: Array, block: Block, rule: Rule, last: bool) -> tuple[dict[str, Any], Array | None]:
    onehot = block.onehot(log_joint.shape[1])
    log_posterior, _ = log_normalize(log_joint)
    taking_part = block.weight if rule.unlabeled else block.weight * onehot.sum(axis=1)
    sums: dict[str, Any] = {
        "size": float(taking_part.sum()),
        "train": scores(log_posterior, onehot, block.weight),
        "held_out": scores(log_posterior, onehot, block.held_out),
    }
    objective = rule.objective(log_joint, onehot)
    if objective is not None:
        sums["objective"] = float(block.weight @ objective)
    if last:
        return sums, None
    return sums, undecided(rule.weights(onehot, np.exp(log_posterior))) * block.weight[:, None]

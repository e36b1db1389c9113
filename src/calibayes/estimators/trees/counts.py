"""Arithmetic on the leaf counts of models with the same trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibayes.core.named_arrays import add, subtract
from calibayes.core.protocols import Engine, Trees
from calibayes.estimators.generative.arithmetic import ROUNDING
from calibayes.estimators.generative.fitted import Fitted
from calibayes.estimators.generative.recipe import Assembly
from calibayes.estimators.interface.input import Rows
from calibayes.learn import data_sums


def merged(ours: Fitted, theirs: Fitted) -> Fitted:
    """The counts of both. Raises ValueError if classes, columns, trees or rules differ."""
    for fitted in (ours, theirs):
        _require_counts(fitted)
    if not np.array_equal(ours.classes, theirs.classes):
        raise ValueError(f"different classes: {ours.classes.tolist()} and {theirs.classes.tolist()}")
    if ours.binding.names != theirs.binding.names:
        raise ValueError("different columns")
    binding, _, _ = ours.binding.unite(theirs.binding)
    changed = replace(ours, binding=binding, n_iter=ours.n_iter + theirs.n_iter)
    data: Trees = add(ours.data_statistics, theirs.data_statistics)
    state: Trees = add(_calibrated(ours), _calibrated(theirs))
    return _at(changed, data, state)


def without_rows(fitted: Fitted, rows: Rows, engine: Engine) -> Fitted:
    """The counts without those of some rows. Raises ValueError if the rows cannot have been part of the training."""
    _require_counts(fitted)
    source = Assembly(fitted.binding, fitted.model, fitted.classes).source(rows)
    removed = data_sums(fitted.model, source, engine, len(fitted.classes)).statistics
    data: Trees = subtract(fitted.data_statistics, removed)
    for name, arrays in data.items():
        before, after = fitted.data_statistics[name]["count"], arrays["count"]
        if (after < -ROUNDING * np.maximum(before, 1.0)).any():
            raise ValueError("these rows were not part of the training, or not with these weights")
    kept = {name: {"count": np.maximum(arrays["count"], 0.0)} for name, arrays in data.items()}
    state = _calibrated(fitted)
    remaining, _ = fitted.model.keep_valid(state, subtract(state, removed))
    return _at(fitted, kept, remaining)


def _require_counts(fitted: Fitted) -> None:
    """Raise ValueError if the model has no counts that rows can be added to or subtracted from."""
    fitted.refuse_shifted_priors()
    if not fitted.rule.keeps_statistics:
        raise ValueError(
            f"rule {fitted.rule.name!r} keeps no counts, so that none can be added or subtracted"
        )


def _calibrated(fitted: Fitted) -> Trees:
    """The calibrated counts."""
    fitted.learned()
    assert fitted.statistics is not None  # the rule keeps them
    return fitted.statistics


def _at(fitted: Fitted, data: Trees, value: Trees) -> Fitted:
    """The model with other counts of the data, and other calibrated ones."""
    state = fitted.rule.state(fitted.model, value)
    return replace(
        fitted,
        data_statistics=data,
        state=state.value,
        statistics=state.statistics,
        parameters=state.parameters,
        history=None,
        best_iter=None,
    )

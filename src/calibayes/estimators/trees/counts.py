"""Arithmetic on the leaf counts of models with given trees: further rows, rows to forget, and the sum of two models."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from calibayes.core.named_arrays import add, subtract
from calibayes.core.protocols import Array, Engine, Trees
from calibayes.encoders.leaves import Leaves
from calibayes.estimators.generative.arithmetic import ROUNDING
from calibayes.estimators.generative.fitted import Fitted
from calibayes.estimators.generative.recipe import Assembly
from calibayes.estimators.interface.input import Rows
from calibayes.estimators.interface.splits import unit_weight
from calibayes.estimators.trees.training import TREES, counts_at
from calibayes.families.model import PRIOR
from calibayes.kernels.levels.counts import look_up, offsets
from calibayes.kernels.partitions.refinement import leaf_changes
from calibayes.learn import data_sums


def merged(ours: Fitted, theirs: Fitted) -> Fitted:
    """The counts of both. Raises ValueError if classes, columns or trees differ."""
    for fitted in (ours, theirs):
        fitted.refuse_shifted_priors()
    if not np.array_equal(ours.classes, theirs.classes):
        raise ValueError(f"different classes: {ours.classes.tolist()} and {theirs.classes.tolist()}")
    if ours.binding.names != theirs.binding.names:
        raise ValueError("different columns")
    binding, _, _ = ours.binding.unite(theirs.binding)
    data: Trees = add(ours.data_statistics, theirs.data_statistics)
    counts: Trees = add(_calibrated(ours), _calibrated(theirs))
    return _at(replace(ours, binding=binding, n_iter=ours.n_iter + theirs.n_iter, receipts=()), data, counts)


def with_rows(fitted: Fitted, rows: Rows, engine: Engine) -> Fitted:
    """The counts with those of further rows, and the leaves moved by a step on them."""
    _require_free(fitted)
    added = _data_of(fitted, rows, engine)
    data: Trees = add(fitted.data_statistics, added)
    share = _weight(added) / _weight(data)
    return _at(
        replace(fitted, n_iter=fitted.n_iter + 1, receipts=()), data, _moved(fitted, rows, share, data)
    )


def without_rows(fitted: Fitted, rows: Rows, engine: Engine) -> Fitted:
    """The counts without those of some rows, and the leaves moved back by a step on them.

    Raises ValueError if the rows cannot have been part of the training.
    """
    _require_free(fitted)
    removed = _data_of(fitted, rows, engine)
    data: Trees = subtract(fitted.data_statistics, removed)
    for name, arrays in data.items():
        before, after = fitted.data_statistics[name]["count"], arrays["count"]
        if (after < -ROUNDING * np.maximum(before, 1.0)).any():
            raise ValueError("these rows were not part of the training, or not with these weights")
    left = {name: {"count": np.maximum(arrays["count"], 0.0)} for name, arrays in data.items()}
    try:
        fitted.model.prior.prepare(left[PRIOR])
    except ValueError as error:
        return replace(fitted, data_statistics=left).without_parameters(str(error))
    share = _weight(removed) / _weight(fitted.data_statistics)
    return _at(fitted, left, _moved(fitted, rows, -share, left))


def _require_free(fitted: Fitted) -> None:
    """Raise ValueError if the leaves cannot be moved one by one."""
    fitted.refuse_shifted_priors()
    if _leaves(fitted).monotone:
        raise ValueError(
            "leaves that move one by one would no longer be monotone in a column: fit again on all rows"
        )


def _leaves(fitted: Fitted) -> Leaves:
    return cast(Leaves, fitted.binding.encoders[TREES])


def _data_of(fitted: Fitted, rows: Rows, engine: Engine) -> Trees:
    """The counts of rows by class and leaf."""
    source = Assembly(fitted.binding, fitted.model, fitted.classes).source(rows)
    sums: Trees = data_sums(fitted.model, source, engine, len(fitted.classes)).statistics
    return sums


def _weight(data: Trees) -> float:
    return float(data[PRIOR]["count"].sum())


def _calibrated(fitted: Fitted) -> Trees:
    """The calibrated counts: those of the probabilities of a model, as many as its rows."""
    parameters = fitted.learned()
    log_leaf, log_class = (parameters[name]["log_probability"] for name in (TREES, PRIOR))
    return counts_at(log_leaf, log_class, fitted.data_statistics)


def _moved(fitted: Fitted, rows: Rows, share: float, data: Trees) -> Trees:
    """Calibrated counts, as many as ``data``, after a step of growth on some rows, times their share among all rows."""
    leaves, parameters = _leaves(fitted), fitted.learned()
    log_leaf, log_class = (parameters[name]["log_probability"] for name in (TREES, PRIOR))
    codes, sizes, settings = leaves.encode(rows.table), leaves.forest.leaves, leaves.settings
    scores: Array = log_class + look_up(codes, log_leaf, offsets(sizes))
    rate = settings.rate * share
    weight = rows.weight / unit_weight(rows)
    changes = leaf_changes(codes, sizes, rows.codes, weight, scores, rate, settings.prior)
    return counts_at(*leaves.normalized(log_leaf + changes, log_class), data)


def _at(fitted: Fitted, data: Trees, counts: Trees) -> Fitted:
    """The model with other counts of the data, and other calibrated ones."""
    state = fitted.rule.begin(fitted.model, counts)
    return replace(
        fitted,
        data_statistics=data,
        state=state.value,
        statistics=state.statistics,
        parameters=state.parameters,
        history=None,
        best_iter=None,
    )

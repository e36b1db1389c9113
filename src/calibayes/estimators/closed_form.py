"""Cross-validation of closed-form learners from one pass: the statistics of all rows minus those of a fold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import LeaveOneGroupOut

from calibayes.core.abilities import AllowsMissing, Recodable
from calibayes.core.named_arrays import add, subtract
from calibayes.core.protocols import Array, Rule, Trees
from calibayes.decision import tempered
from calibayes.engines.local import one_thread
from calibayes.estimators.checks import whole_number
from calibayes.estimators.generative import Generative
from calibayes.estimators.targets import distinct
from calibayes.estimators.training import recoded
from calibayes.kernels.numbers.sparse import columns_where, is_sparse
from calibayes.learn import Data, survey
from calibayes.posterior import assess, log_normalize
from calibayes.rules import rule_named
from calibayes.tables.sources import ArraySource

LEAST_COUNT = 1e-9
"""Counts below this are rounding of rows that were taken away."""


@dataclass(frozen=True)
class FoldScores:
    """What models trained without a fold did on it.

    Attributes
    ----------
    error, log_loss : (folds,) arrays
        Of the most probable class, and of its probabilities.
    log_probability : (n, k) array
        log p(class | x) of every row under the model that had not seen it; NaN for rows of weight zero.
    fold : (n,) integers
        The fold of each row, -1 for rows of weight zero.
    classes : (k,) array
    """

    error: Array
    log_loss: Array
    log_probability: Array
    fold: Array
    classes: Array


def cross_validate_closed_form(
    estimator: Generative, X: Any, y: Any, *, cv: Any = 5, groups: Any = None, sample_weight: Any = None
) -> FoldScores:
    """Exact K-fold or leave-one-group-out results of ML and MAP, all folds from one pass for their sums.

    Each row is read once for the sums and once for its prediction, whatever the number of folds; priors and smoothing
    are settled fold by fold from what is left. Refused for rules without a closed form, for full covariances with
    missing cells, and for bins that are found in the data, which the held-out rows would shape. Every class must have
    rows outside each fold.

    Parameters
    ----------
    estimator : an estimator of this package with ``rule="ml"`` or ``"map"``
    X, y, sample_weight
        As for `fit`.
    cv : int or splitter, default=5
        Number of stratified folds (shuffled with seed 0), or an object with ``split`` whose test parts do not overlap.
    groups : (n,) array, optional
        For a splitter that asks for them; with a number of folds, one group is left out at a time instead.
    """
    if not isinstance(estimator, Generative):
        raise ValueError(f"a {type(estimator).__name__} is no estimator of this package")
    model = clone(estimator)
    rule = rule_named(model.rule)
    _refuse(model, rule)
    model.classes_, rows = model._training_rows((X, y, sample_weight), model.class_weight, unlabeled=False)
    fold = _folds(y, cv, groups)[rows.where]
    model._bind(rule, rows)
    _refuse_shaped(model)
    source = model._source(rows)
    members = _members(fold)
    _refuse_empty(model, source, members)
    parts = [_part(source, mine) for mine in members]
    with one_thread():  # once for all folds: it takes its time
        sums = [survey(model._model, part, model._engine(), Data(), source.k) for part in parts]
        total: Trees = reduce(add, sums)
        judged = [
            _judged(model, subtract(total, own), part, number)
            for number, (own, part) in enumerate(zip(sums, parts, strict=True))
        ]
    log_probability, folds = np.full((len(y), source.k), np.nan), np.full(len(y), -1)
    log_probability[rows.where[np.concatenate(members)]] = np.concatenate([found for found, _ in judged])
    folds[rows.where] = fold
    error, loss = (np.array([s[name] / s["weight"] for _, s in judged]) for name in ("error", "log_loss"))
    return FoldScores(error, loss, log_probability, folds, model.classes_)


def _refuse(model: Generative, rule: Rule) -> None:
    """A sentence where the folds would not be those of the estimator."""
    if not rule.closed_form:
        raise ValueError(f"rule {model.rule!r} has no closed form: use cross_val_score")
    if isinstance(model.class_weight, str):
        raise ValueError("class_weight='balanced' would count the held-out rows: give row weights instead")
    if isinstance(model.temperature, str):
        raise ValueError("temperature='auto' needs a fit of its own for each fold: use cross_val_score")


def _refuse_empty(model: Generative, source: ArraySource, members: list[Array]) -> None:
    """A sentence where a fold has no rows, or the rows without it know nothing of a column."""
    lost = [str(number) for number, mine in enumerate(members) if not len(mine)]
    if lost:
        raise ValueError(f"fold {lost[0]} has no row that carries weight")
    for name, columns in source.columns.items():
        absent = np.isnan if columns.dtype.kind == "f" else _negative
        if is_sparse(columns) or not len(columns_where(columns, absent)):
            continue
        known = ~absent(columns)
        for number, mine in enumerate(members):
            unknown = known.sum(axis=0) == known[mine].sum(axis=0)
            if unknown.any():
                column = model._bound.names[model._bound.chosen[name][int(np.argmax(unknown))]]
                raise ValueError(
                    f"column {column!r} is all missing in the rows without fold {number}: leave it out"
                )


def _folds(y: Any, cv: Any, groups: Any) -> Array:
    """The fold of each row, (n,) integers."""
    labels = distinct(np.asarray(y))[1]
    if hasattr(cv, "split"):
        splits = cv.split(labels, labels, groups)
    elif groups is not None:
        splits = LeaveOneGroupOut().split(labels, labels, groups)
    else:
        return _stratified(labels, whole_number("cv", cv, 2))
    fold = np.full(len(labels), -1)
    for number, (_, test) in enumerate(splits):
        if (fold[test] >= 0).any():
            raise ValueError("a row is in the test part of two folds: folds must not overlap")
        fold[test] = number
    if (fold < 0).any():
        raise ValueError("some rows are in no fold: every row must be held out once")
    return fold


def _members(fold: Array) -> list[Array]:
    """The rows of each fold, ascending."""
    order = np.argsort(_narrow(fold), kind="stable")
    return np.split(order, np.cumsum(np.bincount(fold))[:-1])


def _narrow(numbers: Array) -> Array:
    """Small numbers in a narrow type, which NumPy sorts without comparing them."""
    return numbers.astype(np.int16) if numbers.max(initial=0) < 2**15 else numbers


def _stratified(labels: Array, count: int) -> Array:
    """Folds that share out each class's rows evenly, in random order with seed 0."""
    order = np.random.default_rng(0).permutation(len(labels))
    order = order[np.argsort(_narrow(labels[order]), kind="stable")]
    fold = np.empty(len(labels), dtype=np.intp)
    fold[order] = np.arange(len(labels)) % count
    return fold


def _refuse_shaped(model: Generative) -> None:
    """A sentence where test rows would shape the model."""
    reasons = [
        encoder.data_dependence for encoder in model._bound.encoders.values() if encoder.data_dependence
    ]
    if reasons:
        raise ValueError(f"test rows must not shape the model, but {reasons[0]}: use cross_val_score")


def _negative(codes: Array) -> Array:
    return codes < 0


def _part(source: ArraySource, rows: Array) -> ArraySource:
    """Some rows of a source."""
    columns = {
        name: array[rows] if is_sparse(array) else np.take(array, rows, axis=0)
        for name, array in source.columns.items()
    }
    labels, weight, held_out = source.labels[rows], source.weight[rows], source.held_out[rows]
    return replace(source, columns=columns, labels=labels, weight=weight, held_out=held_out)


def _judged(model: Generative, left: Trees, part: ArraySource, number: int) -> tuple[Array, Any]:
    """Log posterior and scores of a fold's rows under the model of what is left."""
    for name, family in model._model.families.items():
        if isinstance(family, AllowsMissing) and family.has_hidden(part.columns[name]):
            raise ValueError(
                "mixtures, and full covariances with missing cells, have no closed form: use cross_val_score"
            )
    product, statistics, columns = _of_seen_levels(model, left, part)
    try:
        prepared = product.prepare(statistics)
    except ValueError as lacking:
        raise ValueError(f"the rows without fold {number} are not enough: {lacking}") from lacking
    parameters = prepared.parameters(prepared.statistics_of(statistics))
    with one_thread():
        blocks = [load() for load in replace(part, columns=columns).parts()]
        log_joint = np.concatenate([prepared.log_joint(block, parameters) for block in blocks])
    log_posterior, _ = log_normalize(log_joint)
    if model.temperature != 1.0:
        log_posterior = tempered(log_posterior, float(model.temperature))
    found = assess(log_posterior, part.labels, part.weight, part.held_out, 0.0, weights=False)
    return log_posterior, found.train._asdict()


def _of_seen_levels(model: Generative, left: Trees, part: ArraySource) -> tuple[Any, Trees, dict[str, Array]]:
    """Model, statistics and columns as if levels that occur in the fold alone had never been seen."""
    moved, encoders, columns = {}, dict(model._bound.encoders), dict(part.columns)
    for name, family in model._model.families.items():
        if isinstance(family, Recodable):
            counts = family.occurrences(left[name])
            encoders[name], codes = encoders[name].restricted_to(np.where(counts > LEAST_COUNT, counts, 0.0))
            if codes is not None:
                moved[name] = codes
                columns[name] = _recoded(columns[name], codes)
    if not moved:
        return model._model, left, columns
    names = tuple(str(name) for name in model.classes_)
    layouts = replace(model._bound, encoders=encoders).layouts(names)
    return model._model.bind(layouts, names), recoded(model._model.families, left, moved, layouts), columns


def _recoded(columns: Array, codes: Any) -> Array:
    """Codes of levels after they have moved; what is no level any more is -1."""
    return np.stack(
        [np.append(new, -1)[column] for new, column in zip(codes, columns.T, strict=True)], axis=1
    )

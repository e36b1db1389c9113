"""Exact cross-validation of closed-form models from one pass: the statistics of all rows minus those of a fold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import LeaveOneGroupOut

from calibayes.analysis.leave_one_out import posterior_by_options, with_remaining_levels
from calibayes.core.named_arrays import add, subtract
from calibayes.core.protocols import Array, Engine, ModelArrays
from calibayes.engines import one_thread
from calibayes.kernels.event_counts import columns_where, is_sparse
from calibayes.kernels.posterior import assess, log_normalize
from calibayes.learn import DataSums, data_sums
from calibayes.model.checked_rows import Reading, distinct
from calibayes.model.estimator import GenerativeEstimator, recipe_of, refuse_parts_of_rows
from calibayes.model.parameters import whole_number
from calibayes.model.recipe import Assembly, Recipe, assemble, encoded_source
from calibayes.model.splits import shuffled_folds
from calibayes.model.table_inputs import InMemory
from calibayes.tables.row_blocks import ArraySource


@dataclass(frozen=True)
class FoldScores:
    """Scores of models trained without a fold, on its rows.

    Attributes
    ----------
    error, log_loss : (folds,) arrays
    log_probability : (n, k) array
        log p(class | x) of every row under the model trained without its fold; NaN for rows of weight zero.
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
    estimator: GenerativeEstimator,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    groups: Any = None,
    sample_weight: Any = None,
) -> FoldScores:
    """Exact K-fold or leave-one-group-out results of ML and MAP, with the statistics of all folds from one pass.

    Each row is read once for the sums and once for its prediction, whatever the number of folds; priors and smoothing
    are found fold by fold in what is left. Raises ValueError for rules without a closed form, for full covariances with
    missing values, and for bins that are found in the data, since held-out rows would influence them. Every class must
    have rows outside each fold.

    Parameters
    ----------
    estimator : an estimator of this package with ``rule="ml"`` or ``"map"``
    X, y, sample_weight
        As for `fit`.
    cv : int or splitter, default=5
        Number of stratified, shuffled folds, or an object with ``split`` whose test parts do not overlap.
    groups : (n,) array, optional
        For a splitter that needs them; with a number of folds, one group is left out at a time instead.

    Returns
    -------
    FoldScores

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> cross_validate_closed_form(GaussianNB(rule="ml"), X, y, cv=5).error.shape
    (5,)
    """
    if not isinstance(estimator, GenerativeEstimator):
        raise ValueError(f"a {type(estimator).__name__} is no generative estimator of this package")
    reader = clone(estimator)
    recipe = recipe_of(reader)
    _refuse(recipe, reader.class_weight)
    refuse_parts_of_rows(reader)
    classes, rows = InMemory(X, y, sample_weight).rows(reader, None, Reading(reader.class_weight))
    fold = _fold_numbers(y, cv, groups)[rows.positions]
    assembly = assemble(recipe, rows, classes)
    reasons = [e.data_dependence for e in assembly.binding.encoders.values() if e.data_dependence]
    if reasons:
        raise ValueError(f"held-out rows must not influence the model, but {reasons[0]}: use cross_val_score")
    nothing, members = np.broadcast_to(0.0, len(rows.codes)), _members(fold)
    source = encoded_source(rows.encoded(assembly.binding), assembly.model, rows.codes, rows.weight, nothing)
    _refuse_empty(assembly, source, members)
    parts = [_part(source, positions) for positions in members]
    k = len(classes)
    with one_thread():  # once for all folds: entering takes time
        assembly, sums, total = _accurate_fold_sums(assembly, parts, recipe.engine, k)
        results = [
            _fold_result(recipe, assembly, total, fold_sums, part, number)
            for number, (fold_sums, part) in enumerate(zip(sums, parts, strict=True))
        ]
    log_probability, folds = np.full((len(y), k), np.nan), np.full(len(y), -1)
    log_probability[rows.positions[np.concatenate(members)]] = np.concatenate([p for p, _ in results])
    folds[rows.positions] = fold
    error, loss = (np.array([s[name] / s["weight"] for _, s in results]) for name in ("error", "log_loss"))
    return FoldScores(error, loss, log_probability, folds, classes)


def _accurate_fold_sums(
    assembly: Assembly, parts: list[ArraySource], engine: Engine, k: int
) -> tuple[Assembly, list[DataSums], ModelArrays]:
    """The sums of each fold and of all rows; about the class means if variances lost digits about the center."""
    sums = [data_sums(assembly.model, part, engine, k) for part in parts]
    total: ModelArrays = reduce(add, [fold_sums.statistics for fold_sums in sums])
    closer = assembly.model.recentered(total)
    if closer is assembly.model:
        return assembly, sums, total
    again = [data_sums(closer, part, engine, k) for part in parts]
    about_means: ModelArrays = reduce(add, [fold_sums.statistics for fold_sums in again])
    if not closer.gains(about_means):
        return assembly, sums, total
    return assembly._replace(model=closer), again, about_means


def _refuse(recipe: Recipe, class_weight: Any) -> None:
    """Raises ValueError if the folds would not be those of the estimator."""
    if not recipe.rule.is_closed_form:
        raise ValueError(f"rule {recipe.rule.name!r} has no closed form: use cross_val_score")
    if isinstance(class_weight, str):
        raise ValueError("class_weight='balanced' would count the held-out rows: give row weights instead")
    if isinstance(recipe.options.temperature, str):
        raise ValueError("temperature='auto' needs a fit for each fold: use cross_val_score")


def _refuse_empty(assembly: Assembly, source: ArraySource, members: list[Array]) -> None:
    """Raises ValueError if a fold has no rows, or a column no known value outside of a fold."""
    lost = [str(number) for number, positions in enumerate(members) if not len(positions)]
    if lost:
        raise ValueError(f"fold {lost[0]} has no row with a positive weight")
    for name, columns in source.columns.items():
        is_missing: Any = np.isnan if columns.dtype.kind == "f" else lambda codes: codes < 0
        if is_sparse(columns) or not len(columns_where(columns, is_missing)):
            continue
        known = ~is_missing(columns)
        for number, positions in enumerate(members):
            unknown = known.sum(axis=0) == known[positions].sum(axis=0)
            if unknown.any():
                column = assembly.binding.column(name, int(np.argmax(unknown)))
                raise ValueError(
                    f"column {column!r} is all missing in the rows without fold {number}: leave it out"
                )


def _fold_numbers(y: Any, cv: Any, groups: Any) -> Array:
    """The fold of each row, (n,) integers. Raises ValueError unless every row is held out once."""
    labels = distinct(np.asarray(y))[1]
    if hasattr(cv, "split"):
        splits = cv.split(labels, labels, groups)
    elif groups is not None:
        splits = LeaveOneGroupOut().split(labels, labels, groups)
    else:
        fold = shuffled_folds(labels, whole_number("cv", cv, 2), 0)
        if (fold < 0).any():
            raise ValueError("a class has one row only: every class must have rows outside each fold")
        return fold
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
    narrow = fold.astype(np.int16) if fold.max(initial=0) < 2**15 else fold  # sorted by counting
    return np.split(np.argsort(narrow, kind="stable"), np.cumsum(np.bincount(fold))[:-1])


def _part(source: ArraySource, rows: Array) -> ArraySource:
    """Some rows of a source."""
    columns = {}
    for name, array in source.columns.items():
        columns[name] = array[rows] if is_sparse(array) else np.take(array, rows, axis=0)
    labels, weight, held_out = source.labels[rows], source.weight[rows], source.held_out[rows]
    return replace(source, columns=columns, labels=labels, weight=weight, held_out=held_out)


def _fold_result(
    recipe: Recipe, assembly: Assembly, total: ModelArrays, fold: DataSums, part: ArraySource, number: int
) -> tuple[Array, Any]:
    """Log posterior and scores of a fold's rows under the model of all other rows."""
    if fold.hidden:
        raise ValueError(
            "mixtures, and full covariances with missing values, have no closed form: use cross_val_score"
        )
    left = subtract(total, fold.statistics)
    model, statistics, columns = with_remaining_levels(assembly, left, part.columns)
    try:
        prepared = replace(model, prior=replace(model.prior, allows_zero=False)).prepare(statistics)
    except ValueError as error:
        raise ValueError(f"the rows without fold {number} are not enough: {error}") from error
    parameters = prepared.parameters(prepared.statistics_of(statistics))
    held_out = replace(part, columns=columns)
    joint = recipe.engine.each(lambda block: prepared.log_joint(block, parameters), held_out)
    log_posterior = posterior_by_options(recipe, log_normalize(np.concatenate(joint))[0])
    scores = assess(log_posterior, part.labels, part.weight, part.held_out, 0.0, weights=False)
    return log_posterior, scores.train._asdict()

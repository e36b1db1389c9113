"""What a model says about rows that it was not trained on: by leaving out folds, or for rows that are given.

Closed forms leave out every single row exactly, by subtraction. Other models are trained again without each of five folds
(twenty below 1,000 rows), or without one part of the rows if they are many.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from calibayes.analysis.cell_scores import SurpriseReference, cell_scores, densities, known_cells
from calibayes.analysis.column_cells import DriftReference, counted_columns
from calibayes.analysis.leave_one_out import leave_one_out
from calibayes.core.notices import ProgressReporter
from calibayes.core.protocols import Array
from calibayes.kernels.posterior import log_normalize
from calibayes.model import training_rows
from calibayes.model.attributes import numpy_classes
from calibayes.model.checked_rows import read_table, read_target, read_weight
from calibayes.model.parameters import WHOLE, unfitted_copy, whole_number
from calibayes.model.splits import hold_out, masks_of, shuffled_folds
from calibayes.model.table_inputs import in_memory, on_numpy
from calibayes.tables.table import Table

FOLDS, MORE_FOLDS = 5, 20
"""Number of folds, and below `FEW_ROWS`, where a model that is trained without a fifth of the rows is another one."""
FEW_ROWS = 1000
MANY_ROWS = 20_000
"""Rows from which on one part of them is held out, instead of each fold in turn."""
GIVEN_ROWS = "rows that were not used in training"
"""How rows were held out that are given to `with_held_out`: the model itself predicts them."""
SHIFTED = "; weighted to other class frequencies"
SCORED_CELLS = 500_000
"""Most cells whose conditional densities are computed for `surprise`."""
DRIFT_SHARE = 0.3
"""Share of the rows that `drift` holds out."""


class LabeledTable(NamedTuple):
    """Rows of positive weight, in memory, their columns as they were given."""

    table: Table
    codes: Array
    """Class codes, -1 for a row without a label."""
    weight: Array
    rows: Array
    """Positions among the rows that were given."""

    def only(self, keep: Array) -> LabeledTable:
        """The rows where ``keep`` is true."""
        return LabeledTable(self.table.rows(keep), self.codes[keep], self.weight[keep], self.rows[keep])

    def labels(self, classes: Array) -> Array:
        """The labels; None where there is none."""
        return training_rows.labels_of(self.codes, classes)


def with_held_out(self: Any, X: Any, y: Any, sample_weight: Any = None, *, cv: Any = None) -> Any:
    """A copy of this model with a record of its predictions for rows that it was not trained on.

    `predict_set`, `surprise`, `drift` and `adapt_priors` use this record, which is saved with the model. Without it, they
    make one from the rows of `fit`, as long as the model is in the process that fitted it.

    Parameters
    ----------
    X, y, sample_weight
        Rows that were not used in training or, with ``cv``, the training rows.
    cv : int, splitter or list of splits, optional
        For training rows: the number of folds, a splitter of scikit-learn, or pairs of positions of training and held-out
        rows, of which the latter are used. A model is trained without each fold.

    Returns
    -------
    model
        Its ``held_out_`` is the record.
    """
    check_is_fitted(self)
    cv = cv if cv is None or isinstance(cv, WHOLE) else check_cv(cv)
    given = labeled_table(self, X, y, sample_weight, reset=cv is not None)
    record = cross_fitted(self, given, cv) if cv is not None else predicted(self, given)
    made = training_rows.forget_rows(copy.copy(self))
    vars(made)[training_rows.HELD_OUT] = record
    vars(made)[training_rows.DRIFT] = drift_reference(self, given, in_training=cv is not None, cv=cv)
    if hasattr(self, "score_samples"):
        reference = surprise_reference(self, given, in_training=cv is not None, cv=cv)
        vars(made)[training_rows.SURPRISE] = reference
    return made


def held_out_of(model: Any, use: str = "held_out_", *, density: bool = False) -> training_rows.HeldOut:
    """The record of a fitted model; made from its training rows at first use. Raises ValueError if it refers to none.

    The training of an ensemble has made one without densities, which is used unless ``density`` is needed.
    """
    check_is_fitted(model)
    kept = vars(model)
    record = kept.get(training_rows.HELD_OUT, kept.get(training_rows.OUT_OF_FOLD))
    has_all = record is not None and (record.log_density is not None or not hasattr(model, "score_samples"))
    if record is None or (density and not has_all):
        reference = training_rows.remembered_rows(model, use)
        record = cross_fitted(model, labeled_table(model, *reference, reset=True))
    kept[training_rows.HELD_OUT] = record
    return record


def shifted(record: training_rows.HeldOut, log_change: Array, frequencies: Array) -> training_rows.HeldOut:
    """The record under other class frequencies, (k,), whose logarithms differ by ``log_change`` from those of the model.

    Rows of a class are weighted so that the classes have the new frequencies; rows of a class without any are left out. The
    record has no log p(x): that of the model is for other frequencies, too.
    """
    mass = np.bincount(record.codes, record.weight, minlength=len(frequencies))
    weight = record.weight * (frequencies * mass.sum())[record.codes] / mass[record.codes]
    keep = weight > 0
    moved = log_normalize(record.log_posterior + log_change)[0]
    how = record.how.removesuffix(SHIFTED) + SHIFTED
    return training_rows.HeldOut(moved[keep], record.codes[keep], weight[keep], record.rows[keep], how)


def labeled_table(model: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> LabeledTable:
    """Rows of positive weight in memory; with ``reset`` their columns are read as those of a first table."""
    X, y, sample_weight = in_memory(X, y, sample_weight)
    table = read_table(unfitted_copy(model) if reset else model, X, reset=reset)
    target = read_target(y, unlabeled=True, classes=numpy_classes(model), fewest_classes=1)
    check_consistent_length(target.codes, np.empty(table.n))
    weight = read_weight(sample_weight, table.n)
    return LabeledTable(table, target.codes, weight, np.arange(table.n)).only(weight > 0)


def predicted(model: Any, given: LabeledTable) -> training_rows.HeldOut:
    """The record of rows that the model was not trained on."""
    given = given.only(given.codes >= 0)
    if not given.table.n:
        raise ValueError("no held-out row has a label")
    return _record(given, _said(model, given.table), GIVEN_ROWS)


def cross_fitted(model: Any, given: LabeledTable, cv: Any = None) -> training_rows.HeldOut:
    """The record of training rows, each of them under a model that was trained without it."""
    if training_rows.is_private(model):
        raise ValueError(
            "a record of training rows would be in the model without noise: give a private model rows that were not used in "
            "training, model.with_held_out(X, y)"
        )
    exact = None if cv is not None else leave_one_out(model, given)
    if exact is not None:
        return exact
    masks = list(_held_out_masks(given, cv))
    if not masks:
        raise ValueError(
            "no row can be held out: give two rows of a class at least, or other rows, model.with_held_out(X, y)"
        )
    reporter = ProgressReporter(type(model).__name__, bool(getattr(model, "verbose", 0)), len(masks))
    found, parts = [], []
    for number, mask in enumerate(masks):
        reporter.report(f"held-out rows, part {number + 1} of {len(masks)}", number / len(masks))
        trained = refitted(model, given.only(~mask))
        found.append(given.only(mask))
        parts.append(_said(trained, found[-1].table))
    reporter.close()
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    rows = _concatenated(found)
    how = f"{len(masks)} folds" if len(masks) > 1 else f"{rows.table.n} of {given.table.n} rows held out"
    return _record(rows, joined, how)


def drift_reference(model: Any, given: LabeledTable, *, in_training: bool, cv: Any = None) -> DriftReference:
    """What `drift` compares new rows with: counts of these rows, and predictions for rows that a model was not trained on.

    Predictions for held-out rows and for new rows can only be compared under one model. If these are the training rows, it
    is one that was trained without some of them: the first fold of a splitter, otherwise three tenths.
    """
    # A random choice of rows that represents the weighted ones: each with probability weight / largest weight.
    thinned = np.random.default_rng(0).random(len(given.weight)) < given.weight / given.weight.max()
    kept, mask = thinned & (given.codes >= 0), np.ones(given.table.n, dtype=bool)
    given = given._replace(table=read_table(model, given.table, reset=False), weight=np.ones(given.table.n))
    if in_training:
        mask = _drift_mask(given, cv)
    counted, held = given.only(kept), given.only(kept & mask)
    if not held.table.n:
        raise ValueError("no row can be held out: every class needs two labeled rows at least")
    columns = counted_columns(counted.table, counted.codes, len(numpy_classes(model)))
    trained = training_rows.forget_rows(refitted(model, given.only(kept & ~mask))) if in_training else None
    said = _said(model if trained is None else trained, held.table)
    return DriftReference(columns, held.codes, **said, model=trained)


def _drift_mask(given: LabeledTable, cv: Any) -> Array:
    """Rows that are held out of one model, (n,) booleans."""
    if cv is not None and not isinstance(cv, WHOLE):
        return next(_held_out_masks(given, cv))
    share = min(training_rows.HELD_OUT_ROWS / given.table.n, DRIFT_SHARE)
    return hold_out(given.codes, share, np.random.default_rng(0))


def surprise_reference(
    model: Any, given: LabeledTable, *, in_training: bool, cv: Any = None
) -> SurpriseReference:
    """Densities of rows and cells of some of these rows, by models that were not trained on them."""
    given = given._replace(table=read_table(model, given.table, reset=False))
    dense, n = getattr(model, "density_", model), given.table.n
    dense = dense if hasattr(dense, "score_samples") else model
    chosen = np.random.default_rng(0).permutation(n) < max(SCORED_CELLS // len(given.table.names), 100)
    parts = []
    for mask in _held_out_masks(given, cv) if in_training else (given.codes >= 0,):
        trained = refitted(dense, given.only(~mask)) if in_training else dense
        part = given.only(mask & chosen)
        log_density = densities(trained, part.table)
        scores = cell_scores(trained, part.table, log_density)
        parts.append((log_density, scores, known_cells(part.table), part.weight))
    return SurpriseReference(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def kept_reference(model: Any, name: str, use: str, make: Callable[..., Any]) -> Any:
    """The attribute of this name, which is made of the rows of the last `fit` if there is none."""
    if name not in vars(model):
        given = labeled_table(model, *training_rows.remembered_rows(model, use), reset=False)
        vars(model)[name] = make(model, given, in_training=True)
    return vars(model)[name]


def refitted(model: Any, given: LabeledTable) -> Any:
    """The model trained anew on some rows, without reports or checkpoints."""
    fresh, training = clone(model), getattr(model, "training", None)
    if training is not None:
        fresh.set_params(training=replace(training, checkpoint=None, callbacks=None))
    if hasattr(fresh, "verbose"):
        fresh.verbose = 0
    return fresh.fit(given.table, given.labels(numpy_classes(model)), given.weight)


def _held_out_masks(given: LabeledTable, cv: Any) -> Iterator[Array]:
    """The rows of each fold, (n,) booleans; every class keeps a row outside of each."""
    labeled, seed = given.codes >= 0, 0
    if cv is not None and not isinstance(cv, WHOLE):
        for _, test in cv.split(np.zeros(len(given.codes)), given.codes):
            yield np.isin(np.arange(len(given.codes)), test) & labeled
    elif cv is None and len(given.codes) >= MANY_ROWS:
        share = min(training_rows.HELD_OUT_ROWS / len(given.codes), 1 / FOLDS)
        yield hold_out(given.codes, share, np.random.default_rng(seed)) & labeled
    else:
        usual = MORE_FOLDS if len(given.codes) < FEW_ROWS else FOLDS
        count = usual if cv is None else whole_number("cv", cv, 2)
        yield from masks_of(np.where(labeled, shuffled_folds(given.codes, count, seed), -1), count)


def _said(model: Any, table: Table) -> dict[str, Array]:
    """What a model says about rows: name -> array."""
    said = {"log_posterior": np.asarray(on_numpy(model.predict_log_proba(table)))}
    if hasattr(model, "score_samples"):
        said["log_density"] = np.asarray(on_numpy(model.score_samples(table)))
    return said


def _record(rows: LabeledTable, said: Mapping[str, Array], how: str) -> training_rows.HeldOut:
    return training_rows.HeldOut(codes=rows.codes, weight=rows.weight, rows=rows.rows, how=how, **said)


def _concatenated(parts: Sequence[LabeledTable]) -> LabeledTable:
    """Codes, weights and positions of all parts; the table is that of the first, of which only the size is used."""
    if not parts:
        raise ValueError("no row can be held out: every class needs two labeled rows at least")
    _, *arrays = zip(*parts, strict=True)
    return LabeledTable(parts[0].table, *map(np.concatenate, arrays))

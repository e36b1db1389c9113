"""Training rows that look mislabeled, by the posterior of models that were trained without them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from calibayes.analysis.explanation import Explanation, OrderSampling, explanation_of, sources_of
from calibayes.analysis.held_out import FOLDS, LabeledTable, cross_fitted, labeled_table
from calibayes.analysis.leave_one_out import leave_one_out
from calibayes.analysis.marginals import NEEDS_ALL_COLUMNS
from calibayes.core.notices import printable
from calibayes.core.protocols import Array
from calibayes.engines import computing
from calibayes.model.attributes import numpy_classes
from calibayes.model.decision import most_probable
from calibayes.model.parameters import whole_number
from calibayes.model.table_inputs import in_memory
from calibayes.model.training_rows import HeldOut
from calibayes.tables.read import index_of, with_index
from calibayes.tables.summary import content_hashes
from calibayes.tables.table import Table

REASONS = 20
"""Rows with reasons, by default."""
MOST_COLUMNS = 3
"""Columns named as reasons of a row."""
LEAST_SHARE = 0.1
"""Share of the largest contribution below which a column is not named."""


def label_issues(
    self: Any, X: Any, y: Any, sample_weight: Any = None, *, reasons: int | None = REASONS
) -> Any:
    """The training rows, those that look most mislabeled first.

    Every row is judged by a model that was trained without it: by exact leave-one-out where the model is a closed form of
    sums over rows, else by five folds.

    Parameters
    ----------
    X, y, sample_weight
        The training rows: those that the model was fitted to, or for a model that is not fitted those to fit it to. Every row
        needs a label.
    reasons : int or None, default=20
        Number of leading rows to give reasons for; None gives them for all rows, which takes longer.

    Returns
    -------
    pandas.DataFrame
        One line for each row, with the index of ``X`` if that is a pandas data frame, otherwise one of its own, and the columns

        ``row``: position in ``X``, from 0;
        ``label``: as given;
        ``suggested``: the most probable class under a model that was trained without the row;
        ``probability``: the probability of the label under this model;
        ``score``: the probability of the label divided by that of the most probable class, and also by twice the average
        probability of this label in the rows that have it, if that is below one half: the labels of a class that is rare
        or hard to tell from others are improbable even where they are right. It is at most 1. The lines are sorted by it,
        lowest first, and where it is 1 by the probability;
        ``issue``: whether ``suggested`` is another class, and at least as probable as this class is, on average, in the
        rows that are labeled with it (the threshold of confident learning: Northcutt, Jiang and Chuang 2021);
        ``gain``: by how much the mean held-out log loss of all rows would be lower without this row, given the same
        predictions for the others;
        ``reason``: the columns with the largest contributions to the log odds of ``suggested`` against ``label``, with
        these contributions, under the model of all rows; empty if the label is the most probable class.

        The only row of a class, and rows of weight 0, cannot be judged: they are last, with a missing score.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> y[3] = 2
    >>> issues = GaussianNB(rule="ml").fit(X, y).label_issues(X, y)
    >>> issues[["row", "label", "suggested", "issue"]].head(1).to_dict("records")
    [{'row': 3, 'label': 2, 'suggested': 0, 'issue': True}]
    """
    if reasons is not None:
        whole_number("reasons", reasons, 0)
    X, y, sample_weight = in_memory(X, y, sample_weight)
    model = _fitted(self, X, y, sample_weight)
    given = labeled_table(model, X, y, sample_weight, reset=True)
    missing = given.rows[given.codes < 0]
    if len(missing):
        raise ValueError(
            f"label_issues needs a label for each row, but {len(missing)} have none, the first is row {missing[0]}: "
            "leave them out"
        )
    frame, index = _frame(model, given, np.asarray(y), judged_record(model, given), reasons), index_of(X)
    return frame if index is None else with_index(frame, index[frame["row"]])


def _fitted(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """The model, or if it is not fitted a copy that is fitted to these rows."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return clone(model).fit(X, y, sample_weight)
    return model


def judged_record(model: Any, given: LabeledTable) -> HeldOut:
    """The record of all rows; their order in the folds depends on their content alone, not on their order in the table."""
    exact = leave_one_out(model, given)
    if exact is not None:
        return exact
    order = np.lexsort([given.weight, given.codes, content_hashes(given.table, 0)])
    return cross_fitted(model, given.only(order), FOLDS)


class Judged(NamedTuple):
    """What the held-out posterior says about the labels of rows, (m,) arrays."""

    probability: Array
    score: Array
    suggested: Array
    issue: Array
    gain: Array
    order: Array
    """Most suspicious first."""


def judged(record: HeldOut) -> Judged:
    """Scores of held-out rows."""
    codes, rows = record.codes, np.arange(len(record.codes))
    own, suggested = record.log_posterior[rows, codes], most_probable(record.log_posterior)
    best = record.log_posterior[rows, suggested]
    confidence = average_confidence(record)
    with np.errstate(divide="ignore"):
        log_score = np.minimum(own - best - np.log(np.minimum(2.0 * confidence, 1.0))[codes], 0.0)
    # Rows by their score, those of score 1 by their probability: two sorts of fewer rows are faster than one by both.
    low, high = np.flatnonzero(log_score < 0), np.flatnonzero(log_score == 0)
    return Judged(
        probability=np.exp(own),
        score=np.exp(log_score),
        suggested=suggested,
        issue=(suggested != codes) & (np.exp(best) >= confidence[suggested]),
        gain=_gain(own, record.weight),
        order=np.concatenate([low[np.argsort(log_score[low])], high[np.argsort(own[high])]]),
    )


def average_confidence(record: HeldOut) -> Array:
    """The average held-out probability of each class in the rows that are labeled with it, (k,); 1 without any rows."""
    k = record.log_posterior.shape[1]
    own = np.exp(record.log_posterior[np.arange(len(record.codes)), record.codes])
    weight = np.bincount(record.codes, record.weight, minlength=k)
    total = np.bincount(record.codes, own * record.weight, minlength=k)
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), 1.0)


def _gain(log_probability: Array, weight: Array) -> Array:
    """The mean log loss minus that of all other rows, (m,), from the log probabilities of the labels."""
    loss, total = -log_probability, weight.sum()
    left = np.where(total > weight, total - weight, 1.0)
    return np.asarray(weight / left * (loss - np.average(loss, weights=weight)))


def _frame(model: Any, given: LabeledTable, y: Array, record: HeldOut, reasons: int | None) -> Any:
    import pandas as pd

    found, classes = judged(record), numpy_classes(model)
    order = found.order
    first = order if reasons is None else order[:reasons]
    reason = np.full(len(order), "", dtype=object)
    rows, suggested, codes = (array[first] for array in (record.rows, found.suggested, record.codes))
    reason[: len(first)] = _reasons(model, given, rows, suggested, codes)
    columns = {
        "row": record.rows[order],
        "label": classes[record.codes[order]],
        "suggested": classes[found.suggested[order]],
        **{name: getattr(found, name)[order] for name in ("probability", "score", "issue", "gain")},
        "reason": pd.Series(reason, dtype=object, copy=False),
    }
    frame = pd.DataFrame(columns, copy=False)
    is_judged = np.zeros(len(y), dtype=bool)
    is_judged[record.rows] = True
    return frame if is_judged.all() else _with_rest(frame, y, np.flatnonzero(~is_judged))


def _with_rest(frame: Any, y: Array, rest: Array) -> Any:
    """The frame and the rows that could not be judged."""
    import pandas as pd

    values = {"probability": np.nan, "score": np.nan, "issue": False, "gain": np.nan, "reason": ""}
    others = pd.DataFrame({"row": rest, "label": y[rest], "suggested": y[rest], **values})
    return pd.concat([frame, others.astype(frame.dtypes)], ignore_index=True)


def _reasons(model: Any, given: LabeledTable, rows: Array, suggested: Array, codes: Array) -> list[str]:
    """Columns and their contributions to the log odds of the suggested class against the label."""
    texts, differs = [""] * len(rows), np.flatnonzero(suggested != codes)
    if not len(differs):
        return texts
    table = given.table.rows(np.searchsorted(given.rows, rows[differs]))
    explained = _explained(model, table, suggested[differs], codes[differs])
    if explained is not None:
        for place, named in zip(differs.tolist(), _columns_named(explained), strict=True):
            texts[place] = named
    return texts


def _explained(model: Any, table: Table, suggested: Array, codes: Array) -> Explanation | None:
    """The explanation of these rows; None for a model that cannot leave out columns."""
    with computing(getattr(model, "engine", None), model.n_jobs):
        try:
            marginals = model.marginals(table)
        except NEEDS_ALL_COLUMNS:
            return None
        explained = explanation_of(marginals, numpy_classes(model), suggested, codes, OrderSampling())
    return explained.by_source(sources_of(model))


def _columns_named(explained: Explanation) -> list[str]:
    """For each row the columns of the largest positive contributions, the class prior aside."""
    values = explained.contributions[:, 1:]
    largest = np.argsort(-values, axis=1, kind="stable")[:, :MOST_COLUMNS]
    chosen = np.take_along_axis(values, largest, axis=1)
    least = np.maximum(LEAST_SHARE * values.max(axis=1, initial=0.0), np.finfo(float).tiny)
    names = explained.names[1:]
    return [
        ", ".join(
            f"{printable(names[j])} ({value:+.2g})" for j, value in zip(*row, strict=True) if value >= limit
        )
        for *row, limit in zip(largest.tolist(), chosen.tolist(), least.tolist(), strict=True)
    ]

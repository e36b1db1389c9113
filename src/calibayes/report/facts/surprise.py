"""The rows of lowest density, and the cells that are least probable given the rest of their row."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from calibayes.core.protocols import Array
from calibayes.estimators.interface.splits import shuffled_folds
from calibayes.estimators.interface.trust.surprise import Surprise
from calibayes.report.facts.reasons import cell_text
from calibayes.report.facts.rows import LabeledRows
from calibayes.report.facts.values import SurpriseFacts, SurprisingRow

SHOWN = 8
CELLS = 3
"""Most cells that are shown for a row."""
SCORED = 60_000
"""Most cells that are scored: each takes one prediction of its row."""
COLUMNS = 60
"""Most columns of the density."""
FEWEST_SCORED = 20
"""Fewest rows for which densities are estimated."""
STRANGE = 0.05
"""Largest p-value of a cell that is shown besides the least probable one."""


def density_rows(rows: LabeledRows, columns: list[str], seed: int) -> LabeledRows:
    """These columns of a sample of the rows, small enough for one prediction for each cell."""
    most = max(SCORED // len(columns), 200)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(rows))[:most])
    part = rows.only(chosen)
    frame = part.frame[columns]
    return LabeledRows(frame, frame, part.labels, part.unlabeled, part.positions)


def halves_of(rows: LabeledRows, seed: int) -> Array:
    """0 or 1 for each row, (n,): stratified random halves; -1 for the only row of a class, which is not scored."""
    return shuffled_folds(np.unique(rows.labels.astype(str), return_inverse=True)[1], 2, seed)


def surprise_by_halves(estimator: Any, rows: LabeledRows, halves: Array, left_out: int) -> SurpriseFacts:
    """Surprise of each half of the rows under a density that was estimated from the other rows."""
    p_value = np.ones(len(rows))
    cells = np.full(rows.frame.shape, np.nan)
    for half in (0, 1):
        part = halves == half
        result = _surprise_of(estimator, rows, np.flatnonzero(~part), np.flatnonzero(part))
        p_value[part], cells[part] = result.p_value, result.column_p_value
    about = f"{type(estimator).__name__} trained by maximum likelihood on the other half of these rows"
    scored = np.flatnonzero(halves >= 0)
    columns = list(rows.frame.columns)
    return _facts(rows.only(scored), p_value[scored], cells[scored], columns, about, left_out)


def _surprise_of(estimator: Any, rows: LabeledRows, training: Array, new: Array) -> Surprise:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fits of the comparison give the same warnings
        model = clone(estimator).fit(rows.frame.iloc[training], rows.labels[training])
        result: Surprise = model.surprise(rows.frame.iloc[new])
    return result


def surprise_of_model(model: Any, rows: LabeledRows, seed: int = 0) -> SurpriseFacts:
    """Surprise of rows that a model was not trained on, compared with each other."""
    most = max(SCORED // rows.frame.shape[1], 200)
    part = rows.only(np.sort(np.random.default_rng(seed).permutation(len(rows))[:most]))
    result = model.with_held_out(part.given, part.labels).surprise(part.given)
    about = f"this {type(model).__name__}; p-values compare these rows with each other"
    columns = list(part.frame.columns)
    if len(result.columns) == len(columns):
        return _facts(part, result.p_value, result.column_p_value, columns, about, 0)
    none = np.full(part.frame.shape, np.nan)
    return _facts(part, result.p_value, none, columns, about, 0)


def _facts(
    rows: LabeledRows, p_value: Array, cells: Array, columns: list[str], about: str, left_out: int
) -> SurpriseFacts:
    smallest = np.where(np.isnan(cells), 1.0, cells).min(axis=1, initial=1.0)
    order = np.lexsort([smallest, p_value])[:SHOWN]
    shown = tuple(
        SurprisingRow(
            int(rows.positions[i]),
            str(rows.labels[i]),
            float(p_value[i]),
            _strangest(cells[i], columns, rows.frame, int(i)),
        )
        for i in order
    )
    return SurpriseFacts(shown, about, len(rows), float((p_value <= 0.01).mean()), left_out)


def _strangest(cells: Array, columns: list[str], frame: Any, row: int) -> tuple[tuple[str, str, float], ...]:
    """The cell of smallest p-value, and further cells with a small one."""
    order = [
        j
        for j in np.argsort(np.where(np.isnan(cells), np.inf, cells), kind="stable")
        if np.isfinite(cells[j])
    ]
    chosen = [j for place, j in enumerate(order[:CELLS]) if place == 0 or cells[j] <= STRANGE]
    return tuple((columns[j], cell_text(frame, row, columns[j]), float(cells[j])) for j in chosen)

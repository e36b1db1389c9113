"""The rows that are least probable, and the cells that make them so."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from calibayes.core.protocols import Array
from calibayes.estimators.interface.trust.surprise import Surprise
from calibayes.report.facts.reasons import cell_text
from calibayes.report.facts.rows import LabeledRows
from calibayes.report.facts.values import SurpriseFacts, SurprisingRow

SHOWN = 8
CELLS = 3
"""Strangest cells that are shown of a row."""
SCORED = 60_000
"""Most cells that are scored: each takes a prediction of its row."""
COLUMNS = 60
"""Columns of the density in a wide table."""
STRANGE = 0.05
"""Largest p-value of a cell that is called strange."""


def density_rows(rows: LabeledRows, columns: list[str], seed: int) -> LabeledRows:
    """The most informative columns of some rows: few enough for one prediction a cell."""
    most = max(SCORED // len(columns), 200)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(rows))[:most])
    part = rows.only(chosen)
    frame = part.frame[columns]
    return LabeledRows(frame, frame, part.labels, part.unlabeled, part.positions)


def surprise_by_halves(estimator: Any, rows: LabeledRows, left_out: int, seed: int = 0) -> SurpriseFacts:
    """Surprise of each half of the rows under a density of the other half, so that no row is judged by itself."""
    half = np.random.default_rng(seed).permutation(len(rows)) % 2 == 0
    p_value = np.ones(len(rows))
    cells = np.full(rows.frame.shape, np.nan)
    for part in (half, ~half):
        result = _surprise_of(estimator, rows, np.flatnonzero(~part), np.flatnonzero(part))
        p_value[part], cells[part] = result.p_value, result.column_p_value
    about = f"{type(estimator).__name__} trained by maximum likelihood on the other half of these rows"
    return _facts(rows, p_value, cells, list(rows.frame.columns), about, left_out)


def _surprise_of(estimator: Any, rows: LabeledRows, training: Array, new: Array) -> Surprise:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit to all rows gives them
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
            _strangest(cells[i], columns, rows.frame.iloc[i]),
        )
        for i in order
    )
    return SurpriseFacts(shown, about, len(rows), float((p_value <= 0.01).mean()), left_out)


def _strangest(cells: Array, columns: list[str], values: Any) -> tuple[tuple[str, str, float], ...]:
    """The cells of smallest p-value: the strangest one, and others that are strange."""
    order = [
        j
        for j in np.argsort(np.where(np.isnan(cells), np.inf, cells), kind="stable")
        if np.isfinite(cells[j])
    ]
    chosen = [j for place, j in enumerate(order[:CELLS]) if place == 0 or cells[j] <= STRANGE]
    return tuple((columns[j], cell_text(values, columns[j]), float(cells[j])) for j in chosen)

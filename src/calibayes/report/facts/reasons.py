"""Contributions of the columns to the predictions of a model: averaged over rows, and for single rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.decision import most_probable
from calibayes.estimators.interface.marginals import ColumnSum
from calibayes.estimators.interface.trust.held_out import HeldOut
from calibayes.report.facts.rows import LabeledRows
from calibayes.report.facts.values import Contribution, ReasonFacts, RowReasons
from calibayes.report.page.wording import shortened

ROWS = 200
"""Most rows whose contributions are averaged."""
COLUMNS = 120
"""Most dependent columns of a model for which Shapley values are sampled."""
LISTED = 8
"""Contributions that are listed for a row."""
PERMUTATIONS = 16


def why_not_explained(model: Any, rows: LabeledRows) -> str | None:
    """Why predictions of a model cannot be explained; None if they can.

    `marginals` of a model that needs all columns raises TypeError or ValueError.
    """
    name = type(model).__name__
    if not hasattr(model, "marginals"):
        return f"{name} has no method explain"
    try:
        marginals = model.marginals(rows.table_rows(np.arange(1)))
    except (TypeError, ValueError) as refused:
        return str(refused)
    dependent = max(
        (len(part.columns) for part in marginals.parts if not isinstance(part, ColumnSum)), default=0
    )
    if dependent > COLUMNS:
        return (
            f"{name} has {dependent} columns that depend on each other, and sampling Shapley values of more than {COLUMNS} such "
            "columns is slow; call model.explain(X) for a few rows"
        )
    return None


def reason_facts(
    model: Any, rows: LabeledRows, record: HeldOut, classes: Array, seed: int = 0
) -> ReasonFacts:
    """Mean contributions over a sample of the held-out rows, and the contributions in a few single rows."""
    order = np.random.default_rng(seed).permutation(len(record.rows))
    sample = np.sort(record.rows[order[:ROWS]])
    explained = model.explain(rows.table_rows(sample), permutations=PERMUTATIONS)
    overall = {name: size for name, size in explained.overall().items() if name != "class prior"}
    return ReasonFacts(overall, len(sample), explained.permutations, _singles(model, rows, record, classes))


def _singles(model: Any, rows: LabeledRows, record: HeldOut, classes: Array) -> tuple[RowReasons, ...]:
    chosen = chosen_rows(record, classes)
    places = [place for place, _ in chosen]
    explained = model.explain(rows.table_rows(record.rows[places]), permutations=PERMUTATIONS)
    made = []
    for number, (place, why) in enumerate(chosen):
        row, decided = int(record.rows[place]), int(np.argmax(record.log_posterior[place]))
        listed, rest = _contributions(explained.names, explained.contributions[number], rows.frame, row)
        made.append(
            RowReasons(
                row=int(rows.positions[row]),
                why_shown=why,
                label=str(classes[record.codes[place]]),
                decided=str(classes[decided]),
                probability=float(np.exp(record.log_posterior[place, decided])),
                chosen=str(explained.chosen[number]),
                other=str(explained.other[number]),
                log_odds=float(explained.log_odds[number]),
                contributions=listed,
                rest=rest,
            )
        )
    return tuple(made)


def chosen_rows(record: HeldOut, classes: Array) -> list[tuple[int, str]]:
    """Positions in the record, and why these rows are shown: typical rows, confident mistakes, one near the boundary."""
    decided = most_probable(record.log_posterior)
    own = record.log_posterior[np.arange(len(decided)), record.codes]
    is_right, best = decided == record.codes, record.log_posterior.max(axis=1)
    chosen: list[tuple[int, str]] = []
    sizes = np.bincount(record.codes, minlength=len(classes))
    for code in np.argsort(-sizes, kind="stable")[:2]:
        rows = np.flatnonzero((record.codes == code) & is_right)
        if len(rows):
            typical = rows[np.argsort(own[rows], kind="stable")[len(rows) // 2]]
            chosen.append((int(typical), f"typical row of class {shortened(classes[code], 30)}"))
    wrong = np.flatnonzero(~is_right)
    confident = wrong[np.argsort(-best[wrong], kind="stable")]
    chosen += [
        (int(row), f"{rank}most confident mistake")
        for row, rank in zip(confident, ("", "second "), strict=False)
    ]
    top = np.sort(record.log_posterior, axis=1)[:, -2:]
    for row in np.argsort(top[:, 1] - top[:, 0], kind="stable")[:3]:
        if int(row) not in [place for place, _ in chosen]:
            chosen.append((int(row), "closest to the boundary between two classes"))
            break
    return chosen


def _contributions(
    names: Sequence[str], contributions: Array, frame: Any, row: int
) -> tuple[tuple[Contribution, ...], float]:
    """The largest contributions with the values of their cells, and the sum of the others."""
    order = np.argsort(-np.abs(contributions), kind="stable")
    top = order[:LISTED]
    listed = tuple(
        Contribution(str(names[j]), cell_text(frame, row, str(names[j])), float(contributions[j]))
        for j in top
    )
    return listed, float(contributions[order[LISTED:]].sum())


def cell_text(frame: Any, row: int, name: str) -> str:
    """The value of a cell as text; empty if the name is not a column, such as the class prior."""
    import pandas as pd

    if name not in frame.columns:
        return ""
    value = frame[name].iloc[row]
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return "missing"
    return shortened(f"{value:.6g}" if isinstance(value, float) else value, 40)

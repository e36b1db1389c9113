"""Which columns a model decides by, over all rows and in single ones."""

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
"""Rows whose reasons are averaged."""
COLUMNS = 120
"""Columns of a model up to which Shapley values are sampled."""
LISTED = 8
"""Contributions that are listed for a row."""
PERMUTATIONS = 16


def why_not_explained(model: Any, rows: LabeledRows) -> str | None:
    """Why a model gives no reasons; None if it does.

    A model that cannot leave columns out refuses its `marginals` with TypeError or ValueError.
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
            f"{name} has {dependent} columns that depend on each other, and sampling the Shapley values of more than "
            f"{COLUMNS} takes long; call model.explain(X) for a few rows"
        )
    return None


def reason_facts(
    model: Any, rows: LabeledRows, record: HeldOut, classes: Array, seed: int = 0
) -> ReasonFacts:
    """Reasons of a sample of the held-out rows, and of a few of them one by one."""
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
        listed, rest = _contributions(explained.names, explained.contributions[number], rows.frame.iloc[row])
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
    """Places in the record, and why these rows are shown: typical ones, certain mistakes, one near the boundary."""
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
    for row in wrong[np.argsort(-best[wrong], kind="stable")][:2]:
        chosen.append((int(row), "most certain mistake" if len(chosen) < 3 else "next most certain mistake"))
    top = np.sort(record.log_posterior, axis=1)[:, -2:]
    for row in np.argsort(top[:, 1] - top[:, 0], kind="stable")[:3]:
        if int(row) not in [place for place, _ in chosen]:
            chosen.append((int(row), "closest to the boundary between classes"))
            break
    return chosen


def _contributions(
    names: Sequence[str], contributions: Array, cells: Any
) -> tuple[tuple[Contribution, ...], float]:
    """The largest contributions with the values of their cells, and the sum of the others."""
    order = np.argsort(-np.abs(contributions), kind="stable")
    top = order[:LISTED]
    listed = tuple(
        Contribution(str(names[j]), cell_text(cells, str(names[j])), float(contributions[j])) for j in top
    )
    return listed, float(contributions[order[LISTED:]].sum())


def cell_text(cells: Any, name: str) -> str:
    """The value of a cell; empty for what is no column, such as the class prior."""
    import pandas as pd

    if name not in cells.index:
        return ""
    value = cells[name]
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return "missing"
    return shortened(f"{value:.6g}" if isinstance(value, float) else value, 40)

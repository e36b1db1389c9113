"""Rows whose label looks wrong, by the posterior of models that were not trained on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.engines import computing
from calibayes.estimators.interface.explanation import explanation_of
from calibayes.estimators.interface.shapley import Sampling
from calibayes.estimators.interface.trust.held_out import HeldOut
from calibayes.estimators.interface.trust.label_issues import judged
from calibayes.report.facts.rows import LabeledRows
from calibayes.report.facts.values import LabelFacts, SuspectLabel
from calibayes.report.page.wording import shortened

SHOWN = 10
NAMED = 3
"""Most columns that are listed as reasons."""
LEAST_SHARE = 0.1
"""Columns whose contribution is below this share of the largest one are not listed."""


def label_facts(
    model: Any, rows: LabeledRows, record: HeldOut, classes: Array, *, has_reasons: bool
) -> LabelFacts:
    """The most suspicious labels of the held-out rows."""
    found = judged(record)
    first = [place for place in found.order[:SHOWN] if found.suggested[place] != record.codes[place]]
    reasons = (
        _reasons(model, rows, record, np.array(first), found.suggested[first])
        if has_reasons and first
        else [""] * len(first)
    )
    shown = tuple(
        SuspectLabel(
            int(rows.positions[record.rows[place]]),
            str(classes[record.codes[place]]),
            str(classes[found.suggested[place]]),
            float(found.probability[place]),
            float(found.score[place]),
            reason,
        )
        for place, reason in zip(first, reasons, strict=True)
    )
    return LabelFacts(shown, int(found.issue.sum()), len(record.codes))


def _reasons(model: Any, rows: LabeledRows, record: HeldOut, places: Array, suggested: Array) -> list[str]:
    """Columns with the largest contributions to the log odds of the suggested class against the label."""
    with computing(getattr(model, "engine", None), model.n_jobs):
        explained = explanation_of(
            model.marginals(rows.table_rows(record.rows[places])),
            np.asarray(model.classes_),
            suggested,
            record.codes[places],
            Sampling(),
        )
    sources = getattr(getattr(model, "conversion_", None), "sources", None)
    explained = explained.by_source(sources) if sources else explained
    return [_named(explained.names, row) for row in explained.contributions]


def _named(names: tuple[str, ...], contributions: Array) -> str:
    values = contributions[1:]
    largest = np.argsort(-values, kind="stable")[:NAMED]
    least = max(LEAST_SHARE * values.max(initial=0.0), np.finfo(float).tiny)
    return ", ".join(
        f"{shortened(names[1 + j], 40)} ({values[j]:+.2g})" for j in largest if values[j] >= least
    )

"""Compute the facts of a report in stages; what cannot be shown is recorded with the reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from calibayes.checks import Findings
from calibayes.checks.run import known_codes, run_on
from calibayes.checks.subject import subject_of
from calibayes.compare import FoldResult
from calibayes.core.protocols import Array
from calibayes.model.decision import checked_costs
from calibayes.model.remembered import HeldOut
from calibayes.report.python_code import NotExpressible, code_of
from calibayes.report.quality_facts import quality_facts
from calibayes.report.reason_facts import label_facts, reason_facts, why_not_explained
from calibayes.report.row_facts import LabeledRows
from calibayes.report.values import Skipped

Progress = Callable[[str, float], None]

STAGES = {
    "reading the table": 0.02,
    "comparing models": 0.6,
    "training the best model on all rows": 0.8,
    "predicting held-out rows": 0.84,
    "explaining decisions": 0.88,
    "looking for wrong labels": 0.89,
    "computing learning curves": 0.92,
    "looking for surprising rows": 0.96,
    "running checks": 0.99,
    "writing the page": 1.0,
}
"""Stage -> approximate share of the work that is done at its end."""


class Stages:
    """Reports progress and measures the time of the stages; collects what was skipped."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self.seconds: dict[str, float] = {}
        self.skipped: list[Skipped] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Report the beginning of a stage and measure its time."""
        self.report(name, 0.0)
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = time.perf_counter() - begin

    def report(self, name: str, share: float, text: str | None = None) -> None:
        """Report how much of a stage is done."""
        if self._progress is None:
            return
        ends = [0.0, *STAGES.values()]
        place = list(STAGES).index(name)
        self._progress(text or name, ends[place] + share * (ends[place + 1] - ends[place]))

    def skip(self, what: str, why: str) -> None:
        """Record something that the report does not show, and the reason."""
        self.skipped.append(Skipped(what, why))


def refuse_early(ignore: Sequence[str], costs: Array | None, k: int) -> None:
    """Raise ValueError for unknown checks and for costs that do not match the number of classes, before any long work."""
    known_codes(ignore)
    if costs is not None:
        checked_costs(costs, k)


def predicted_facts(
    model: Any,
    rows: LabeledRows,
    record: HeldOut | None,
    costs: Array | None,
    stages: Stages,
) -> dict[str, Any]:
    """Quality, reasons and suspicious labels, from the predictions for held-out rows."""
    if record is None:
        why = f"{type(model).__name__} predicts no probabilities (it has no method predict_proba)"
        for what in ("Quality on held-out rows", "Reasons for predictions", "Labels that look wrong"):
            stages.skip(what, why)
        return {}
    with stages.stage("predicting held-out rows"):
        made: dict[str, Any] = {"quality": quality_facts(record, model.classes_, costs)}
    refused = why_not_explained(model, rows)
    with stages.stage("explaining decisions"):
        if refused:
            stages.skip("Reasons for predictions", refused)
        else:
            made["reasons"] = reason_facts(model, rows, record, model.classes_)
    with stages.stage("looking for wrong labels"):
        made["labels"] = label_facts(model, rows, record, model.classes_, has_reasons=refused is None)
    return made


def python_facts(model: Any, source: str | None, stages: Stages) -> str | None:
    """Python code that creates the model; None if a parameter cannot be written as code."""
    try:
        return code_of(model, source)
    except NotExpressible as refused:
        stages.skip("Python code for this model", str(refused))
        return None


# -- The numbered checks of `calibayes.checks` ---------------------------------------------------------------


def findings_of(
    rows: LabeledRows,
    model: Any,
    record: HeldOut | None,
    ignore: Sequence[str],
    stages: Stages,
    results: Sequence[FoldResult] | None = None,
    compared_rows: int | None = None,
) -> Findings:
    """Findings about the rows, the held-out predictions of a model, and the results of a comparison on some of the rows."""
    silenced = known_codes(ignore)
    with stages.stage("running checks"):
        subject = subject_of(
            rows.frame,
            rows.labels,
            model if record is not None else None,
            results,
            held_out=record,
            compared_rows=compared_rows,
        )
        return run_on(subject, silenced)

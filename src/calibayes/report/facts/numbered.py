"""The numbered checks of `calibayes.checks`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibayes.checks import Findings
from calibayes.checks.run import known_codes, run_on
from calibayes.checks.subject import subject_of
from calibayes.compare.cross_validation import FoldResult
from calibayes.estimators.interface.trust.held_out import HeldOut
from calibayes.report.facts.gather import Stages
from calibayes.report.facts.rows import LabeledRows


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

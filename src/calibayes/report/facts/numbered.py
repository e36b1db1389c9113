"""The numbered checks of `calibayes.checks`."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from calibayes.checks import Findings, run_checks
from calibayes.compare.cross_validation import FoldResult
from calibayes.estimators.interface.trust.held_out import HeldOut
from calibayes.report.facts.gather import Stages
from calibayes.report.facts.rows import LabeledRows


def findings_of(
    rows: LabeledRows,
    model: Any,
    record: HeldOut | None,
    results: Sequence[FoldResult] | None,
    ignore: Sequence[str],
    stages: Stages,
) -> Findings:
    """What the checks find in the rows, in the record of held-out rows of a model, and in the results of a comparison."""
    examined = None
    if record is not None:
        examined = copy.copy(model)
        examined.held_out_ = record
    with stages.stage("checking"):
        return run_checks(rows.frame, rows.labels, examined, results, ignore)

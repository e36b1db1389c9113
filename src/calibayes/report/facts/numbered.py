"""The numbered checks."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from calibayes.report.facts.gather import Stages
from calibayes.report.facts.rows import LabeledRows


def findings_of(
    rows: LabeledRows, model: Any, results: Any, ignore: Sequence[str], stages: Stages
) -> Any:
    """What `calibayes.checks.run_checks` finds."""
    return None

"""Numbered checks of a labeled table, a fitted model and a comparison of models; each finding comes with its evidence.

Examples
--------
>>> import pandas as pd
>>> table = pd.DataFrame({"patient": [f"p{i}" for i in range(40)], "age": [20 + i % 7 for i in range(40)]})
>>> findings = run_checks(table, ["well", "ill"] * 20)
>>> isinstance(findings, Findings), isinstance(findings.found[0], Finding), findings.found[0].code
(True, True, 'CB004')
>>> all(isinstance(check, Check) for check in CHECKS)  # each returns an Evidence or None, or raises NotChecked
True
"""

from calibayes.checks.check import Check, Evidence, Finding, Findings, NotChecked
from calibayes.checks.run import CHECKS, run_checks

__all__ = ["CHECKS", "Check", "Evidence", "Finding", "Findings", "NotChecked", "run_checks"]

"""Numbered checks of a labeled table, a fitted model and a comparison, each with its evidence."""

from calibayes.checks.check import Check, Evidence, NotChecked
from calibayes.checks.findings import Finding, Findings
from calibayes.checks.registry import CHECKS
from calibayes.checks.run import run_checks

__all__ = ["CHECKS", "Check", "Evidence", "Finding", "Findings", "NotChecked", "run_checks"]

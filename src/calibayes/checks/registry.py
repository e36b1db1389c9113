"""All checks, in the order of their codes. A new check is a module with a `CHECK`, and a line here."""

from __future__ import annotations

from calibayes.checks import class_in_one_column, identifiers
from calibayes.checks.check import Check

CHECKS: tuple[Check, ...] = (
    class_in_one_column.CHECK,
    identifiers.CHECK,
)

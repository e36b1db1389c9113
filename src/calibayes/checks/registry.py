"""All checks, in the order of their codes. A new check is a module with a `Check`, and a line here."""

from __future__ import annotations

from calibayes.checks import (
    calibration_gain,
    class_in_one_column,
    constant_columns,
    equal_columns,
    equal_rows,
    held_out_probabilities,
    identifiers,
    missing_cells,
    missing_codes,
    no_gain,
    numbers_as_text,
    overfitting,
    rare_classes,
    rare_levels,
    row_order,
)
from calibayes.checks.check import Check

CHECKS: tuple[Check, ...] = (
    overfitting.CHECK,
    calibration_gain.CHECK,
    class_in_one_column.CHECK,
    identifiers.CHECK,
    equal_rows.ACROSS,
    row_order.CHECK,
    equal_rows.WITHIN,
    constant_columns.CHECK,
    rare_classes.CHECK,
    missing_cells.MOSTLY_MISSING,
    missing_cells.INFORMATIVE_GAPS,
    held_out_probabilities.CHECK,
    no_gain.CHECK,
    equal_columns.CHECK,
    rare_levels.CHECK,
    missing_codes.CHECK,
    numbers_as_text.CHECK,
)

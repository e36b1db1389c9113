"""All checks, in the order of their codes. To add one, write a module with a `Check` in `model_checks` or `table_checks` and list it here."""

from __future__ import annotations

from calibayes.checks.check import Check
from calibayes.checks.model_checks import calibration_gain, held_out_probabilities, no_gain, overfitting
from calibayes.checks.table_checks import (
    class_in_one_column,
    constant_columns,
    equal_columns,
    equal_rows,
    identifiers,
    missing_cells,
    missing_codes,
    numbers_as_text,
    rare_classes,
    rare_levels,
    row_order,
)

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

"""Run the checks on a table, a fitted model and the results of a comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from calibayes.checks import column_checks, model_checks, row_checks
from calibayes.checks.check import Check, Finding, Findings, NotChecked
from calibayes.checks.subject import Subject, subject_of
from calibayes.compare import FoldResult

# All checks, in the order of their codes. To add one, write a `Check` in `column_checks`, `row_checks` or `model_checks`, and
# list it here.

CHECKS: tuple[Check, ...] = (
    model_checks.OVERFITTING,
    model_checks.CALIBRATION_GAIN,
    column_checks.CLASS_IN_ONE_COLUMN,
    column_checks.IDENTIFIERS,
    row_checks.ACROSS,
    row_checks.ROW_ORDER,
    row_checks.WITHIN,
    column_checks.CONSTANT_COLUMNS,
    row_checks.RARE_CLASSES,
    column_checks.MOSTLY_MISSING,
    column_checks.INFORMATIVE_GAPS,
    model_checks.HELD_OUT_PROBABILITIES,
    model_checks.NO_GAIN,
    column_checks.EQUAL_COLUMNS,
    column_checks.RARE_LEVELS,
    column_checks.MISSING_CODES,
    column_checks.NUMBERS_AS_TEXT,
)


# -- Run the checks on a table, a fitted model and the results of a comparison -------------------------------


def run_checks(
    X: Any,
    y: Any,
    model: Any = None,
    results: Sequence[FoldResult] | None = None,
    ignore: Iterable[str] = (),
) -> Findings:
    """Look for problems of a labeled table, a fitted model and a comparison of models.

    Parameters
    ----------
    X : data frame or array of shape (n, d)
    y : (n,) labels
        Rows without a label are ignored.
    model : fitted classifier, optional
        Checks of a model use its predictions for rows that it was not trained on (``held_out_``), which all classifiers of
        this package have.
    results : list of `calibayes.compare.FoldResult`, optional
        Results of `calibayes.compare.compare` on this table.
    ignore : codes, optional
        Checks that are not run, such as ``("CB004",)``.

    Returns
    -------
    Findings

    Raises
    ------
    ValueError
        If X and y have different lengths, y has only one class, or ``ignore`` contains an unknown code.
    NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> import pandas as pd
    >>> from calibayes.checks import run_checks
    >>> table = pd.DataFrame({"patient": [f"p{i}" for i in range(40)], "age": [20 + i % 7 for i in range(40)]})
    >>> findings = run_checks(table, ["well", "ill"] * 20)
    >>> [(finding.code, finding.columns) for finding in findings.found]
    [('CB004', ('patient',))]
    """
    silenced = known_codes(ignore)
    if model is not None:
        check_is_fitted(model)
    return run_on(subject_of(X, y, model, results), silenced)


def run_on(subject: Subject, silenced: Collection[str]) -> Findings:
    """Run all checks but the silenced ones."""
    found: list[Finding] = []
    passed: list[str] = []
    skipped: dict[str, str] = {}
    for check in CHECKS:
        if check.code in silenced:
            continue
        try:
            if finding := check.finding(subject):
                found.append(finding)
            else:
                passed.append(check.code)
        except NotChecked as why:
            skipped[check.code] = str(why)
    return Findings(tuple(found), tuple(passed), skipped, tuple(silenced), subject.scope)


def known_codes(ignore: Iterable[str]) -> tuple[str, ...]:
    """The codes, each once and in the order of the checks. Raises ValueError if one is unknown."""
    given = [ignore] if isinstance(ignore, str) else list(ignore)
    codes = [check.code for check in CHECKS]
    for code in given:
        if code not in codes:
            raise ValueError(
                f"ignore contains the unknown code {code!r}: the codes are {codes[0]} to {codes[-1]}"
            )
    return tuple(code for code in codes if code in given)

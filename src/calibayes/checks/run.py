"""Run the checks on a table, a fitted model and the results of a comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from calibayes.checks import column_checks, model_checks, row_checks
from calibayes.checks.check import Check, Finding, Findings, NotChecked
from calibayes.checks.subject import MODEL, RESULTS, Subject, subject_of
from calibayes.compare import FoldResult

# All checks, in the order of their codes. To add one, write a function in `column_checks`, `row_checks` or `model_checks`, and
# list it here.

CHECKS: tuple[Check, ...] = (
    Check("CB001", "the model over-fits", model_checks.find_overfitting, (MODEL, RESULTS)),
    Check("CB002", "calibration did not help", model_checks.find_calibration_gain, (RESULTS,)),
    Check("CB003", "a column alone gives the class away", column_checks.find_class_in_one_column),
    Check("CB004", "identifier column", column_checks.find_identifiers),
    Check("CB005", "equal rows in different classes", row_checks.look_across_classes),
    Check("CB006", "rows are not in random order", row_checks.find_row_order),
    Check("CB007", "repeated rows", row_checks.look_within_classes),
    Check("CB008", "constant columns", column_checks.find_constant_columns),
    Check("CB009", "rare classes", row_checks.find_rare_classes),
    Check("CB010", "columns mostly missing", column_checks.look_for_mostly_missing),
    Check("CB011", "missing cells depend on the class", column_checks.look_for_informative_gaps),
    Check("CB012", "probabilities are not calibrated", model_checks.find_held_out_probabilities, (MODEL,)),
    Check("CB013", "no better than the most frequent class", model_checks.find_no_gain, (MODEL, RESULTS)),
    Check("CB014", "equal columns", column_checks.find_equal_columns),
    Check("CB015", "levels unseen in training", column_checks.find_rare_levels),
    Check("CB016", "numbers that stand for missing values", column_checks.find_missing_codes),
    Check("CB017", "numbers stored as text", column_checks.find_numbers_as_text),
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
    if unknown := [code for code in given if code not in codes]:
        known = f"the codes are {codes[0]} to {codes[-1]}"
        raise ValueError(f"ignore contains the unknown code {unknown[0]!r}: {known}")
    return tuple(code for code in codes if code in given)

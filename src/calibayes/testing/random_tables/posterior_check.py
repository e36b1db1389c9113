"""The property of all classifiers: on any table, a valid posterior or an error that says what is wrong."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from calibayes.core.protocols import Array
from calibayes.testing.random_tables.labeled_table import LabeledTable

Result = TypeVar("Result")


def assert_posterior_or_clear_error(classifier: Any, table: LabeledTable) -> bool:
    """Fit a classifier and predict training rows and new rows; returns whether the training rows were accepted.

    Raises AssertionError if a posterior is not finite, not between 0 and 1 or does not sum to 1, if its shape is not
    (n, k), if classes are not in order, or if a call ends in an error that no code raised on purpose: an error of any
    other class than ValueError and TypeError, or one that a function of NumPy, SciPy or the native kernels raised.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from calibayes.testing import LabeledTable
    >>> table = LabeledTable([[1.0], [2.0], [5.0], [6.0]], ["a", "a", "b", "b"], [[1.5]])
    >>> assert_posterior_or_clear_error(GaussianNB(), table)
    True
    """
    if _result_or_clear_error(lambda: classifier.fit(table.training, table.labels)) is None:
        return False
    assert_array_equal(classifier.classes_, table.classes)
    for rows in (table.training, table.new):
        _check_rows(classifier, rows)
    return True


def _check_rows(classifier: Any, rows: Any) -> None:
    posterior = _result_or_clear_error(lambda: classifier.predict_proba(rows))
    if posterior is None:
        return
    _check_posterior(posterior, (len(rows), len(classifier.classes_)))
    predicted = classifier.predict(rows)
    assert np.isin(predicted, classifier.classes_).all(), (
        f"predictions are not among the classes: {predicted}"
    )


def _check_posterior(posterior: Array, shape: tuple[int, int]) -> None:
    assert posterior.shape == shape, f"posterior of shape {posterior.shape}, expected {shape}"
    assert np.isfinite(posterior).all(), f"posterior that is not finite: {posterior}"
    assert (posterior >= 0).all(), f"negative posterior: {posterior}"
    tolerance = 1e-6 if posterior.dtype == np.float64 else 1e-4
    assert_allclose(posterior.sum(axis=1), 1.0, atol=tolerance)


def _result_or_clear_error(call: Callable[[], Result]) -> Result | None:
    """The result of a call, None if it raised an error that says what is wrong."""
    try:
        return call()
    except Exception as error:
        if not is_clear(error):
            raise AssertionError(f"not a clear error: {type(error).__name__}: {error}") from error
        return None


def is_clear(error: Exception) -> bool:
    """Whether an error is a ValueError or a TypeError with a message, raised by a statement of Python code on purpose.

    Errors that functions of NumPy, LAPACK or the native kernels raise come from a line that is no ``raise`` statement.
    """
    return (
        type(error) in (ValueError, TypeError)
        and bool(str(error).strip())
        and _was_raised(error.__traceback__)
    )


def _was_raised(traceback: TracebackType | None) -> bool:
    """Whether the innermost line of a traceback is a ``raise`` statement outside of NumPy and SciPy."""
    assert traceback is not None
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    module = traceback.tb_frame.f_globals.get("__name__", "").partition(".")[0]
    line = linecache.getline(traceback.tb_frame.f_code.co_filename, traceback.tb_lineno)
    return line.lstrip().startswith("raise") and module not in ("numpy", "scipy")

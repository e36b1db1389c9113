"""Warnings are given once, at the line of the caller, and name what to do."""

import re
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibayes as cb
from calibayes.core.notices import collected_warnings, warn
from tests.contract.tables import table

STILL_RISING = r"still rising after 1 updates\. Increase max_iter .* or set stop=None"


@contextmanager
def recorded():
    """All warnings, also repeated ones."""
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        yield record


def assert_given_here(record, category, match, line):
    """One warning, attributed to the given line of this file."""
    assert [warning.category for warning in record] == [category]
    assert record[0].filename == __file__
    assert record[0].lineno == line
    assert re.search(match, str(record[0].message))


def line_of(text):
    """The number of the only line of this file that ends with a marker."""
    with open(__file__, encoding="utf-8") as lines:
        (number,) = [i for i, line in enumerate(lines, 1) if line.rstrip().endswith(f"# line: {text}")]
    return number


def test_a_fit_that_ends_too_early():
    X, y = table()
    with recorded() as record:
        cb.GaussianNB(max_iter=1).fit(X, y)  # line: early
    assert_given_here(record, ConvergenceWarning, STILL_RISING, line_of("early"))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_partial_fit_and_validation_warn_at_most_once_for_each_problem(n_jobs):
    X, y = table()
    with recorded() as record:
        cb.GaussianNB(max_iter=1, n_jobs=n_jobs, training=cb.TrainingOptions(validation_fraction=0.3)).fit(
            X, y
        )
        cb.GaussianNB(max_iter=1, n_jobs=n_jobs).partial_fit(X, y, classes=["x", "y", "z"])
    assert len(record) <= 1
    assert all(warning.filename == __file__ for warning in record)


def test_a_pipeline_and_cross_validation_warn_at_the_callers_line():
    X, y = table()
    pipeline = make_pipeline(StandardScaler(), cb.GaussianNB(max_iter=1))
    with recorded() as record:
        pipeline.fit(X, y)  # line: pipeline
    assert_given_here(record, ConvergenceWarning, STILL_RISING, line_of("pipeline"))
    with recorded() as record:
        cross_val_score(cb.GaussianNB(max_iter=1), X, y, cv=3)
    assert {(warning.category, warning.filename) for warning in record} == {(ConvergenceWarning, __file__)}


def test_folds_of_a_trade_off_warn_together():
    X, y = table()
    with recorded() as record:
        cb.TradeOffCV(cb.GaussianNB(max_iter=1)).fit(X, y)
    assert 1 <= len(record) <= 2
    assert {(warning.category, warning.filename) for warning in record} == {(ConvergenceWarning, __file__)}
    assert any("times)" in str(warning.message) for warning in record)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_singular_covariance(n_jobs):
    X, y = table()
    X[y == "x", 0] = 3.0
    model = cb.QuadraticDiscriminantAnalysis(rule="ml", n_jobs=n_jobs)
    with recorded() as record:
        model.fit(X, y)  # line: singular
    message = "class 'x': the covariance is singular .* To avoid this, give a prior"
    assert_given_here(record, cb.SingularCovarianceWarning, message, line_of("singular"))


def test_a_class_with_fewer_rows_than_components():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0], [4.0, 5.0], [9.0, 9.0]])
    model = cb.MixtureDiscriminantAnalysis(n_components=2, rule="ml", covariance="spherical")
    with recorded() as record:
        model.fit(X, [0, 0, 0, 0, 0, 1])  # line: few
    few = [warning for warning in record if warning.category is cb.FewRowsWarning]
    message = "fewer distinct rows than components in class number 1 .*one component for each distinct row"
    assert_given_here(few, cb.FewRowsWarning, message, line_of("few"))
    assert all(warning.filename == __file__ for warning in record)


def test_a_member_that_is_left_out():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    model = cb.BayesClassifier(time_limit=0.0, random_state=0)
    with recorded() as record:
        model.fit(X, y)  # line: skipped
    skipped = [warning for warning in record if warning.category is cb.SkippedMemberWarning]
    assert len(skipped) == len(model.skipped_) > 0
    messages = {f"member {name!r} is left out: {reason}" for name, reason in model.skipped_.items()}
    assert {str(warning.message) for warning in skipped} == messages
    assert {(warning.filename, warning.lineno) for warning in record} == {(__file__, line_of("skipped"))}


def test_a_fit_that_fails_gives_its_exception_alone():
    X, y = table()

    def fail(progress):
        raise RuntimeError("no further")

    X[y == "x", 0] = 3.0
    model = cb.QuadraticDiscriminantAnalysis(training=cb.TrainingOptions(callbacks=[fail]))
    with recorded() as record, pytest.raises(RuntimeError, match="no further"):
        model.fit(X, y)
    assert record == []


def test_collected_warnings_are_counted():
    with recorded() as record:
        with collected_warnings():
            for _ in range(3):
                warn("repeated", ConvergenceWarning)
            with collected_warnings():
                warn("inside")
        warn("outside", ConvergenceWarning)
    messages = [(str(warning.message), warning.category) for warning in record]
    assert messages == [
        ("repeated (3 times)", ConvergenceWarning),
        ("inside", UserWarning),
        ("outside", ConvergenceWarning),
    ]
    assert {warning.filename for warning in record} == {__file__}

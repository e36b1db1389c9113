"""Closed forms leave out every row exactly: equal to a fit without the row."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from calibayes import (
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    GenerativeClassifier,
    GenerativeLogisticRegression,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    NaiveBayes,
    PoissonNB,
    QuadraticDiscriminantAnalysis,
    TrainingOptions,
)
from calibayes.analysis.held_out import labeled_table, refitted
from calibayes.analysis.leave_one_out import leave_one_out
from calibayes.families import Dirichlet, Gamma

N = 24
RNG = np.random.default_rng(5)
Y = np.concatenate([RNG.integers(0, 3, N - 1), [3]])
"""Class 3 has one row."""
NUMBERS = RNG.normal(size=(N, 3)) + 0.7 * Y[:, None]
GAPS = np.where((RNG.random((N, 3)) < 0.1) & (Y < 3)[:, None], np.nan, NUMBERS)
UNKNOWN = np.where((Y == 2)[:, None] & [True, False, False], np.nan, NUMBERS)
"""Class 2 has no known value in the first column."""
CHECKED = range(3, 10)
"""Rows that are compared: among them those with something special."""
INTEGERS = RNG.integers(0, 5, (N, 4))
INTEGERS[3, 1], INTEGERS[4, 2] = 9, 6
TEXT = INTEGERS.astype(str).astype(object)
TEXT[5, 0], TEXT[6, 3] = "rare", None
FLAGS = (NUMBERS > 0).astype(float)
EVENTS = RNG.poisson(2.0, (N, 5)).astype(float)
FLAT = np.where(np.arange(N)[:, None] == 7, 5.0, NUMBERS * [1.0, 1.0, 0.0])
"""Without row 7 its class has no variance in the last column."""
CONSTANT = np.column_stack(
    [NUMBERS * [1.0, 1.0, 0.0] + 3.0 * (Y == 1)[:, None], np.where(Y == 2, 0.5, GAPS[:, 0])]
)
"""Columns without variance within some classes, the third one in all of them."""
MIXED = pd.DataFrame(GAPS, columns=list("abc")).assign(level=TEXT[:, 0], other=TEXT[:, 1])
DATED = MIXED.assign(day=pd.date_range("2026-01-01", periods=N))
WEIGHTS = {
    "equal": None,
    "two": np.where(np.arange(N) % 3, 1.0, 2.5),
    "distinct": RNG.uniform(0.5, 2.0, N),
}
CASES = {
    "gaussian": (GaussianNB(rule="ml"), NUMBERS),
    "gaussian, missing values": (GaussianNB(rule="ml"), GAPS),
    "gaussian, much smoothing": (GaussianNB(rule="ml", var_smoothing=0.1), GAPS),
    "gaussian, no smoothing": (GaussianNB(rule="ml", var_smoothing=0.0), NUMBERS[:-1]),
    "gaussian, fixed priors": (GaussianNB(rule="ml", priors=[0.2, 0.3, 0.4, 0.1]), NUMBERS),
    "gaussian, constant without a row": (GaussianNB(rule="ml"), FLAT),
    "gaussian, constant in classes": (GaussianNB(rule="ml"), CONSTANT[:, :3]),
    "gaussian, constant in classes, missing values": (GaussianNB(rule="ml"), CONSTANT),
    "gaussian, far from 0": (GaussianNB(rule="ml"), NUMBERS + 1e6),
    "tied variances": (GenerativeLogisticRegression(rule="ml"), NUMBERS),
    "tied variances, missing values": (GenerativeLogisticRegression(rule="ml"), GAPS),
    "covariances": (QuadraticDiscriminantAnalysis(rule="ml"), NUMBERS[:-1]),
    "tied covariance": (LinearDiscriminantAnalysis(rule="ml"), NUMBERS),
    "tempered": (GaussianNB(rule="ml", training=TrainingOptions(temperature=3.0)), NUMBERS),
    "class weights": (GaussianNB(rule="ml", class_weight={0: 2.0, 1: 0.5, 2: 1.0, 3: 1.0}), NUMBERS),
    "levels": (CategoricalNB(rule="ml"), TEXT),
    "levels, integers": (CategoricalNB(rule="ml"), INTEGERS),
    "levels, at least 12": (CategoricalNB(rule="ml", min_categories=12), INTEGERS),
    "levels, no smoothing": (CategoricalNB(rule="ml", alpha=0.0), TEXT),
    "levels, Dirichlet": (CategoricalNB(rule="ml", prior=Dirichlet(3.0)), TEXT),
    "levels, map": (CategoricalNB(rule="map"), TEXT),
    "flags": (BernoulliNB(rule="ml"), FLAGS),
    "flags, no smoothing": (BernoulliNB(rule="ml", alpha=0.0), FLAGS),
    "flags, sparse": (BernoulliNB(rule="ml"), sparse.csr_array(FLAGS)),
    "events": (MultinomialNB(rule="ml"), EVENTS),
    "events, no smoothing": (MultinomialNB(rule="ml", alpha=0.0), EVENTS),
    "events, sparse": (MultinomialNB(rule="ml"), sparse.csr_array(EVENTS)),
    "flags, map": (BernoulliNB(rule="map"), FLAGS),
    "rates, map": (PoissonNB(rule="map", alpha=0.0), EVENTS),
    "mixed": (GenerativeClassifier(rule="ml"), MIXED[:-1]),
    "rates": (PoissonNB(rule="ml"), EVENTS),
    "rates, no smoothing": (PoissonNB(rule="ml", alpha=0.0), EVENTS),
    "rates, Gamma": (PoissonNB(rule="ml", prior=Gamma(2.0, 0.5)), sparse.csr_array(EVENTS)),
}


def record_of(model, X, y, weight=None):
    fitted = model.fit(X, y, weight)
    given = labeled_table(fitted, X, y, weight, reset=True)
    return fitted, given, leave_one_out(fitted, given)


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        *((name, "equal") for name in CASES),
        *((name, "distinct") for name in CASES if "," not in name),
        *((name, "two") for name in CASES if name.startswith(("levels", "flags"))),
    ],
)
@pytest.mark.filterwarnings("ignore::calibayes.families.gaussian.SingularCovarianceWarning")
def test_equal_to_a_fit_without_the_row(name, weights):
    model, X = CASES[name]
    y, weight = Y[: X.shape[0]], WEIGHTS[weights]
    weight = None if weight is None else weight[: len(y)]
    fitted, given, record = record_of(model, X, y, weight)
    assert record.how == "each row left out exactly"
    assert record.rows.tolist() == [i for i in range(len(y)) if y[i] < 3]
    assert record.codes.tolist() == y[record.rows].tolist()
    assert np.array_equal(record.weight, given.weight[record.rows])
    for row in CHECKED:
        i = record.rows.tolist().index(row)
        mask = np.arange(len(y)) == row
        without, table = refitted(fitted, given.only(~mask)), given.only(mask).table
        np.testing.assert_allclose(
            record.log_posterior[i], without.predict_log_proba(table)[0], rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(
            record.log_density[i], without.score_samples(table)[0], rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("name", ["levels", "levels, integers", "levels, at least 12"])
def test_no_parameters_are_computed_for_a_single_row(name, monkeypatch):
    """Levels that occur once are left out with all others at once."""

    def refuse(*_):
        raise AssertionError("the parameters are computed again")

    monkeypatch.setattr("calibayes.analysis.leave_one_out._refitted_joint", refuse)
    model, X = CASES[name]
    assert len(record_of(model, X, Y)[2].rows) == N - 1


def test_many_blocks_are_one(monkeypatch):
    X, y = np.repeat(NUMBERS, 40, axis=0), np.repeat(Y, 40)
    whole = record_of(GaussianNB(rule="ml"), X, y)[2]
    monkeypatch.setattr("calibayes.tables.row_blocks.BYTES_PER_BLOCK", 2**12)
    parts = record_of(GaussianNB(rule="ml"), X, y)[2]
    np.testing.assert_allclose(parts.log_posterior, whole.log_posterior, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "X"),
    [
        (GaussianNB(), NUMBERS),
        (GaussianNB(rule="map"), NUMBERS),
        (GaussianNB(rule="ml", class_weight="balanced"), NUMBERS),
        (GaussianNB(rule="ml", training=TrainingOptions(validation_fraction=0.3)), NUMBERS),
        (QuadraticDiscriminantAnalysis(rule="ml", reg_param=0.1), NUMBERS[:-1]),
        (LinearDiscriminantAnalysis(rule="ml", solver="lsqr", shrinkage="auto"), NUMBERS[:-1]),
        (LinearDiscriminantAnalysis(rule="ml", encoder="dense"), NUMBERS[:-1]),
        (NaiveBayes(rule="ml"), NUMBERS),
        (GaussianNB(rule="ml"), UNKNOWN),
        (GenerativeClassifier(rule="ml"), DATED[:-1]),
        (GenerativeClassifier(rule="ml", kinds={"a": "kernel"}), MIXED[:-1]),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore")
def test_other_models_are_trained_again_without_each_fold_instead(model, X):
    assert record_of(model, X, Y[: len(X)])[2] is None


def test_held_out_rows_are_left_out_one_by_one():
    assert GaussianNB(rule="ml").fit(NUMBERS, Y).held_out_.how == "each row left out exactly"

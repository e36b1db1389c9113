"""Training rows in saved models: which estimators keep them, and that `keep_rows=False` keeps none."""

import io
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import calibayes as cb
from tests.contract.test_scikit_learn import ESTIMATORS

N = 1201
CLASS = np.where(np.arange(N) % 3 == 0, "a", "b")
SIZES = {N, int(np.sum(CLASS == "a")), int(np.sum(CLASS == "b"))}


class ArrayFinder(pickle.Pickler):
    """Collects the arrays of everything that a saved model contains."""

    def __init__(self, file):
        super().__init__(file, protocol=5)
        self.arrays = []

    def reducer_override(self, value):
        if isinstance(value, np.ndarray):
            self.arrays.append(value)
        elif sparse.issparse(value):
            self.arrays.append(value.toarray())
        return NotImplemented


def saved(model):
    """The arrays of a model, and the bytes that it is saved as."""
    file = io.BytesIO()
    finder = ArrayFinder(file)
    finder.dump(model)
    return finder.arrays, file.getvalue()


def row_arrays(model):
    """Arrays with an axis as long as the table or one of its classes: those that can hold a value of each row."""
    return [array.shape for array in saved(model)[0] if SIZES & set(array.shape)]


def table():
    rng = np.random.default_rng(0)
    is_a = CLASS == "a"
    return pd.DataFrame(
        {
            "dose": rng.normal(size=N) + is_a,
            "income": rng.gamma(2.0, size=N) * (1 + is_a),
            "visits": rng.poisson(3 + is_a, size=N).astype(float),
            "town": rng.choice(["p", "q", "r"], N),
        }
    )


@pytest.fixture(scope="module")
def default():
    return cb.BayesClassifier().fit(table(), CLASS)


@pytest.fixture(scope="module")
def without_rows():
    return cb.BayesClassifier(keep_rows=False).fit(table(), CLASS)


def test_the_default_keeps_rows_and_says_so(default):
    assert default.weights_["near"] > 0
    assert row_arrays(default)
    assert default.kept_rows_ == N
    assert f"training rows kept in the model: {N} (near)" in default.summary()


def test_without_rows_no_array_has_an_entry_for_each_row(without_rows):
    assert row_arrays(without_rows) == []
    assert "near" not in without_rows.weights_
    assert without_rows.kept_rows_ == 0
    assert "training rows kept in the model: 0" in without_rows.summary()
    assert without_rows.score(table(), CLASS) > 0.7


def test_without_rows_no_row_of_the_table_can_be_found(without_rows):
    """Single values of a column remain (smallest, largest, median; every level), never those of a row together."""
    X = table()
    arrays = [array for array in saved(without_rows)[0] if array.dtype.kind == "f"]
    values = np.unique(np.concatenate([array.ravel() for array in arrays]))
    found = X[["dose", "income"]].isin(values)
    assert found.sum().max() <= 3
    assert not found.all(axis=1).any()
    remaining = [set(X[name][found[name]]) for name in found]
    expected = [{X[name].min(), X[name].max(), X[name].median()} for name in found]
    assert all(some <= known for some, known in zip(remaining, expected, strict=True))


def test_without_rows_the_saved_size_does_not_grow_with_the_rows():
    sizes = {}
    for copies in (1, 3):
        X = pd.concat([table()] * copies, ignore_index=True)
        for keep in (True, False):
            model = cb.BayesClassifier(keep_rows=keep, families=None if keep else ["tied", "full", "kernel"])
            sizes[copies, keep] = len(saved(model.fit(X, np.tile(CLASS, copies)))[1])
    assert sizes[3, False] < 1.1 * sizes[1, False]
    assert sizes[3, True] > 1.5 * sizes[1, True]


@pytest.mark.parametrize("secret", [0.123456789012345, "K. Doe, 12 Elm Street"], ids=["number", "text"])
def test_a_single_cell_without_rows(secret):
    """A number inside the range of its column is not saved; every text is, as a level of its column."""
    X = table()
    column = "dose" if isinstance(secret, float) else "town"
    X.loc[77, column] = secret
    blob = saved(cb.BayesClassifier(keep_rows=False).fit(X, CLASS))[1]
    data = secret.encode() if isinstance(secret, str) else np.float64(secret).tobytes()
    other_order = data if isinstance(secret, str) else np.float64(secret).tobytes()[::-1]
    assert (data in blob or other_order in blob) == isinstance(secret, str)


@pytest.mark.parametrize(
    "given", ["near", ("mine", cb.JointKernelClassifier()), ("lu", cb.LogUnivariateClassifier())], ids=str
)
def test_members_that_keep_rows_are_refused_without_rows(given):
    model = cb.BayesClassifier(families=["tied", given], keep_rows=False)
    name = given if isinstance(given, str) else given[0]
    with pytest.raises(ValueError, match=f"member '{name}' keeps training rows.*keep_rows=True"):
        model.fit(table(), CLASS)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_estimators_that_keep_rows_say_so(estimator):
    """Those with `kept_rows_` are all that have an array with an entry for each row."""
    X = np.random.default_rng(0).poisson(3, size=(N, 3))
    estimator = clone(estimator).fit(X, CLASS)
    assert bool(row_arrays(estimator)) == bool(getattr(estimator, "kept_rows_", 0))
    if getattr(estimator, "kept_rows_", 0):
        assert "training rows" in " ".join(type(estimator).__doc__.split())

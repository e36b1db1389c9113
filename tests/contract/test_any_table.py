"""Any table ends in a valid posterior or in an error that says what is wrong, for every estimator and rule.

CALIBAYES_TABLES is the number of random tables for each estimator; `check.py --fuzz` sets it to 1,000.
"""

import os
import re
import sys
from importlib import import_module

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import calibayes as cb
from calibayes.rules.weights_and_steps import NAMES
from calibayes.testing import LabeledTable, assert_posterior_or_clear_error, tables
from calibayes.testing.random_tables import is_clear
from tests.contract.kept_tables import KEPT
from tests.contract.random_fits import tried
from tests.contract.random_parameters import KEEP, OF_THE_TABLE, VALUES
from tests.contract.test_scikit_learn import ESTIMATORS
from tests.seeds import SEED

EXAMPLES = int(os.environ.get("CALIBAYES_TABLES", "20"))
CLASSIFIERS = [estimator for estimator in ESTIMATORS if hasattr(estimator, "predict_proba")]
ANY_TABLE = st.one_of(tables(), tables(themes=["numbers", "counts"], missing=False))
QUICK_FITS = 120
PASSES = 8
"""Updates of the iterative rules: enough to reach invalid statistics, and quick."""

ignored = [
    f"ignore::{kind.__module__}.{kind.__name__}"
    for kind in (
        ConvergenceWarning,
        cb.FewRowsWarning,
        cb.SingularCovarianceWarning,
        cb.SkippedMemberWarning,
    )
]
pytestmark = [pytest.mark.filterwarnings(text) for text in ignored] + [
    pytest.mark.filterwarnings("ignore:The number of unique classes is greater:UserWarning"),
    pytest.mark.filterwarnings("ignore:.* no known value:calibayes.ColumnWarning"),
]


def variants(estimator):
    """The estimator with each rule, or as it is if it has none."""
    if "rule" not in estimator.get_params():
        return [estimator]
    return [clone(estimator).set_params(rule=rule, max_iter=PASSES) for rule in NAMES]


def posterior_or_error(model, rows):
    try:
        return model.predict_proba(rows).tobytes()
    except ValueError as error:
        return str(error)


def assert_same_from_file(model, table, path):
    cb.save(model, path)
    loaded = cb.load(path)
    for rows in (table.training, table.new):
        assert posterior_or_error(loaded, rows) == posterior_or_error(model, rows)


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda estimator: type(estimator).__name__)
def test_any_table_ends_in_a_posterior_or_a_clear_error(estimator, tmp_path):
    """And a model that was trained comes back from a file with the same posterior."""
    accepted = []

    @seed(f"{SEED} {estimator}")
    @settings(
        max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(st.sampled_from(variants(estimator)), ANY_TABLE)
    def check(variant, table):
        model = clone(variant)
        accepted.append(assert_posterior_or_clear_error(model, table))
        if accepted[-1]:
            assert_same_from_file(model, table, tmp_path / "model.safetensors")

    check()
    assert sum(accepted) >= len(accepted) / 20, (
        f"only {sum(accepted)} of {len(accepted)} tables were accepted"
    )


@pytest.mark.parametrize("name", KEPT)
def test_tables_that_failed_once(name):
    estimator, table = KEPT[name]
    assert_posterior_or_clear_error(clone(estimator), table)


def test_every_parameter_has_random_values():
    known = {*KEEP, *OF_THE_TABLE, *VALUES}
    missing = {type(one).__name__: set(one.get_params(deep=False)) - known for one in CLASSIFIERS}
    assert not {name: parameters for name, parameters in missing.items() if parameters}


def test_random_parameters_on_random_tables():
    """A sample of `tests.contract.random_fits`; `check.py --attack` makes many more fits."""
    found = []
    counts = tried(iter(range(QUICK_FITS)), lambda number, outcome: found.append((number, outcome)))
    assert [line for line in found if line[1] not in ("posterior", "refused")] == []
    assert counts["posterior"] > QUICK_FITS / 4


class Broken:
    """A classifier whose posterior, classes or errors are wrong."""

    def __init__(self, posterior=((0.5, 0.5),) * 2, classes=(0, 1), error=None):
        self.posterior, self.classes_, self.error = np.array(posterior), np.array(classes), error

    def fit(self, X, y):
        if self.error is not None:
            self.error()
        return self

    def predict_proba(self, X):
        return self.posterior

    def predict(self, X):
        return self.classes_[[0, 0]]


def test_a_valid_classifier_is_accepted():
    assert assert_posterior_or_clear_error(Broken(), LabeledTable(np.ones((2, 1)), [0, 1], np.ones((2, 1))))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Broken([[0.5, np.nan]] * 2), "not finite"),
        (Broken([[1.5, -0.5]] * 2), "negative"),
        (Broken([[0.5, 0.4]] * 2), "tolerance"),
        (Broken([[1.0]] * 2), "shape"),
        (Broken(classes=(1, 0)), "not equal"),
        (Broken(error=lambda: np.linalg.inv(np.zeros((2, 2)))), "LinAlgError: Singular matrix"),
        (Broken(error=lambda: np.ones(2) + np.ones(3)), "ValueError: operands could not be broadcast"),
        (Broken(error=lambda: np.ones(2)[[5]]), "IndexError"),
        (Broken(error=lambda: 1 // 0), "ZeroDivisionError"),
    ],
)
def test_a_broken_classifier_is_found(broken, message):
    table = LabeledTable(np.ones((2, 1)), [0, 1], np.ones((2, 1)))
    with pytest.raises(AssertionError, match=re.escape(message)):
        assert_posterior_or_clear_error(broken, table)


@pytest.mark.parametrize("error", [ValueError(" "), KeyError("x"), np.linalg.LinAlgError("Singular matrix")])
def test_errors_without_a_message_or_of_another_class_are_not_clear(error):
    def fail():
        raise error

    with pytest.raises(type(error)) as raised:
        fail()
    assert not is_clear(raised.value)


def properties_of(strategy, examples):
    """Libraries, types of columns, strides and numbers of classes that occur among random tables."""
    seen = set()

    @seed(0)
    @settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(strategy)
    def look(table):
        rows = table.training
        seen.add(type(rows).__module__.partition(".")[0])
        seen.update(str(kind) for kind in ([rows.dtype] if isinstance(rows, np.ndarray) else rows.dtypes))
        seen.add("one row a class" if len(table.classes) == len(table.labels) else "several rows a class")
        if isinstance(rows, np.ndarray):
            seen.add("negative stride" if min(rows.strides) < 0 else "positive stride")
            seen.add("C" if rows.flags.c_contiguous else "not C")

    look()
    return seen


def test_tables_are_of_every_kind():
    seen = properties_of(tables(), 200)
    assert {"numpy", "pandas", "polars", "one row a class", "several rows a class"} <= seen
    assert {"object", "category", "Int64", "float64", "Categorical", "String"} <= seen
    arrays = properties_of(tables(libraries=["numpy"], themes=["counts", "flags"], missing=False), 150)
    assert {"int64", "float64", "int8", "bool", "uint8", "negative stride", "C", "not C"} <= arrays


def test_bad_arguments_of_tables_are_refused():
    with pytest.raises(
        ValueError, match="libraries must be a list of names among numpy, pandas, polars, got"
    ):
        tables(libraries=["dask"])
    with pytest.raises(ValueError, match="themes must be a list of names"):
        tables(themes="levels")
    with pytest.raises(ValueError, match="2 rows and 1 column, got max_rows=1"):
        tables(max_rows=1)


def test_without_hypothesis_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "calibayes.testing.random_tables")
    with pytest.raises(ImportError, match="needs hypothesis: pip install hypothesis"):
        import_module("calibayes.testing.random_tables")

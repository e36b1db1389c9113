"""scikit-learn's own tests of naive Bayes and discriminant analysis, run on the estimators of calibayes.

The test functions are those of the installed scikit-learn: their modules are executed with the estimators replaced by ours,
trained by maximum likelihood. The tests that must fail, and why, are the table "Tests of scikit-learn" of
docs/scikit-learn.md; one that passes although it is listed there is an error, too.
"""

import importlib.util
import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import sklearn
from packaging.specifiers import SpecifierSet

import calibayes
from calibayes.model.parameters import estimator

DOCUMENT = Path(__file__).parents[2] / "docs" / "scikit-learn.md"
EXCEPTION = re.compile(r"^\| `(test_[^`]+)` \| (\S+) \| (.+) \|$", re.MULTILINE)
EXCEPTIONS = {
    test: reason
    for test, versions, reason in EXCEPTION.findall(DOCUMENT.read_text(encoding="utf-8"))
    if sklearn.__version__ in SpecifierSet(versions, prereleases=True)
}
"""Test -> why it must fail. A test without brackets stands for all its parameters, a star for any text."""
MODULES = {
    "sklearn.naive_bayes": ("BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB"),
    "sklearn.discriminant_analysis": ("LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"),
}


def by_maximum_likelihood(name):
    """Our estimator of that name, with ``rule="ml"`` as default."""
    contents = {"__annotations__": {"rule": "str"}, "rule": "ml", "__module__": __name__}
    return estimator(type(name, (getattr(calibayes, name),), contents))


def functions_of(module, names):
    """The test functions for a module of scikit-learn, which use our estimators of these names."""
    spec = importlib.util.find_spec(f"sklearn.tests.test_{module.rpartition('.')[2]}")
    if spec is None:  # some distributions install scikit-learn without its tests
        return {}
    tests = importlib.util.module_from_spec(spec)
    with mock.patch.multiple(module, **{name: by_maximum_likelihood(name) for name in names}):
        spec.loader.exec_module(tests)
    functions = {name: value for name, value in vars(tests).items() if name.startswith("test_")}
    for function in functions.values():
        function.pytestmark = [with_listed_values(mark) for mark in getattr(function, "pytestmark", [])]
    return functions


def with_listed_values(mark):
    """The mark; parameters that are given by an iterator, which pytest deprecates, as a list."""
    if mark.name != "parametrize" or isinstance(mark.args[1], Collection):
        return mark
    return pytest.mark.parametrize(mark.args[0], list(mark.args[1]), **mark.kwargs).mark


for module, names in MODULES.items():
    functions = functions_of(module, names)
    assert functions.keys().isdisjoint(globals())
    globals().update(functions)

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def global_random_seed():
    """The seed that scikit-learn's tests use by default."""
    return 42


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def global_dtype(request):
    return request.param


@pytest.fixture(autouse=True)
def expected_failure(request):
    """Marks the tests that are listed as exceptions."""
    names = (request.node.name, request.node.originalname)
    for pattern, reason in EXCEPTIONS.items():
        if any(fnmatchcase(name, pattern.replace("[", "[[]")) for name in names):
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))


def test_exceptions_are_read_from_the_document():
    assert "test_check_alpha" in EXCEPTIONS

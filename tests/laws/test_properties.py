"""Properties under random inputs (hypothesis)."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

import calibayes as cb
from calibayes.core.named_arrays import add, combine, scale, subtract
from calibayes.encoders.bins import KMeansBins
from calibayes.encoders.levels import Levels
from calibayes.kernels import posterior as simplex
from calibayes.kernels.posterior import log_normalize
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_array
from tests.seeds import SEED

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)


def forty_examples(test):
    """Run a property on 40 examples, which follow from the seed of the tests."""
    return seed(SEED)(settings(max_examples=40, deadline=None)(test))


@forty_examples
@given(
    arrays(np.float64, (4, 3), elements=numbers),
    arrays(np.float64, (4, 3), elements=numbers),
    st.floats(-3, 3),
)
def test_named_arrays_are_a_vector_space(left, right, factor):
    a, b = {"x": {"y": left}}, {"x": {"y": right}}
    assert_allclose(subtract(add(a, b), b)["x"]["y"], left, atol=1e-6)
    assert_allclose(combine(factor, a, 1.0, b)["x"]["y"], add(scale(factor, a), b)["x"]["y"], atol=1e-6)


@forty_examples
@given(arrays(np.float64, (5, 4), elements=st.floats(-1e5, 1e5)))
def test_posteriors_are_probabilities(log_joint):
    log_posterior, evidence = log_normalize(log_joint)
    assert_allclose(np.exp(log_posterior).sum(axis=1), 1.0)
    assert_allclose(log_posterior + evidence[:, None], log_joint, atol=1e-6)


@forty_examples
@given(arrays(np.float64, (6, 3), elements=st.floats(-50, 50)))
def test_projecting_twice_equals_projecting_once(rows):
    once = simplex.project(rows)
    assert_allclose(simplex.project(once), once, atol=1e-9)


@forty_examples
@given(st.lists(st.sampled_from(["a", "b", "c", "dd", ""]), min_size=1, max_size=30))
def test_decoding_inverts_encoding(cells):
    table = read_array(np.array(cells, dtype=object)[:, None])
    encoder = Levels().fit(summary_of(table, np.ones(len(cells))), [0])
    assert_array_equal(encoder.decode(encoder.encode(table), None)[0], cells)


@forty_examples
@given(st.lists(st.floats(0, 100), min_size=12, max_size=60, unique=True), st.integers(2, 4))
def test_a_value_of_weight_w_equals_w_repeated_values(values, times):
    column = np.array(values)
    weighted, repeated = (
        KMeansBins(5).fit(summary_of(read_array(rows[:, None]), weight), [0]).edges[0]
        for rows, weight in (
            (column, np.full(len(column), float(times))),
            (np.repeat(column, times), np.ones(times * len(column))),
        )
    )
    assert_allclose(weighted, repeated, rtol=1e-9)


@pytest.mark.parametrize("estimator", [cb.CategoricalNB, cb.GaussianNB, cb.BernoulliNB])
@forty_examples
@given(
    number=st.integers(0, 10_000),
    cuts=st.lists(st.integers(1, 59), min_size=1, max_size=4),
    rule=st.sampled_from(["ml", "map"]),
)
def test_partial_fit_over_any_split_equals_fit(estimator, number, cuts, rule):
    rng = np.random.default_rng(number)
    y = rng.permutation(np.arange(60) % 3)
    X, weight = rng.integers(0, 4, (60, 3)) + 0.0, rng.uniform(0.1, 3.0, 60)
    model, edges = estimator(rule=rule), sorted({0, *cuts, 60})
    for low, high in pairwise(edges):
        model.partial_fit(X[low:high], y[low:high], classes=[0, 1, 2], sample_weight=weight[low:high])
    expected = estimator(rule=rule).fit(X, y, weight)
    assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-10)


@pytest.mark.filterwarnings("ignore:the first steps of rule 'rc':sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator", [cb.QuadraticDiscriminantAnalysis, cb.GenerativeLogisticRegression, cb.NaiveBayes]
)
@forty_examples
@given(number=st.integers(0, 10_000), step=st.floats(0.01, 8.0))
def test_steps_of_any_length_give_valid_parameters(estimator, number, step):
    rng = np.random.default_rng(number)
    y = rng.permutation(np.arange(30) % 2)
    X = rng.normal(size=(30, 2)) * rng.uniform(0.01, 100, 2) + y[:, None]
    model = estimator(rule=cb.rules.RC(step=step), stop=None, max_iter=8).fit(X, y)
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert np.isfinite(model.history_["log_loss"]).all()

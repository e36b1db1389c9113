"""Properties over inputs that nobody chose."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

import calibayes as cb
from calibayes.core.named_arrays import add, combine, scale, subtract
from calibayes.encoders.bins import KMeansBins
from calibayes.encoders.levels import Levels
from calibayes.kernels.posterior import simplex
from calibayes.kernels.posterior.logspace import log_normalize
from calibayes.tables.read import read_array

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
quick = settings(max_examples=40, deadline=None)


@quick
@given(
    arrays(np.float64, (4, 3), elements=numbers),
    arrays(np.float64, (4, 3), elements=numbers),
    st.floats(-3, 3),
)
def test_trees_are_a_vector_space(left, right, factor):
    a, b = {"x": {"y": left}}, {"x": {"y": right}}
    assert_allclose(subtract(add(a, b), b)["x"]["y"], left, atol=1e-6)
    assert_allclose(combine(factor, a, 1.0, b)["x"]["y"], add(scale(factor, a), b)["x"]["y"], atol=1e-6)


@quick
@given(arrays(np.float64, (5, 4), elements=st.floats(-1e5, 1e5)))
def test_posteriors_are_probabilities(log_joint):
    log_posterior, evidence = log_normalize(log_joint)
    assert_allclose(np.exp(log_posterior).sum(axis=1), 1.0)
    assert_allclose(log_posterior + evidence[:, None], log_joint, atol=1e-6)


@quick
@given(arrays(np.float64, (6, 3), elements=st.floats(-50, 50)))
def test_projections_do_not_move_again(rows):
    once = simplex.project(rows)
    assert_allclose(simplex.project(once), once, atol=1e-9)


@quick
@given(st.lists(st.sampled_from(["a", "b", "c", "dd", ""]), min_size=1, max_size=30))
def test_levels_come_back_as_they_were(cells):
    table = read_array(np.array(cells, dtype=object)[:, None])
    encoder = Levels().fit(table, [0], np.ones(len(cells)))
    assert_array_equal(encoder.decode(encoder.encode(table), None)[0], cells)


@quick
@given(st.lists(st.floats(0, 100), min_size=12, max_size=60, unique=True), st.integers(2, 4))
def test_values_of_weight_w_act_like_w_rows(values, times):
    column = np.array(values)
    weighted, repeated = (
        KMeansBins(5).fit(read_array(rows[:, None]), [0], weight).edges[0]
        for rows, weight in (
            (column, np.full(len(column), float(times))),
            (np.repeat(column, times), np.ones(times * len(column))),
        )
    )
    assert_allclose(weighted, repeated, rtol=1e-9)


@quick
@given(
    st.integers(0, 10_000),
    st.lists(st.integers(1, 59), min_size=1, max_size=4),
    st.sampled_from(["ml", "map"]),
)
def test_any_split_of_the_rows_gives_the_same_model(seed, cuts, rule):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(60) % 3)
    X, weight = rng.integers(0, 4, (60, 3)) + 0.0, rng.uniform(0.1, 3.0, 60)
    for estimator in (cb.CategoricalNB, cb.GaussianNB, cb.BernoulliNB):
        model, edges = estimator(rule=rule), sorted({0, *cuts, 60})
        for low, high in pairwise(edges):
            model.partial_fit(X[low:high], y[low:high], classes=[0, 1, 2], sample_weight=weight[low:high])
        whole = estimator(rule=rule).fit(X, y, weight)
        assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-10)


@pytest.mark.filterwarnings("ignore:the first steps of rule 'rc':sklearn.exceptions.ConvergenceWarning")
@quick
@given(st.integers(0, 10_000), st.floats(0.01, 8.0))
def test_no_step_leaves_invalid_parameters(seed, step):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(30) % 2)
    X = rng.normal(size=(30, 2)) * rng.uniform(0.01, 100, 2) + y[:, None]
    for estimator in (cb.QuadraticDiscriminantAnalysis, cb.GenerativeLogisticRegression, cb.NaiveBayes):
        model = estimator(rule=cb.rules.RC(step=step), stop=None, max_iter=8).fit(X, y)
        assert np.isfinite(model.predict_log_proba(X)).all()
        assert np.isfinite(model.history_["log_loss"]).all()

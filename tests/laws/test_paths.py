"""Training along a path of total step lengths, and averages of the posteriors on it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibayes.core.protocols import Layout
from calibayes.engines import Serial
from calibayes.families import ClassPrior, Diagonal, Gaussian, Product
from calibayes.kernels.posterior.averaging import (
    log_loss,
    logarithmic_mean,
    mix,
    mixture_weights,
    pair_shares,
)
from calibayes.learn import Data, LastState, Run, learn
from calibayes.rules import RC
from calibayes.tables.sources import ArraySource


def problem():
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    x = rng.normal(size=(90, 2)) * (1 + labels[:, None]) + labels[:, None]
    source = ArraySource({"x": x}, labels, np.ones(90), np.zeros(90))
    layout = Layout(("a", "b", "c"), ("u", "v"), center=x.mean(axis=0), variance=x.var(axis=0))
    model = Product(ClassPrior(), {"x": Gaussian(Diagonal())}).bind({"x": layout}, layout.classes)
    start = survey(model, source, Serial(), Data(), 3)
    return model.prepare(start), start, source


def run_(model, start, **options):
    return Run(model, RC(), start, stop=LastState(), limit=60, **options)


def test_a_path_reaches_each_total_step_and_steps_keep_growing():
    model, start, source = problem()
    path, taus = run_(model, start, horizon=0.0), (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
    reached = [(tau, path.accepted.total_step) for tau in walk([path], source, Serial(), taus)]
    assert reached == [(tau, tau) for tau in taus]
    steps = np.array([entry.step for entry in path.history])
    assert_allclose(np.cumsum(steps), [entry.total_step for entry in path.history])
    full_step = 0.5
    for step, tau in zip(steps[1:], np.cumsum(steps)[:-1], strict=True):
        room = next(t for t in taus if t > tau + 1e-12) - tau
        assert step == pytest.approx(min(full_step, room))
        full_step = min(1.3 * full_step, 8.0)
    objectives = [entry.objective for entry in path.history]
    assert np.all(np.diff(objectives) >= 0)


def test_a_path_with_one_total_step_equals_learning_up_to_it():
    model, start, source = problem()
    learned, followed = run_(model, start, horizon=3.0), run_(model, start, horizon=3.0)
    learn([learned], source, Serial())
    assert list(walk([followed], source, Serial(), (3.0,))) == [3.0]
    assert learned.history[-1].total_step == followed.history[-1].total_step == 3.0
    assert_array_equal(learned.best.state["x"]["first"], followed.best.state["x"]["first"])
    followed.set_horizon(2.0)
    assert followed.done


def test_a_path_ends_when_no_lane_has_updates_left():
    model, start, source = problem()
    short = Run(model, RC(), start, stop=LastState(), limit=2, horizon=0.0)
    assert list(walk([short], source, Serial(), (0.0, 0.5, 1.0, 2.0, 4.0))) == [0.0, 0.5, 1.0]
    assert short.updates == 2


def test_mixture_weights_minimize_log_loss():
    rng = np.random.default_rng(0)
    log_true, weight = np.log(rng.random((50, 3))), rng.integers(1, 4, 50).astype(float)
    member_weights = mixture_weights(log_true, weight)
    repeated = mixture_weights(np.repeat(log_true, weight.astype(int), axis=0), np.ones(int(weight.sum())))
    assert_allclose(member_weights, repeated, atol=1e-6)
    loss = -weight @ np.log(np.exp(log_true) @ member_weights)
    for other in rng.dirichlet(np.ones(3), 500):
        assert loss <= -weight @ np.log(np.exp(log_true) @ other) + 1e-6
    assert_array_equal(mixture_weights(np.zeros((0, 2)), np.zeros(0)), [0.5, 0.5])


@pytest.mark.parametrize("seed", range(8))
def test_mixture_weights_equal_those_of_expectation_maximization(seed):
    """Also if members are equal, or if a member gives a row a probability of nearly 0."""
    rng = np.random.default_rng(seed)
    log_true = -np.abs(rng.standard_normal((80, 4))) * 10.0 ** rng.uniform(-1, 2)
    log_true[rng.random((80, 4)) < 0.1] = -800.0
    log_true[:, 3] = log_true[:, seed % 3] if seed % 2 else log_true[:, 3]
    weight = rng.integers(1, 3, 80).astype(float)
    probability = np.exp(log_true - log_true.max(axis=1, keepdims=True))
    shares = np.full(4, 0.25)
    for _ in range(5000):
        shares = shares * (probability.T @ (weight / (probability @ shares))) / weight.sum()
    member_weights = mixture_weights(log_true, weight)
    assert (member_weights >= 0).all()
    assert member_weights.sum() == pytest.approx(1.0)
    assert log_loss(log_true, member_weights, weight) <= log_loss(log_true, shares, weight) + 1e-9


def test_log_odds_of_a_mixture_are_a_weighted_sum_of_those_of_its_members():
    rng = np.random.default_rng(0)
    log_posteriors = np.log(rng.dirichlet(np.ones(3), (4, 20)))
    log_posteriors[0, 0] = np.log([1e-300, 0.5, 0.5])
    log_posteriors[1, 1] = np.log([0.4, 0.4, 0.2])
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    weighted = log_posteriors + np.log(weights)[:, None, None]
    shares = pair_shares(weighted[:, :, 0], weighted[:, :, 1])
    mixed = mix(log_posteriors, weights)
    assert_allclose(np.exp(mixed).sum(axis=1), 1.0)
    odds = np.sum(shares * (log_posteriors[:, :, 0] - log_posteriors[:, :, 1]), axis=0)
    assert_allclose(odds, mixed[:, 0] - mixed[:, 1], rtol=1e-9, atol=1e-12)
    assert (shares >= 0).all()
    assert shares.sum(axis=0).max() <= 1 + 1e-12
    assert_allclose(logarithmic_mean(np.log(3.0), np.log(3.0)), np.log(3.0))
    assert_allclose(np.exp(logarithmic_mean(np.log(5.0), np.log(2.0))), 3.0 / np.log(2.5))

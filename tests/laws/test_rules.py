"""Identities between rules, to rounding."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calibayes import (
    GaussianNB,
    GenerativeClassifier,
    GenerativeLogisticRegression,
    LinearDiscriminantAnalysis,
    every,
)
from calibayes.core.named_arrays import map_leaves
from calibayes.core.protocols import Layout, ValidStatistics
from calibayes.engines import Serial
from calibayes.families import ClassPrior
from calibayes.learn import Data, Lane, Never, NoGain, RandomLabels, learn
from calibayes.learn.loop import measure
from calibayes.rules import DFE, GDT, ML, RC, TM
from tests.cases import FAMILIES, LIKELIEST
from tests.laws.test_learning import run, source_of

PLAIN = [name for name, case in FAMILIES.items() if not case.has_hidden]
"""Families with nothing hidden, whose likelihood has one maximum."""
COUNTING = [
    name for name in FAMILIES if name.startswith(("categorical", "bernoulli", "multinomial", "kernel"))
]


def exact(name):
    """The case with its prior's posterior mode taken exactly, as rules take it that climb a posterior."""
    return replace(FAMILIES[name], family=FAMILIES[name].family.exact())


def assert_trees_close(left, right, tolerance=1e-10):
    map_leaves(lambda a, b: assert_allclose(a, b, rtol=tolerance, atol=tolerance), left, right)


@pytest.mark.parametrize("family", FAMILIES)
def test_tm_is_calibration_with_step_one(family):
    case, source = FAMILIES[family], source_of(FAMILIES[family])
    tm, rc = (run(case, rule, Serial(), source) for rule in (TM(), RC(step=1.0)))
    assert_trees_close(tm.candidate.state, rc.candidate.state)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("start", [Data(), RandomLabels(3)], ids=["data", "random"])
def test_trade_off_one_with_step_one_is_maximum_likelihood(family, start):
    """Update by update: where something is hidden both are expectation maximization."""
    case, source = exact(family), source_of(FAMILIES[family])
    gdt, ml = (run(case, rule, Serial(), source, start) for rule in (GDT(lam=1.0, step=1.0), ML()))
    assert_trees_close(gdt.candidate.parameters, ml.candidate.parameters)


@pytest.mark.parametrize("family", PLAIN)
def test_trade_off_one_is_maximum_likelihood(family):
    case, source = exact(family), source_of(FAMILIES[family])
    gdt, ml = (run(case, rule, Serial(), source) for rule in (GDT(lam=1.0), ML()))
    assert_trees_close(gdt.candidate.parameters, ml.candidate.parameters)


@pytest.mark.parametrize("family", PLAIN)
@pytest.mark.parametrize("step", [None, 1.0])
def test_trade_off_one_finds_maximum_likelihood_from_anywhere(family, step):
    """Or the mode of the posterior, where there is a prior, with step control and without."""
    case, source = FAMILIES[family], source_of(FAMILIES[family])
    rule = GDT(lam=1.0, step=step)
    end = run(exact(family), ML(), Serial(), source, updates=0)
    gdt = run(case, rule, Serial(), source, RandomLabels(3), updates=80)
    likelihoods = [lane.history[-1].objective for lane in (gdt, end)]
    assert likelihoods[0] == pytest.approx(likelihoods[1], abs=1e-9)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in PLAIN])
def test_where_something_is_hidden_the_trade_off_of_one_ends_where_maximum_likelihood_ends(family):
    """A place where expectation maximization moves no more; from the labels, not from anywhere."""
    case, source = exact(family), source_of(FAMILIES[family])
    gdt = run(case, GDT(lam=1.0), Serial(), source, updates=200)
    further = Lane(gdt.model, ML(), gdt.best.state, stop=Never(), limit=5)
    learn([further], source, Serial())
    gain = further.history[-1].objective - gdt.history[-1].objective
    assert 0 <= gain + 1e-12 < NoGain().tolerance / 10
    assert gdt.history[-1].objective > gdt.history[0].objective


@pytest.mark.parametrize("family", FAMILIES)
def test_trade_off_zero_takes_the_direction_of_calibration(family):
    case, source = exact(family), source_of(FAMILIES[family])
    start = run(case, RC(step=0.1), Serial(), source, updates=0)
    block = source.parts()[0]()
    gdt, rc = (
        measure(block, start.model, rule, start.best.parameters)["statistics"]
        for rule in (GDT(lam=0.0), RC(step=0.1))
    )
    assert_trees_close(gdt, rc)
    assert_trees_close(
        run(case, GDT(lam=0.0, step=0.1), Serial(), source).candidate.state,
        run(case, RC(step=0.1), Serial(), source).candidate.state,
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_calibration_keeps_the_sample_size(family):
    case, source = FAMILIES[family], source_of(FAMILIES[family])
    lane = run(case, RC(step=0.05), Serial(), source, updates=3)
    assert lane.candidate.state["class_prior"]["count"].sum() == pytest.approx(source.weight.sum(), rel=1e-12)


@pytest.mark.parametrize("family", COUNTING)
def test_discriminative_frequencies_grow_by_the_soft_error(family):
    case, source = FAMILIES[family], source_of(FAMILIES[family])
    lane = run(case, DFE(), Serial(), source, updates=3)
    grown = source.weight.sum() * (1.0 + sum(entry.soft_error for entry in lane.history[:-1]))
    assert lane.candidate.state["class_prior"]["count"].sum() == pytest.approx(grown, rel=1e-10)


@pytest.mark.parametrize("family", LIKELIEST)
@pytest.mark.parametrize("class_alpha", [0.0, 25.0])
def test_the_update_of_the_trade_off_ends_where_its_objective_is_highest(family, class_alpha):
    """There lam S = s(Y) - (1 - lam) s(P), and no small move of the statistics raises the objective."""
    case, source = FAMILIES[family], source_of(FAMILIES[family])
    lane = run(case, GDT(lam=0.7), Serial(), source, updates=400, class_alpha=class_alpha)
    block, end = source.parts()[0](), lane.accepted
    sums = measure(block, lane.model, lane.rule, end.parameters)["statistics"]
    assert_allclose(sums["class_prior"]["count"], 0.7 * end.state["class_prior"]["count"], rtol=1e-4)

    def objective(state):
        parameters = lane.model.parameters(state)
        total = measure(block, lane.model, lane.rule, parameters, last=True)["objective"]
        return total + lane.rule.shrink * lane.model.log_prior(parameters)

    rng = np.random.default_rng(0)
    for _ in range(10):
        nudge = map_leaves(lambda leaf: 1.0 + 0.01 * rng.normal(size=leaf.shape), end.state)
        nudged = lane.model.keep_valid(end.state, map_leaves(lambda a, b: a * _even(b), end.state, nudge))[0]
        assert objective(nudged) < objective(end.state) + 1e-6


def _even(factors):
    """Factors that keep a matrix symmetric."""
    return (factors + np.swapaxes(factors, 1, 2)) / 2 if factors.ndim == 3 else factors


@dataclass(frozen=True)
class LogLinear:
    """The learner of Proposition 1: statistics are sums of (1, x), parameters are the statistics over m."""

    layout: Layout | None = None
    size: float = 1.0

    reads = "numbers"

    def bind(self, layout):
        return replace(self, layout=layout)

    def prepare(self, start, pooled=None):
        return replace(self, size=float(start["sum"][:, 0].sum()))

    def statistics(self, columns, weights, parameters=None):
        return {"sum": weights.T @ np.column_stack([np.ones(len(columns)), columns])}

    def parameters(self, statistics):
        return {"theta": statistics["sum"] / self.size}

    def log_density(self, columns, parameters):
        return np.column_stack([np.ones(len(columns)), columns]) @ parameters["theta"].T

    def keep_valid(self, current, proposed):
        return ValidStatistics(proposed, 0, np.zeros(len(self.layout.classes), dtype=bool))


def test_proposition_1_calibration_is_gradient_descent_for_logistic_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = (X @ [1.0, -1.0, 0.5] + rng.normal(size=90) > 0).astype(int) + (X[:, 2] > 1)
    step, updates = 0.3, 20
    model = GenerativeClassifier(
        families=[("x", LogLinear(), every)],
        priors=np.full(3, 1 / 3),
        rule=RC(step=step),
        stop=None,
        max_iter=updates,
    ).fit(X, y)
    design, onehot = np.column_stack([np.ones(90), X]), np.eye(3)[y]
    theta = onehot.T @ design / 90
    losses = []
    for _ in range(updates + 1):
        score = design @ theta.T
        posterior = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
        losses.append(-np.mean(np.log(posterior[np.arange(90), y])))
        theta = theta + step / 90 * (onehot - posterior).T @ design
    assert_allclose(model.history_["log_loss"], losses, rtol=1e-10)


def test_fixed_priors_stay_fixed_under_every_rule():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)) + np.repeat([[0], [1]], 30, axis=0), np.repeat([0, 1], 30)
    for rule in ("ml", "rc", "tm", "gdt", "gd", "em"):
        model = GaussianNB(rule=rule, priors=[0.9, 0.1], stop=None, max_iter=5).fit(X, y)
        assert_allclose(model.class_prior_, [0.9, 0.1], rtol=1e-12)
    for estimator in (LinearDiscriminantAnalysis, GenerativeLogisticRegression):
        loss = estimator(rule="gd", priors=[0.9, 0.1], stop=None, max_iter=30).fit(X, y).history_["log_loss"]
        assert np.all(np.diff(loss) < 0)


def test_a_class_that_a_family_holds_keeps_its_count():
    prior = ClassPrior().bind(Layout(("a", "b"), ()))
    kept, frozen = prior.keep_valid(
        {"count": np.array([5.0, 5.0])}, {"count": np.array([4.0, 6.0])}, np.array([True, False])
    )
    assert_allclose(kept["count"], [5.0, 6.0])
    assert frozen == 1


def test_a_lane_with_no_updates_is_its_start():
    case, source = FAMILIES["categorical"], source_of(FAMILIES["categorical"])
    lane = run(case, RC(), Serial(), source, updates=0)
    assert len(lane.history) == 1
    again = Lane(lane.model, lane.rule, lane.state, stop=Never(), limit=0)
    learn([again], source, Serial())
    assert_trees_close(again.best.parameters, lane.best.parameters)

"""Identities between rules, to rounding."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calibayes import GaussianNB, GenerativeClassifier, every
from calibayes.core.protocols import Admission, Layout
from calibayes.core.tree import map_leaves, scale
from calibayes.engines import Serial
from calibayes.families import ClassPrior
from calibayes.learn import Data, Lane, Never, learn, start_statistics
from calibayes.learn.loop import measure
from calibayes.rules import DFE, GDT, ML, RC, TM, Fixed
from tests.cases import FAMILIES
from tests.laws.test_learning import run, source_of

COUNTING = [name for name in FAMILIES if name.startswith(("categorical", "bernoulli"))]


def assert_trees_close(left, right, tolerance=1e-10):
    map_leaves(lambda a, b: assert_allclose(a, b, rtol=tolerance, atol=tolerance), left, right)


@pytest.mark.parametrize("family", FAMILIES)
def test_tm_is_calibration_with_step_one(family):
    case, source = FAMILIES[family], source_of(FAMILIES[family])
    tm, rc = (run(case, rule, Serial(), source) for rule in (TM(), RC(step=1.0)))
    assert_trees_close(tm.candidate.state, rc.candidate.state)


@pytest.mark.parametrize("family", FAMILIES)
def test_trade_off_one_is_maximum_likelihood(family):
    case, source = FAMILIES[family], source_of(FAMILIES[family])
    gdt, ml = (run(case, rule, Serial(), source) for rule in (GDT(lam=1.0), ML()))
    assert_trees_close(gdt.candidate.parameters, ml.candidate.parameters)


@pytest.mark.parametrize("family", FAMILIES)
def test_trade_off_one_finds_maximum_likelihood_from_anywhere(family):
    from calibayes.learn import RandomLabels

    case, source = FAMILIES[family], source_of(FAMILIES[family])
    ml = run(case, ML(), Serial(), source, updates=0)
    gdt = run(case, GDT(lam=1.0, step=Fixed(1.0)), Serial(), source, RandomLabels(3), updates=1)
    assert_trees_close(gdt.candidate.state, ml.candidate.state)


@pytest.mark.parametrize("family", FAMILIES)
def test_trade_off_zero_takes_the_direction_of_calibration(family):
    case, source = FAMILIES[family], source_of(FAMILIES[family])
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


@pytest.mark.parametrize("family", [name for name in FAMILIES if FAMILIES[name].scale_free])
def test_the_direction_is_the_gradient_of_the_trade_off(family):
    """At the end of a long climb the update has nothing left to do: lam S = s(Y) - (1 - lam) s(P)."""
    case, source = FAMILIES[family], source_of(FAMILIES[family])
    lane = run(case, GDT(lam=0.7), Serial(), source, updates=300)
    block = source.parts()[0]()
    sums = measure(block, lane.model, lane.rule, lane.accepted.parameters)["statistics"]
    count = lane.accepted.state["class_prior"]["count"]
    assert_allclose(sums["class_prior"]["count"], 0.7 * count, rtol=1e-4)


@dataclass(frozen=True)
class LogLinear:
    """The learner of Proposition 1: statistics are sums of (1, x), parameters are the statistics over m."""

    layout: Layout | None = None
    size: float = 1.0

    reads = "numbers"

    def bind(self, layout):
        return replace(self, layout=layout)

    def prepare(self, start):
        return replace(self, size=float(start["sum"][:, 0].sum()))

    def statistics(self, columns, weights, parameters=None):
        return {"sum": weights.T @ np.column_stack([np.ones(len(columns)), columns])}

    def parameters(self, statistics):
        return {"theta": statistics["sum"] / self.size}

    def log_density(self, columns, parameters):
        return np.column_stack([np.ones(len(columns)), columns]) @ parameters["theta"].T

    def admit(self, current, proposed):
        return Admission(proposed, 0, np.zeros(len(self.layout.classes), dtype=bool))


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


def test_a_class_that_a_family_holds_keeps_its_count():
    prior = ClassPrior().bind(Layout(("a", "b"), ()))
    kept, frozen = prior.admit(
        {"count": np.array([5.0, 5.0])}, {"count": np.array([4.0, 6.0])}, np.array([True, False])
    )
    assert_allclose(kept["count"], [5.0, 6.0])
    assert frozen == 1


def test_statistics_can_be_taken_away_again():
    case, source = FAMILIES["gaussian-Full"], source_of(FAMILIES["gaussian-Full"])
    lane = run(case, ML(), Serial(), source, updates=0)
    whole = start_statistics(lane.model, source, Serial(), Data(), 3)
    block = source.parts()[0]()
    twice = lane.rule.absorb(whole, whole)
    assert_trees_close(lane.rule.absorb(twice, scale(-1.0, whole)), whole)
    assert block.onehot(3).shape == (source.n, 3)


def test_a_lane_with_no_updates_is_its_start():
    case, source = FAMILIES["categorical"], source_of(FAMILIES["categorical"])
    lane = run(case, RC(), Serial(), source, updates=0)
    assert len(lane.history) == 1
    again = Lane(lane.model, lane.rule, lane.state, stop=Never(), limit=0)
    learn([again], source, Serial())
    assert_trees_close(again.best.parameters, lane.best.parameters)

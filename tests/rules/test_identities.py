"""Identities between rules, to rounding."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from calibayes import (
    GaussianNB,
    GenerativeClassifier,
    GenerativeLogisticRegression,
    LinearDiscriminantAnalysis,
    every,
)
from calibayes.core.abilities import CountStatistics
from calibayes.core.named_arrays import map_leaves, scale
from calibayes.core.protocols import Layout, ValidStatistics
from calibayes.engines import Serial
from calibayes.families import AveragedOneDependence, ClassPrior, GammaByMoments, NegativeBinomial
from calibayes.learn import Data, Never, NoGain, RandomLabels, Run, learn
from calibayes.learn.run import measure
from calibayes.rules import DFE, GD, GDT, ML, RC, TM, Backtracking
from calibayes.rules.weights_and_steps import exactly_penalized
from tests.cases import FAMILIES, LIKELIEST
from tests.learn.training import run, source_of
from tests.seeds import generator

NOTHING_HIDDEN = [name for name, case in FAMILIES.items() if not case.has_hidden]
"""Families whose statistics do not depend on the parameters, so that the likelihood has one maximum."""
OTHER_MAXIMUM = AveragedOneDependence | GammaByMoments | NegativeBinomial
ONE_MAXIMUM = [name for name in NOTHING_HIDDEN if not isinstance(FAMILIES[name].family, OTHER_MAXIMUM)]
"""Those whose likelihood is highest at the closed form. An average of densities, each of maximum likelihood, has not
maximum likelihood itself, nor have estimates by moments: steps that may only raise it end elsewhere."""
HIDDEN = [name for name, case in FAMILIES.items() if case.has_hidden and case.maximizes_likelihood]
COUNTING = [name for name, case in FAMILIES.items() if isinstance(case.family, CountStatistics)]


def exact(name):
    """The case with a prior whose posterior mode the parameters are, as rules need it that maximize a posterior."""
    return replace(FAMILIES[name], family=exactly_penalized(FAMILIES[name].family))


def assert_trees_close(left, right, tolerance=1e-10):
    map_leaves(lambda a, b: assert_allclose(a, b, rtol=tolerance, atol=tolerance), left, right)


@pytest.mark.parametrize("family", FAMILIES)
def test_tm_equals_calibration_with_step_one(family):
    case, source = FAMILIES[family], source_of(FAMILIES[family])
    tm, rc = (run(case, rule, Serial(), source) for rule in (TM(), RC(step=1.0)))
    assert_trees_close(tm.candidate.state.value, rc.candidate.state.value)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("start", [Data(), RandomLabels(3)], ids=["data", "random"])
def test_trade_off_one_with_step_one_equals_maximum_likelihood(family, start):
    """Update by update: both are expectation maximization if the family has hidden values."""
    case, source = exact(family), source_of(FAMILIES[family])
    gdt, ml = (run(case, rule, Serial(), source, start) for rule in (GDT(lam=1.0, step=1.0), ML()))
    assert_trees_close(gdt.candidate.parameters, ml.candidate.parameters)


@pytest.mark.parametrize("family", NOTHING_HIDDEN)
def test_trade_off_one_equals_maximum_likelihood(family):
    case, source = exact(family), source_of(FAMILIES[family])
    gdt, ml = (run(case, rule, Serial(), source) for rule in (GDT(lam=1.0), ML()))
    assert_trees_close(gdt.candidate.parameters, ml.candidate.parameters)


@pytest.mark.parametrize(
    ("family", "step"),
    [*((name, 1.0) for name in NOTHING_HIDDEN), *((name, None) for name in ONE_MAXIMUM)],
)
def test_trade_off_one_reaches_maximum_likelihood_from_a_random_start(family, step):
    """Or the mode of the posterior, if there is a prior; with and without step control."""
    case, source = FAMILIES[family], source_of(FAMILIES[family])
    rule = GDT(lam=1.0, step=step)
    ml = run(exact(family), ML(), Serial(), source, updates=0)
    gdt = run(case, rule, Serial(), source, RandomLabels(3), updates=80)
    likelihoods = [run_.history[-1].objective for run_ in (gdt, ml)]
    assert likelihoods[0] == pytest.approx(likelihoods[1], abs=1e-9)


@pytest.mark.parametrize("family", HIDDEN)
def test_trade_off_one_ends_at_a_fixed_point_of_expectation_maximization(family):
    """From the labels, not from every start: further steps hardly raise the likelihood.

    Where the likelihood is nearly flat, 200 updates do not reach the end: then they were still rising themselves.
    """
    case, source = exact(family), source_of(FAMILIES[family])
    gdt = run(case, GDT(lam=1.0), Serial(), source, updates=200)
    further = Run(gdt.model, ML(), gdt.best.state, stop=Never(), limit=5)
    learn([further], source, Serial())
    objective = [entry.objective for entry in gdt.history]
    gain, last_gain = further.history[-1].objective - objective[-1], objective[-1] - objective[-51]
    assert 0 <= gain + 1e-12 < max(NoGain().tolerance / 10, last_gain)
    assert objective[-1] > objective[0]


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
        run(case, GDT(lam=0.0, step=0.1), Serial(), source).candidate.state.value,
        run(case, RC(step=0.1), Serial(), source).candidate.state.value,
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_calibration_does_not_change_the_sum_of_class_counts(family):
    case, source = FAMILIES[family], source_of(FAMILIES[family])
    run_ = run(case, RC(step=0.05), Serial(), source, updates=3)
    assert run_.candidate.state.value["class_prior"]["count"].sum() == pytest.approx(
        source.weight.sum(), rel=1e-12
    )


@pytest.mark.parametrize("family", COUNTING)
def test_discriminative_frequencies_increase_class_counts_by_the_soft_error(family):
    case, source = FAMILIES[family], source_of(FAMILIES[family])
    run_ = run(case, DFE(), Serial(), source, updates=3)
    expected = source.weight.sum() * (1.0 + sum(entry.soft_error for entry in run_.history[:-1]))
    assert run_.candidate.state.value["class_prior"]["count"].sum() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("family", "class_alpha"), [(family, 25.0 * (number % 2)) for number, family in enumerate(LIKELIEST)]
)
def test_trade_off_converges_to_a_maximum_of_its_objective(family, class_alpha):
    """There lam S = s(Y) - (1 - lam) s(P), and no small change of the statistics raises the objective.

    With a prior this equation may have a negative solution: a cell without rows of a class has a positive probability, and
    (1 - lam) s(P) is subtracted from its count. Such counts stay as they are, so that the end is a fixed point of the
    update, but no maximum.
    """
    case, source = FAMILIES[family], source_of(FAMILIES[family])
    run_ = run(case, GDT(lam=0.7), Serial(), source, updates=400, class_alpha=class_alpha)
    block, end = source.parts()[0](), run_.accepted.state.value
    sums = measure(block, run_.model, run_.rule, run_.accepted.parameters)["statistics"]
    solution = scale(1.0 / 0.7, sums)
    valid_solution = run_.model.keep_valid(end, solution)[0]
    assert largest_difference(valid_solution, end) < 1e-3
    if largest_difference(valid_solution, solution) > 1e-8:
        # Where rows are divided among densities, a count may vanish in the limit only.
        vanishes = case.has_hidden and isinstance(case.family, CountStatistics)
        assert vanishes or not case.scale_free, "a solution without a prior has no negative counts"
        return
    assert_allclose(sums["class_prior"]["count"], 0.7 * end["class_prior"]["count"], rtol=1e-4)

    def objective(statistics):
        parameters = run_.model.parameters(statistics)
        total = measure(block, run_.model, run_.rule, parameters, last=True)["objective"]
        return total + run_.rule.shrink * run_.model.log_prior(parameters)

    rng = generator(0)
    for _ in range(10):
        factors = map_leaves(lambda leaf: 1.0 + 0.01 * rng.normal(size=leaf.shape), end)
        changed = map_leaves(lambda a, b: a * _symmetric(b), end, factors)
        valid = run_.model.keep_valid(end, changed)[0]
        assert objective(valid) < objective(end) + 1e-6


def largest_difference(left, right):
    """The largest difference of two trees, relative to the largest entry of the array it is in."""
    differences = map_leaves(lambda a, b: np.abs(a - b).max() / np.abs(a).max(), left, right)
    return max(difference for arrays in differences.values() for difference in arrays.values())


def _symmetric(factors):
    """Factors that keep matrices symmetric: the mean with the transpose."""
    is_square = factors.ndim == 3 and factors.shape[1] == factors.shape[2]
    return (factors + np.swapaxes(factors, 1, 2)) / 2 if is_square else factors


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
    rng = generator(0)
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


def two_classes():
    rng = generator(0)
    return rng.normal(size=(60, 2)) + np.repeat([[0], [1]], 30, axis=0), np.repeat([0, 1], 30)


@pytest.mark.parametrize("rule", ["ml", "rc", "tm", "gdt", "gd", "em"])
def test_rules_do_not_change_given_priors(rule):
    model = GaussianNB(rule=rule, priors=[0.9, 0.1], stop=None, max_iter=5).fit(*two_classes())
    assert_allclose(model.class_prior_, [0.9, 0.1], rtol=1e-12)


@pytest.mark.parametrize("estimator", [LinearDiscriminantAnalysis, GenerativeLogisticRegression])
def test_gradient_descent_lowers_the_log_loss_under_given_priors(estimator):
    model = estimator(rule="gd", priors=[0.9, 0.1], stop=None, max_iter=30).fit(*two_classes())
    assert np.all(np.diff(model.history_["log_loss"]) < 0)


@pytest.mark.parametrize("priors", [None, [0.5, 0.5]])
def test_a_gradient_step_that_overflows_is_not_taken(priors):
    X, y = 1e99 * two_classes()[0], two_classes()[1]
    ml, gd = (GenerativeLogisticRegression(rule=rule, priors=priors) for rule in ("ml", "gd"))
    with pytest.warns(ConvergenceWarning, match="diverged.* smaller step or standardize the columns"):
        gd.fit(X, y)
    assert_array_equal(gd.predict_proba(X), ml.fit(X, y).predict_proba(X))


def test_step_control_shortens_a_gradient_step_that_overflows():
    X, y = 2e77 * two_classes()[0], two_classes()[1]
    model = GenerativeLogisticRegression(rule=GD(step=Backtracking(tries=2000)), stop=None, max_iter=5)
    model.fit(X, y)
    history = model.history_
    assert len(history["objective"]) == 6
    assert np.all(np.diff(history["objective"]) >= 0)
    assert history["step"][1] < 1e-100


def test_class_prior_keeps_the_count_of_a_frozen_class():
    prior = ClassPrior().bind(Layout(("a", "b"), ()))
    valid, frozen = prior.keep_valid(
        {"count": np.array([5.0, 5.0])}, {"count": np.array([4.0, 6.0])}, np.array([True, False])
    )
    assert_allclose(valid["count"], [5.0, 6.0])
    assert frozen == 1


def test_a_run_without_updates_ends_at_its_start():
    case, source = FAMILIES["categorical"], source_of(FAMILIES["categorical"])
    run_ = run(case, RC(), Serial(), source, updates=0)
    assert len(run_.history) == 1
    again = Run(run_.model, run_.rule, run_.state, stop=Never(), limit=0)
    learn([again], source, Serial())
    assert_trees_close(again.best.parameters, run_.best.parameters)

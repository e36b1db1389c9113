"""`RC.paper` and its kin against algorithm 1 of the papers, written anew: one row at a time, state by state.

The classifiers are those of `test_plain_reference`, which share no code with the library. What an invalid update does is
written here for the matrix S of statistics, whose rows are the classes.
"""

from itertools import count

import numpy as np
import pytest
from sklearn.base import clone

import calibayes
from calibayes import GaussianNB
from calibayes.engines import Serial
from calibayes.learn import LastState
from calibayes.rules import DFE, GD, RC, TM
from tests.cases import FAMILIES
from tests.learn.training import begun, source_of
from tests.oracles.test_plain_reference import MODELS, codes, numbers

CLOSE = {"rtol": 1e-10, "atol": 1e-10}
SHARED = {"lr"}
"""Models with statistics that the classes share: all classes freeze or none."""


def freeze(name, old, new):
    return MODELS[name][1].keep_valid(old, new)


def freeze_classes(name, old, new):
    changed = (freeze(name, old, new) != new).any(axis=1, keepdims=True)
    return np.where(changed | (name in SHARED and changed.any()), old, new)


def end(name, old, new):
    return new if (freeze(name, old, new) == new).all() else None


INVALID = {"freeze": freeze, "by_class": freeze_classes, "stop": end}
WEIGHTS = {"rc": lambda Y, P: Y - P, "dfe": lambda Y, P: Y * (1 - P)}


def states(name, weights, step, invalid, X, Y):
    """The states before which algorithm 1 does not end: (parameters, posterior)."""
    plain = MODELS[name][1]
    S = plain.stats(X, Y)
    while S is not None:
        parameters = plain.parameters(S)
        P = plain.posterior(parameters, X)
        yield parameters, P
        S = INVALID[invalid](name, S, S + step * plain.stats(X, WEIGHTS[weights](Y, P)))


def descent(name, step, X, Y):
    """Gradient descent: parameters, not statistics, change."""
    plain = MODELS[name][1]
    parameters = plain.parameters(plain.stats(X, Y))
    for _ in count():
        P = plain.posterior(parameters, X)
        yield parameters, P
        gradient = plain.stats(X, Y - P)[:, : parameters.shape[1]]
        parameters = plain.after_gradient(parameters + step / len(X) * gradient)


def until_the_soft_error_rises(path, Y, T):
    """Steps 7 to 12: the states up to the first whose soft error is larger than that of the state before."""
    visited, errors = [], []
    for t, (parameters, P) in zip(range(T + 1), path, strict=False):
        visited.append(parameters)
        errors.append(np.mean(1 - (P * Y).sum(axis=1)))
        if t and errors[-1] > errors[-2]:
            break
    return visited, np.array(errors)


def compare(name, rule, path, data, T):
    X, y, Y, fresh = data
    estimator, plain, _ = MODELS[name]
    visited, errors = until_the_soft_error_rises(path, Y, T)
    model = clone(estimator).set_params(rule=rule, max_iter=T).fit(X, y)
    np.testing.assert_allclose(model.history_["soft_error"], errors, **CLOSE)
    assert model.best_iter_ == errors.argmin()
    np.testing.assert_allclose(
        model.predict_proba(fresh), plain.posterior(visited[errors.argmin()], fresh), **CLOSE
    )
    for t, parameters in enumerate(visited):
        after = clone(model).set_params(stop=LastState(), max_iter=t).fit(X, y)
        for Z in (X, fresh):
            np.testing.assert_allclose(after.predict_proba(Z), plain.posterior(parameters, Z), **CLOSE)
    return model, errors


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # twelve updates are few
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", ["nb", "smooth_nb", "qda", "gnb", "lr"])
@pytest.mark.parametrize("rule", [RC.paper(), TM.paper()], ids=["rc", "tm"])
def test_algorithm_1(rule, name, k):
    X, y, Y, fresh = MODELS[name][2](k)
    compare(name, rule, states(name, "rc", rule.step, "freeze", X, Y), (X, y, Y, fresh), 12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", ["nb", "smooth_nb"])
def test_discriminative_frequency_estimate(name, k):
    X, y, Y, fresh = codes(k)
    compare(name, DFE.paper(), states(name, "dfe", 0.1, "freeze", X, Y), (X, y, Y, fresh), 12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", ["nb", "smooth_nb", "lr"])
def test_gradient_descent(name, k):
    X, y, Y, fresh = MODELS[name][2](k)
    compare(name, GD.paper(), descent(name, 0.1, X, Y), (X, y, Y, fresh), 12)


FREEZING = {  # data on which a step of 1 makes statistics invalid while the soft error falls
    "nb": codes(2, noise=0.05),
    "smooth_nb": codes(3, noise=0.05),
    "qda": numbers(3, n=60, seed=2, apart=0.3),
    "gnb": numbers(3, n=60, seed=10, apart=0.3),
    "lr": numbers(2, seed=3),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("invalid", INVALID)
@pytest.mark.parametrize("name", FREEZING)
def test_invalid_updates(name, invalid):
    """Each policy, over the updates of TM whether or not the soft error rises: that is where most becomes invalid."""
    X, y, Y, fresh = FREEZING[name]
    estimator, plain, _ = MODELS[name]
    path = list(zip(range(13), states(name, "rc", 1.0, invalid, X, Y), strict=False))
    for t, (parameters, _) in path:
        rule = TM(invalid=invalid)
        model = clone(estimator).set_params(rule=rule, stop=LastState(), max_iter=t).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(fresh), plain.posterior(parameters, fresh), **CLOSE)
    whole = clone(estimator).set_params(rule=rule, stop=None, max_iter=12).fit(X, y)
    assert len(whole.history_["error"]) == len(path)
    if invalid == "stop":
        assert len(path) < 13
        assert not whole.history_["frozen"].any()
    else:
        assert whole.history_["frozen"].any()


def test_an_adaptive_step_is_shortened_until_the_update_is_valid():
    X, y, _, _ = FREEZING["gnb"]
    estimator = clone(MODELS["gnb"][0])
    model = estimator.set_params(rule=RC(invalid="stop"), stop=None, max_iter=40).fit(X, y)
    assert model.n_iter_ > 1
    assert not model.history_["frozen"].any()
    assert (np.diff(model.history_["objective"]) >= -1e-12).all()


@pytest.mark.parametrize("name", [name for name, case in FAMILIES.items() if not case.has_hidden])
def test_a_class_keeps_all_or_nothing(name):
    """For every family: after long steps in a random direction, classes are moved whole or not at all, and validly."""
    case, source = FAMILIES[name], source_of(FAMILIES[name])
    run, start = begun(case, RC(step=1.0), Serial(), source)
    block = next(iter(source.parts()))()
    for seed in range(6):
        weights = np.random.default_rng(seed).normal(size=(len(block.weight), case.k))
        moves = run.model.statistics(block, weights * 4.0**seed, run.candidate.parameters)
        proposed = {
            part: {n: a + moves[part][n] for n, a in arrays.items()} for part, arrays in start.items()
        }
        kept, frozen = run.model.keep_valid_classes(start, proposed)
        assert run.model.keep_valid(start, kept)[1] == 0
        is_old = [
            (a == start[part][n]).reshape(len(a), -1).all(axis=1)
            for part, arrays in kept.items()
            for n, a in arrays.items()
            if len(a) == case.k
        ]
        is_new = [
            (a == proposed[part][n]).reshape(len(a), -1).all(axis=1)
            for part, arrays in kept.items()
            for n, a in arrays.items()
            if len(a) == case.k
        ]
        assert (np.all(is_old, axis=0) | np.all(is_new, axis=0)).all()
        assert (frozen > 0) == (not np.all(is_new))


@pytest.mark.parametrize("rule", [RC, TM])
def test_unknown_names(rule):
    with pytest.raises(ValueError, match=r"invalid must be one of 'freeze', 'by_class', 'stop', got 'thaw'"):
        rule(invalid="thaw")
    with pytest.raises(ValueError, match=r"stop must be one of 'objective', 'soft_error', got None"):
        rule(stop=None)


def test_the_stop_of_an_estimator_is_heeded():
    """The preset's stop is what "objective" means; any other stop is the estimator's own."""
    X, y, _, _ = numbers(3)
    model = GaussianNB(rule=TM.paper(), max_iter=30).fit(X, y)
    longer = GaussianNB(rule=TM.paper(), max_iter=30, stop=None).fit(X, y)
    in_a_list = GaussianNB(rule=TM.paper(), max_iter=30, stop=["objective", LastState()]).fit(X, y)
    assert model.n_iter_ == in_a_list.n_iter_ < longer.n_iter_ == 30


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rule", [RC.paper(invalid="by_class"), TM.paper(invalid="stop"), GD.paper(), TM()])
def test_a_saved_model_keeps_its_rule(rule, tmp_path):
    X, y, _, _ = numbers(3)
    model = GaussianNB(rule=rule, max_iter=5, stop=["objective", LastState()]).fit(X, y)
    calibayes.save(model, tmp_path / "model.safetensors")
    loaded = calibayes.load(tmp_path / "model.safetensors")
    assert loaded.rule == loaded.fitted_.rule == rule
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))

"""Hidden Markov models: densities and expected counts equal sums over all paths of hidden states."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibayes as cb
from calibayes.core.protocols import Layout
from calibayes.families import Dirichlet
from calibayes.sequences import HiddenMarkov, SequenceClassifier
from tests.estimators.presets.test_sequence_classifier import rows, with_gaps

SYMBOLS, K = 3, 2
LAYOUT = Layout(("a", "b"), ("x",), levels=(SYMBOLS,))


def family(states, **options):
    return HiddenMarkov(states=states, **options).bind(LAYOUT)


def codes(n=12, length=5, seed=0):
    """Rows of several lengths with gaps, one of them empty."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, SYMBOLS, (n, length))
    table[rng.random((n, length)) < 0.2] = -1
    table[np.arange(length) >= rng.integers(1, length + 1, n)[:, None]] = -1
    table[0] = -1
    return table


def random_parameters(states, seed=1):
    rng = np.random.default_rng(seed)
    shapes = {
        "log_initial": (K, states),
        "log_transition": (K, states, states),
        "log_emission": (K, states, SYMBOLS),
    }
    return {name: np.log(rng.dirichlet(np.ones(shape[-1]), shape[:-1])) for name, shape in shapes.items()}


def paths(row, parameters, c):
    """Each path of hidden states up to the last known symbol, with its joint probability with the symbols."""
    initial, transition, emission = (
        np.exp(parameters[f"log_{name}"][c]) for name in ("initial", "transition", "emission")
    )
    length = int(np.max(np.flatnonzero(row >= 0), initial=-1)) + 1
    for path in product(range(len(initial)), repeat=length):
        probability = 1.0
        for t, state in enumerate(path):
            probability *= initial[state] if t == 0 else transition[path[t - 1], state]
            probability *= emission[state, row[t]] if row[t] >= 0 else 1.0
        yield path, probability


@pytest.mark.parametrize("states", [1, 2, 3])
def test_density_is_the_sum_over_all_paths(states):
    table, parameters = codes(), random_parameters(states)
    expected = [[np.log(sum(p for _, p in paths(row, parameters, c))) for c in range(K)] for row in table]
    density = family(states).log_density(table, parameters)
    assert_allclose(density, expected, rtol=1e-12, atol=1e-14)
    assert_allclose(
        family(states).position_terms(table, parameters).sum(axis=2), density, rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("states", [1, 2, 3])
def test_terms_of_positions_are_ratios_of_sums_over_paths(states):
    table, parameters = codes(6), random_parameters(states)
    terms = family(states).position_terms(table, parameters)
    for i, row in enumerate(table):
        for c, t in product(range(K), np.flatnonzero(row >= 0)):
            until, before = (np.where(np.arange(len(row)) < end, row, -1) for end in (t + 1, t))
            sums = [sum(p for _, p in paths(part, parameters, c)) for part in (until, before)]
            assert terms[i, c, t] == pytest.approx(np.log(sums[0] / sums[1]), rel=1e-10)


@pytest.mark.parametrize("states", [1, 2, 3])
def test_expected_counts_are_sums_over_all_paths(states):
    """With weights of both signs, gaps, and nothing from an empty row."""
    table, parameters = codes(), random_parameters(states)
    weights = np.random.default_rng(2).normal(size=(len(table), K))
    shapes = family(states)._shapes
    expected = {name: np.zeros(shape) for name, shape in shapes.items()}
    for row, weight in zip(table, weights, strict=True):
        for c in range(K):
            found = list(paths(row, parameters, c))
            total = sum(p for _, p in found)
            for path, p in found if (row >= 0).any() else []:
                share = weight[c] * p / total
                expected["initial"][c, path[0]] += share
                for t, state in enumerate(path):
                    if t:
                        expected["transition"][c, path[t - 1], state] += share
                    if row[t] >= 0:
                        expected["emission"][c, state, row[t]] += share
    counts = family(states).statistics(table, weights, parameters)
    for name, value in expected.items():
        assert_allclose(counts[name], value, rtol=1e-10, atol=1e-12)


def test_wider_tables_give_the_same_counts():
    """The width of a block depends on its longest sequence."""
    table, parameters = codes(), random_parameters(2)
    wider = np.concatenate([table, np.full((len(table), 4), -1)], axis=1)
    weights = np.ones((len(table), K))
    for given in (None, parameters):
        left, right = (family(2).statistics(part, weights, given) for part in (table, wider))
        for name, value in left.items():
            assert_allclose(right[name], value, rtol=1e-12, atol=1e-14)


def test_long_sequences_do_not_underflow():
    parameters = random_parameters(3)
    long = np.random.default_rng(4).integers(0, SYMBOLS, (2, 5000))
    density = family(3).log_density(long, parameters)
    assert np.isfinite(density).all()
    assert (density < -2000).all()
    assert_allclose(
        family(3).statistics(long, np.ones((2, K)), parameters)["emission"].sum(), 2 * K * 5000, rtol=1e-9
    )


def test_one_state_is_a_bag_of_symbols():
    X, y = rows()
    chain = SequenceClassifier(family=cb.sequences.MarkovChain(order=0, alpha=0.5), rule="ml").fit(X, y)
    hidden = SequenceClassifier(family=HiddenMarkov(states=1, alpha=0.5), rule="ml").fit(X, y)
    assert_allclose(hidden.predict_joint_log_proba(X), chain.predict_joint_log_proba(X), rtol=1e-12)


def test_maximum_likelihood_finds_the_states_of_a_simulated_model():
    """Two states that emit one symbol each nearly always, and change rarely; in the other class they change often."""
    rng, y = np.random.default_rng(7), np.arange(300) % 2
    X = []
    for label in y:
        changes = rng.random(30) < (0.1, 0.5)[label]
        states = np.cumsum(changes) % 2
        X.append(["ab"[state] if rng.random() < 0.95 else "ba"[state] for state in states])
    model = SequenceClassifier(family=HiddenMarkov(states=2), rule="ml", max_iter=300).fit(X, y)
    transition, emission = (
        np.exp(model.parameters_["x0"][f"log_{name}"][0]) for name in ("transition", "emission")
    )
    assert_allclose(np.sort(np.diag(transition)), 0.9, atol=0.03)
    assert_allclose(np.sort(emission.ravel()), [0.05, 0.05, 0.95, 0.95], atol=0.03)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("rule", ["map", "rc", "tm", "gdt"])
def test_rules_lower_the_training_log_loss(rule):
    X, y = rows(120)
    X, losses = with_gaps(X), []
    for chosen in ("ml", rule):
        model = SequenceClassifier(
            family=HiddenMarkov(states=2, prior=Dirichlet(2.0)), rule=chosen, max_iter=30, stop=None
        ).fit(X, y)
        losses.append(-np.mean(model.predict_log_proba(X)[np.arange(len(y)), y]))
    assert losses[1] < losses[0] + 1e-9


def test_files_keep_the_model(tmp_path):
    X, y = rows()
    model = SequenceClassifier(family=HiddenMarkov(states=2, alpha=0.5), max_iter=5, stop=None).fit(X, y)
    cb.save(model, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(
        cb.load(tmp_path / "model.safetensors").predict_proba(X), model.predict_proba(X)
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HiddenMarkov(states=0), "states of a HiddenMarkov must be a whole number from 1 on, got 0"),
        (lambda: HiddenMarkov(seed=-1), "seed of a HiddenMarkov must be a whole number"),
        (lambda: HiddenMarkov(alpha=-1.0), "alpha of a HiddenMarkov must be a number from 0 on"),
        (lambda: HiddenMarkov(prior=2.0), "must be a Dirichlet"),
        (lambda: HiddenMarkov(alpha=1.0, prior=Dirichlet()), "not both"),
        (lambda: SequenceClassifier(family=HiddenMarkov(), rule="gd").fit(*rows()), "gd"),
        (lambda: SequenceClassifier(family=HiddenMarkov(), rule="dfe").fit(*rows()), "dfe"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()

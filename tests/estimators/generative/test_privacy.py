"""Differentially private training: sensitivities, noise, accounting, and that nothing else of the rows is in the model."""

import math
import pickle
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.base import clone

import calibayes as cb
from calibayes.analysis import private_training as private_sums
from calibayes.analysis.privacy import delta_of, discrete_gaussian, rho_of
from calibayes.families.joint_model import PRIOR
from calibayes.trust import Privacy, PrivacyAccount
from tests.seeds import generator

GIVEN = {
    "classes": ["no", "yes"],
    "bounds": {"age": (0, 100), "size": (-1.0, 3.0)},
    "levels": {"color": ["blue", "green", "red"]},
    "missing": ["size"],
}
KINDS = {"age": "gaussian", "size": "gaussian"}


def table(n=300, seed=0):
    rng = generator(seed)
    y = rng.integers(0, 2, n)
    X = pd.DataFrame(
        {
            "age": rng.normal(40 + 15 * y, 12),
            "color": np.array(["blue", "green", "red", "purple"])[rng.integers(0, 3, n) + y],
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(y, 0.5)),
        }
    )
    return X, np.array(GIVEN["classes"])[y]


def options(epsilon=1.0, **changes):
    privacy = Privacy(epsilon=epsilon, delta=1e-6, **{**GIVEN, "seed": 0, **changes})
    return cb.TrainingOptions(privacy=privacy)


def model(epsilon=1.0, **changes):
    return cb.NaiveBayes(rule="ml", kinds=KINDS, training=options(epsilon, **changes))


SEEDED = pytest.mark.filterwarnings("ignore:Privacy:UserWarning")


class Captured(Exception):
    """The sums of a training, before noise."""


def exact_sums(estimator, X, y, monkeypatch):
    """All sums that a private training releases, before noise."""
    found = {}

    def capture(sums, variances, source):
        found.update({total.name: total for total in sums})
        raise Captured

    monkeypatch.setattr(private_sums, "add_noise", capture)
    with pytest.raises(Captured):
        clone(estimator).fit(X, y)
    return found


MODELS = {
    "mixed": lambda: model(),
    "bins": lambda: cb.NaiveBayes(rule="map", discretize="uniform", n_bins=7, training=options()),
}


@SEEDED
@pytest.mark.parametrize("name", MODELS)
def test_one_row_changes_no_sum_by_more_than_its_sensitivity(name, monkeypatch):
    X, y = table(40)
    X.loc[:9, "age"] = [0, 100, 1e6, -1e6, 100, 0, 50, 100, 100, 0]  # corners, and beyond
    X.loc[:9, "size"] = [-1, 3, 3, -1, np.nan, 99, 1, 1, 3, -1]
    whole = exact_sums(MODELS[name](), X, y, monkeypatch)
    largest = dict.fromkeys(whole, 0.0)
    for row in range(len(y)):
        keep = np.arange(len(y)) != row
        without = exact_sums(MODELS[name](), X[keep], y[keep], monkeypatch)
        assert without.keys() == whole.keys()
        for key, total in whole.items():
            change = float(np.linalg.norm((total.values - without[key].values).astype(float)))
            assert change <= total.sensitivity * (1 + 1e-12), key
            largest[key] = max(largest[key], change / total.sensitivity)
    assert min(largest.values()) > 0.99  # no sensitivity is larger than it must be


@SEEDED
@pytest.mark.parametrize(
    "estimator",
    [
        cb.CategoricalNB(
            rule="ml", training=cb.TrainingOptions(privacy=Privacy(1, 1e-6, [0, 1], levels=range(3), seed=1))
        ),
        cb.BernoulliNB(
            rule="ml", training=cb.TrainingOptions(privacy=Privacy(1, 1e-6, [0, 1], bounds=(0, 1), seed=1))
        ),
        cb.GaussianNB(
            rule="ml", training=cb.TrainingOptions(privacy=Privacy(1, 1e-6, [0, 1], bounds=(0, 2), seed=1))
        ),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_the_noise_of_all_sums_spends_the_account(estimator):
    rng = generator(3)
    X, y = rng.integers(0, 3, size=(200, 4)), rng.integers(0, 2, 200)
    account = clone(estimator).fit(X, y).privacy_account_
    account.verify()
    assert_allclose(account.spent, account.rho, rtol=1e-4)
    assert account.spent <= account.rho
    assert account.rho == rho_of(1.0, 1e-6)
    assert account.is_seeded


def test_the_noise_is_a_discrete_gaussian():
    source, variance = random.Random(4), Fraction(7, 3)
    drawn = np.array([discrete_gaussian(variance, source) for _ in range(20_000)])
    support = np.arange(-40, 41)
    mass = np.exp(-(support**2) / (2 * float(variance)))
    mass /= mass.sum()
    frequency = (drawn[:, None] == support).mean(axis=0)
    deviation = np.sqrt(mass * (1 - mass) / len(drawn))
    assert np.all(np.abs(frequency - mass) <= 5 * deviation + 1e-3 * (mass < 1e-5))
    wide = Fraction(2**40)
    large = np.array([discrete_gaussian(wide, source) for _ in range(5_000)], dtype=float) / 2**20
    assert abs(large.std() - 1) < 0.05
    assert abs(large.mean()) < 0.06
    assert norm.cdf(large[:500]).std() == pytest.approx(math.sqrt(1 / 12), abs=0.03)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_the_conversion_lies_between_the_exact_one_and_the_simple_one(epsilon, delta):
    rho = rho_of(epsilon, delta)
    assert delta_of(rho, epsilon) <= delta
    # Bun and Steinke (2016): rho-zCDP implies epsilon = rho + 2 sqrt(rho log(1 / delta)).
    simple = (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2
    assert simple < rho
    # Balle and Wang (2018): the exact delta of a Gaussian mechanism with the same rho.
    mu = math.sqrt(2 * rho)
    exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert exact <= delta * (1 + 1e-9)
    orders = 1 + np.geomspace(1e-3, 1e5, 20_001)
    bounds = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
    assert_allclose(delta_of(rho, epsilon), np.exp(bounds.min()), rtol=1e-5)


def test_a_count_with_noise_keeps_the_promise_exactly():
    """The privacy loss of neighboring counts, summed over all outcomes."""
    for epsilon, delta in ((0.5, 1e-3), (2.0, 1e-6)):
        total = private_sums.RowSum("count", np.zeros((1, 1), dtype=int), 1)
        variance = float(private_sums.noise_variances([total], rho_of(epsilon, delta))[0])
        reach = np.arange(-int(40 * math.sqrt(variance)) - 2, int(40 * math.sqrt(variance)) + 3)
        mass, other = (np.exp(-((reach - shift) ** 2) / (2 * variance)) for shift in (0, 1))
        mass, other = mass / mass.sum(), other / other.sum()
        assert np.maximum(mass - math.exp(epsilon) * other, 0).sum() <= delta
        assert (
            np.maximum(mass - math.exp(epsilon * 0.7) * other, 0).sum() > delta
        )  # the noise is not needlessly large


def test_outcomes_of_neighboring_tables_are_nearly_as_probable():
    """Likelihood ratios of released sums, by simulation, on a table of two rows."""
    epsilon, delta, draws = 1.0, 0.05, 4_000
    released = []
    for n, seed in ((2, 1), (1, 2)):
        codes = np.zeros(n, dtype=int)
        sums = [
            private_sums.prior_sum(codes, 1),
            *private_sums.level_sums("c", codes[:, None], codes, (2,), 1),
        ]
        variances = private_sums.noise_variances(sums, rho_of(epsilon, delta))
        source = random.Random(seed)
        drawn = [private_sums.add_noise(sums, variances, source) for _ in range(draws)]
        released.append(np.array([d[f"{PRIOR}/count"][0, 0] + d["c/count/0"][0, 0] for d in drawn]))
    for these, those in (released, released[::-1]):
        for threshold in range(-6, 10):
            for event in (np.greater_equal, np.less):
                p, q = event(these, threshold).mean(), event(those, threshold).mean()
                assert p <= math.exp(epsilon) * q + delta + 4 * math.exp(epsilon) * 0.5 / math.sqrt(draws)


def test_without_a_seed_the_noise_differs():
    X, y = table()
    estimator = model(seed=None)
    first, second = (clone(estimator).fit(X, y) for _ in range(2))
    assert not first.privacy_account_.is_seeded
    assert not np.array_equal(first.class_count_, second.class_count_)


def test_a_seed_warns_that_there_is_no_promise():
    with pytest.warns(UserWarning, match="no promise of privacy"):
        fitted = model().fit(*table())
    assert "SEEDED: no promise" in str(fitted.summary())


@SEEDED
def test_nothing_of_the_rows_but_the_noised_sums_is_in_the_model(monkeypatch, tmp_path):
    """With the released sums fixed, models of entirely different rows are the same files, byte by byte."""
    monkeypatch.setattr(
        private_sums,
        "add_noise",
        lambda sums, variances, source: {total.name: np.full(total.values.shape, 17) for total in sums},
    )
    other_X = table(77, seed=9)[0]
    other_X = other_X.assign(age=1e5, color="never", size=np.nan)
    files = []
    for number, (X, y) in enumerate([table(), (other_X, np.full(77, "no"))]):
        fitted = model().fit(X, y)
        cb.save(fitted, tmp_path / f"{number}.safetensors")
        files.append((tmp_path / f"{number}.safetensors").read_bytes())
        assert "_training" not in vars(fitted)
    assert files[0] == files[1]


@SEEDED
def test_with_little_noise_it_is_the_closed_form():
    X, y = table(2000)
    X = X.assign(
        color=X.color.where(X.color != "purple", None), age=X.age.clip(0, 100), size=X["size"].clip(-1, 3)
    )
    private, plain = (
        estimator.fit(X, y) for estimator in (model(1e6), cb.NaiveBayes(rule="ml", kinds=KINDS))
    )
    assert_allclose(private.predict_proba(X), plain.predict_proba(X), atol=5e-3)
    assert private.training_table_.rows == 2000


@SEEDED
def test_error_falls_with_epsilon():
    X, y = table(1500)
    errors = [
        np.mean([1 - model(e, seed=s).fit(X, y).score(X, y) for s in range(12)]) for e in (0.02, 0.3, 10.0)
    ]
    assert errors[0] > errors[1] + 0.02
    assert errors[1] >= errors[2] - 0.01
    assert errors[2] < 0.2


@SEEDED
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bounds": {"age": (0, 100)}}, "neither bounds nor levels of column 'size'"),
        ({"bounds": {"age": (9, 3), "size": (0, 1)}}, "low below high"),
        ({"levels": {"color": ["red", "red"]}}, "must be distinct"),
        (
            {"bounds": {"size": (0, 1)}, "levels": {"color": ["red"], "age": [1, 2]}},
            "'age' is modeled by its bounds",
        ),
        ({"levels": {}}, "neither bounds nor levels of column 'color'"),
        ({"classes": []}, "needs all classes"),
        ({"classes": ["no"]}, "do not exist in the initial classes"),
        ({"missing": ()}, r"'size' has missing cells: name it in Privacy\(missing"),
        ({"epsilon": 0}, "epsilon of Privacy must be a number above 0"),
    ],
)
def test_what_is_not_given_is_never_taken_from_the_rows(changes, message):
    with pytest.raises(ValueError, match=message):
        model(**changes).fit(*table())


@SEEDED
def test_trainings_that_read_rows_without_noise_are_refused():
    X, y = table()
    fitted = model().fit(X, y)
    for call, message in (
        (lambda: model().set_params(rule="rc").fit(X, y), "needs a closed form"),
        (lambda: model().fit(X, y, np.ones(len(y))), "counts each row once"),
        (lambda: model().set_params(class_weight="balanced").fit(X, y), "counts each row once"),
        (lambda: cb.NaiveBayes(rule="ml", training=options()).fit(X, y), "modeled by KernelDensity"),
        (lambda: model().set_params(rare_levels=2).fit(X, y), "privacy is for Gaussian densities"),
        (lambda: model().partial_fit(X, y, classes=GIVEN["classes"]), "privacy is for one `fit`"),
        (lambda: fitted.partial_fit(X, y), "privacy is for one `fit`"),
        (lambda: fitted.forget(X[:2], y[:2]), "sums of a private model have noise"),
        (lambda: cb.cross_validate_closed_form(model(), X, y), "privacy is for one `fit`"),
        (lambda: cb.CalibratedTrees(training=options()).fit(X, y), "no training options"),
        (
            lambda: cb.QuadraticDiscriminantAnalysis(rule="ml", training=options()).fit(X[["age"]], y),
            "privacy is for",
        ),
        (
            lambda: cb.CategoricalNB(rule="ml", training=options(bounds=(0, 9))).fit(X[["color"]], y),
            "'color' is modeled by its levels",
        ),
        (lambda: fitted.held_out_, "refers to no training rows"),
        (lambda: fitted.with_held_out(X, y, cv=2), "record of training rows would be in the model"),
        (lambda: cb.NaiveBayes(training=cb.TrainingOptions(privacy=1.0)).fit(X, y), "must be Privacy"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@SEEDED
def test_models_of_different_rows_can_be_merged():
    X, y = table()
    first, second = model().fit(X[:150], y[:150]), model().fit(X[150:], y[150:])
    merged = first.merge(second)
    assert merged.privacy_account_ == first.privacy_account_
    assert_allclose(merged.class_count_, first.class_count_ + second.class_count_)
    with pytest.raises(ValueError, match="privacy"):
        first.merge(cb.NaiveBayes(rule="ml", kinds=KINDS).fit(X, y))


@SEEDED
def test_the_account_is_part_of_files_and_must_add_up(tmp_path):
    X, y = table()
    fitted = model().fit(X, y)
    cb.save(fitted, tmp_path / "private.safetensors")
    for other in (cb.load(tmp_path / "private.safetensors"), pickle.loads(pickle.dumps(fitted))):
        assert other.privacy_account_ == fitted.privacy_account_
        assert_allclose(other.predict_proba(X), fitted.predict_proba(X))
    account = fitted.privacy_account_
    assert "epsilon 1, delta 1e-06" in str(fitted.summary())
    for changes in (
        {"scales": tuple(s / 2 for s in account.scales)},
        {"epsilon": 0.5},
        {"sums": account.sums[1:]},
    ):
        with pytest.raises(ValueError, match=r"spend more|more than epsilon|gaps"):
            replace(account, **changes).verify()
    assert isinstance(account, PrivacyAccount)


@SEEDED
def test_numbers_beyond_the_bounds_count_as_the_bounds(monkeypatch):
    X, y = table(60)
    X.loc[:5, "age"] = [200, -50, 1e9, 101, -1, 100]
    beyond = exact_sums(model(), X, y, monkeypatch)
    within = exact_sums(model(), X.assign(age=X.age.clip(0, 100)), y, monkeypatch)
    for key, total in beyond.items():
        assert np.array_equal(total.values, within[key].values)

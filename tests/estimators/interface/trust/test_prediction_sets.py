"""Prediction sets: quantiles by hand, properties of the scores, coverage on simulated rows, and errors."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import calibayes as cb
from calibayes.analysis.prediction_sets import conformal_quantile, probability_score, thresholds
from calibayes.model.classifier import Classifier
from calibayes.trust import AdaptiveScore, HeldOut
from tests.contract.test_scikit_learn import ESTIMATORS

CLASSIFIERS = [estimator for estimator in ESTIMATORS if isinstance(estimator, Classifier)]
every_classifier = pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda made: type(made).__name__)
ACCURACY = 4.0
"""Standard errors that an average of random numbers may be away from its expectation."""


def counts(n, seed=0):
    """Rows of counts and three classes, of which the last is rare."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.35, 0.15])
    return rng.poisson(np.array([[1.0, 3.0, 0.5], [2.0, 1.0, 1.5], [3.5, 0.7, 2.0]])[y]).astype(float), y


def normal(n, seed=0):
    """Rows of three overlapping normal classes of different size."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    return rng.normal(size=(n, 2)) + 1.2 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.5]])[y], y


def record(posterior, codes, weight=None):
    m = len(codes)
    weight = np.ones(m) if weight is None else np.asarray(weight, dtype=float)
    return HeldOut(np.log(np.asarray(posterior)), np.asarray(codes), weight, np.arange(m), "by hand")


def held_out_copy(model, made):
    """The model with another record."""
    copied = model.with_held_out(*normal(10))
    copied.held_out_ = made
    return copied


def true_class(sets, y):
    return sets[np.arange(len(y)), y]


class TestQuantile:
    SCORES = np.array([0.1, 0.5, 0.2, 0.9, 0.4, 0.3, 0.8, 0.6, 0.7])

    @pytest.mark.parametrize(
        ("coverage", "expected"),
        [(0.05, 0.1), (0.1, 0.1), (0.11, 0.2), (0.5, 0.5), (0.8, 0.8), (0.9, 0.9), (0.91, np.inf)],
    )
    def test_nine_scores(self, coverage, expected):
        """The least of which at least coverage * (9 + 1) scores are no larger."""
        assert conformal_quantile(self.SCORES, np.ones(9), coverage) == expected

    def test_is_the_order_statistic_of_the_literature(self):
        """The ceil(coverage * (m + 1))-th smallest of m scores, for many m and coverages."""
        for m in range(1, 60):
            scores = np.random.default_rng(m).permutation(m) + 1.0
            for percent in range(1, 100):
                place = -(-percent * (m + 1) // 100)
                expected = float(place) if place <= m else np.inf
                assert conformal_quantile(scores, np.ones(m), percent / 100) == expected

    def test_whole_weights_are_repeated_rows(self):
        weight = np.array([1, 3, 2, 1, 4, 1, 2, 5, 1])
        repeated = np.repeat(self.SCORES, weight)
        for coverage in (0.1, 0.3, 0.55, 0.8, 0.9, 0.96):
            expected = conformal_quantile(repeated, np.ones(20), coverage)
            assert conformal_quantile(self.SCORES, weight * 1.0, coverage) == expected

    def test_weights_by_hand(self):
        """Weights 1/2, 1/4, 1/4 have the average 3/8, weighted by themselves: the new row has 3/11 of all weight."""
        scores, weight = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.25, 0.25])
        found = [conformal_quantile(scores, weight, coverage) for coverage in (0.36, 0.37, 0.54, 0.55, 0.73)]
        assert found == [1.0, 2.0, 2.0, 3.0, np.inf]

    def test_a_common_factor_of_the_weights_does_not_matter(self):
        weight = np.random.default_rng(0).random(9)
        for coverage in (0.1, 0.5, 0.8):
            expected = conformal_quantile(self.SCORES, weight, coverage)
            assert conformal_quantile(self.SCORES, 8.0 * weight, coverage) == expected

    def test_by_class(self):
        """Class 0 has three rows, class 1 one, and class 2 none."""
        held_out = record([[0.8, 0.1, 0.1], [0.5, 0.3, 0.2], [0.6, 0.2, 0.2], [0.7, 0.2, 0.1]], [0, 0, 0, 1])
        odds = np.exp(thresholds(held_out, probability_score, 0.5, by_class=True))
        assert_allclose(odds, [0.4 / 0.6, 0.8 / 0.2, np.inf])
        assert_allclose(np.exp(thresholds(held_out, probability_score, 0.5, by_class=False)), np.ones(3))
        few = thresholds(held_out, probability_score, 0.8, by_class=True)
        assert_array_equal(few, np.full(3, np.inf))

    def test_by_class_with_weights(self):
        held_out = record([[0.8, 0.2], [0.5, 0.5], [0.6, 0.4], [0.7, 0.3]], [0, 0, 0, 1], [1, 4, 1, 2])
        odds = np.exp(thresholds(held_out, probability_score, 0.5, by_class=True))
        assert_allclose(odds, [1.0, 0.7 / 0.3])


class TestScores:
    def test_the_probability_score_has_the_order_of_one_minus_p(self):
        posterior = np.random.default_rng(0).dirichlet(np.ones(4), 200)
        scores = probability_score(np.log(posterior))
        assert_allclose(scores, np.log((1 - posterior) / posterior), rtol=1e-9, atol=1e-9)

    def test_probabilities_that_round_to_one_are_told_apart(self):
        log_posterior = np.array([[0.0, -50.0], [0.0, -80.0]])
        assert_allclose(probability_score(log_posterior), [[-50.0, 50.0], [-80.0, 80.0]])

    def test_one_class(self):
        assert (probability_score(np.zeros((3, 1))) == -np.inf).all()

    def test_adaptive_by_hand(self):
        posterior = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
        plain = AdaptiveScore(lam=0.0, randomized=False)(np.log(posterior))
        assert_allclose(plain, [[1.0, 0.5, 0.8], [0.9, 1.0, 0.8]])
        penalized = AdaptiveScore(lam=0.1, k_reg=1, randomized=False)(np.log(posterior))
        assert_allclose(penalized - plain, [[0.2, 0.0, 0.1], [0.1, 0.2, 0.0]])

    def test_a_random_part_of_the_own_probability_is_left_out(self):
        posterior = np.random.default_rng(0).dirichlet(np.ones(3), 4000)
        whole = AdaptiveScore(randomized=False)(np.log(posterior))
        part = (whole - AdaptiveScore()(np.log(posterior))) / posterior
        assert_allclose(part, part[:, :1] * np.ones(3), atol=1e-6)
        assert abs(part[:, 0].mean() - 0.5) < ACCURACY * np.sqrt(1 / 12 / 4000)
        assert abs((part[:, 0] < 0.1).mean() - 0.1) < ACCURACY * np.sqrt(0.09 / 4000)
        assert abs(np.corrcoef(part[:, 0], posterior[:, 0])[0, 1]) < ACCURACY / np.sqrt(4000)

    def test_seeds_and_rounding_errors(self):
        log_posterior = np.log(np.random.default_rng(0).dirichlet(np.ones(3), 50))
        scores = AdaptiveScore()(log_posterior)
        assert_allclose(AdaptiveScore()(log_posterior * (1 + 1e-15)), scores, rtol=1e-9)
        assert np.abs(AdaptiveScore(seed=1)(log_posterior) - scores).max() > 0.1

    def test_penalties_make_large_sets_smaller(self):
        X, y = normal(600)
        model = cb.GaussianNB(rule="ml").fit(X, y)
        sizes = [
            model.predict_set(X, 0.95, score=AdaptiveScore(lam, k_reg=1)).sum(axis=1) for lam in (0.0, 1.0)
        ]
        assert (sizes[1] == 3).mean() < (sizes[0] == 3).mean()


@every_classifier
@pytest.mark.filterwarnings("ignore")
def test_sets_of_every_classifier(estimator):
    """Booleans, nested, and of a row alone: the same in any order of rows."""
    X, y = counts(90)
    names, (X_other, y_other) = np.array(["a", "b", "c"]), counts(90, seed=1)
    model = clone(estimator).fit(X, names[y]).with_held_out(X_other, names[y_other])
    for options in ({}, {"by_class": True}, {"score": "adaptive"}):
        large, small = (model.predict_set(X, coverage, **options) for coverage in (0.9, 0.5))
        assert large.dtype == np.bool_
        assert large.shape == (90, 3)
        assert (small <= large).all()
        assert 0.5 * 90 < large.sum() < 2.9 * 90
        assert_array_equal(model.predict_set(X[::-1], 0.9, **options)[::-1], large)
    assert model.predict_set(X, 0.995).all()  # 90 rows are too few


def split_model(X, y):
    half = len(y) // 2
    model = cb.LinearDiscriminantAnalysis(rule="ml").fit(X[:half], y[:half])
    return model.with_held_out(X[half:], y[half:])


def fold_model(X, y):
    return cb.LinearDiscriminantAnalysis(rule="ml").fit(X, y).with_held_out(X, y, cv=5)


@pytest.fixture(scope="module", params=[split_model, fold_model], ids=lambda made: made.__name__)
def models(request):
    """Thirty models of different rows."""
    return [request.param(*normal(300, seed=2 + seed)) for seed in range(30)]


@pytest.mark.parametrize("options", [{}, {"by_class": True}, {"score": "adaptive"}], ids=str)
def test_coverage_on_simulated_rows(models, options):
    """On average over the models; a class has the coverage, too, if it is asked for."""
    X, y = normal(2000, seed=1)
    covered = np.array([true_class(model.predict_set(X, 0.9, **options), y) for model in models])
    found = np.stack([covered.mean(axis=1), *(covered[:, y == code].mean(axis=1) for code in range(3))])
    mean, error = found.mean(axis=1), found.std(axis=1) / np.sqrt(len(models))
    inexact = ACCURACY * (error + np.sqrt(0.09 / np.array([len(y), *np.bincount(y)])))
    promised = slice(1, None) if options.get("by_class") else slice(0, 1)
    fewest = 300 * (0.2 if options.get("by_class") else 1.0) / 2
    assert (mean > 0.9 - inexact)[promised].all()
    assert (mean < 0.9 + 1 / fewest + inexact)[promised].all()  # 0.9 * (m + 1) is rounded up
    if options == {}:  # a quantile of all rows covers large classes better than small ones
        assert mean[1] > mean[3] + 0.02


def test_sets_may_be_empty():
    X, y = normal(400)
    model = cb.GaussianNB(rule="ml").fit(3 * X, y)
    sizes = model.predict_set(3 * X, 0.3).sum(axis=1)
    assert (sizes == 0).any()


@pytest.mark.parametrize("options", [{}, {"by_class": True}, {"score": "adaptive"}], ids=str)
def test_weights_of_held_out_rows(options):
    """Rows of weight 3 are three rows."""
    X, y = normal(200)
    model, (X_new, _) = cb.GaussianNB(rule="ml").fit(*normal(100, seed=1)), normal(1000, seed=2)
    weight = np.where(model.predict(X) == y, 1, 3)
    repeated = np.repeat(np.arange(200), weight)
    sets = model.with_held_out(X, y, weight).predict_set(X_new, 0.6, **options)
    same = model.with_held_out(X[repeated], y[repeated]).predict_set(X_new, 0.6, **options)
    assert_array_equal(sets, same)
    assert (model.with_held_out(X, y).predict_set(X_new, 0.6, **options) < sets).any()


class TestRecords:
    def test_a_loaded_model_without_record_says_what_to_do(self, tmp_path):
        X, y = normal(60)
        cb.save(cb.GaussianNB(rule="ml").fit(X, y), tmp_path / "model.safetensors")
        with pytest.raises(ValueError, match=r"predict_set needs rows.*model.with_held_out\(X, y\)"):
            cb.load(tmp_path / "model.safetensors").predict_set(X)

    def test_a_saved_record_is_used(self, tmp_path):
        X, y = normal(60)
        model = cb.GaussianNB(rule="ml").fit(X, y).with_held_out(*normal(50, seed=1))
        cb.save(model, tmp_path / "model.safetensors")
        assert_array_equal(
            cb.load(tmp_path / "model.safetensors").predict_set(X, 0.8), model.predict_set(X, 0.8)
        )

    def test_the_first_call_leaves_its_record_to_the_file(self, tmp_path):
        X, y = normal(60)
        model = cb.GaussianNB(rule="ml").fit(X, y)
        sets = model.predict_set(X)
        cb.save(model, tmp_path / "model.safetensors")
        assert_array_equal(cb.load(tmp_path / "model.safetensors").predict_set(X), sets)

    def test_classes_without_held_out_rows_are_in_all_sets_by_class(self):
        X, y = normal(60)
        model = cb.GaussianNB(rule="ml").fit(X, y)
        made = model.with_held_out(X[y < 2], y[y < 2]).predict_set(X, 0.5, by_class=True)
        assert made[:, 2].all()
        assert not made[:, :2].all()

    def test_rows_of_a_record_in_any_order(self):
        X, y = normal(60)
        model = cb.GaussianNB(rule="ml").fit(X, y)
        made, order = model.held_out_, np.random.default_rng(0).permutation(60)
        other = replace(
            made,
            **{name: getattr(made, name)[order] for name in ("log_posterior", "codes", "weight", "rows")},
        )
        sets = held_out_copy(model, other).predict_set(X, 0.7, score="adaptive")
        assert_array_equal(sets, model.predict_set(X, 0.7, score="adaptive"))


class TestErrors:
    @pytest.mark.parametrize("coverage", [0, 1, 90, -0.1, "0.9", None, np.nan])
    def test_coverage(self, coverage):
        model = cb.GaussianNB(rule="ml").fit(*normal(30))
        with pytest.raises(ValueError, match="coverage must lie between 0 and 1, both excluded, got"):
            model.predict_set(normal(3)[0], coverage)

    @pytest.mark.parametrize("score", ["raps", None, 3])
    def test_score(self, score):
        model = cb.GaussianNB(rule="ml").fit(*normal(30))
        with pytest.raises(
            ValueError, match="score must be 'probability', 'adaptive' or an AdaptiveScore, got"
        ):
            model.predict_set(normal(3)[0], score=score)

    @pytest.mark.parametrize("given", [{"lam": -1.0}, {"lam": np.nan}, {"k_reg": 1.5}, {"seed": -1}], ids=str)
    def test_parameters_of_adaptive_sets(self, given):
        with pytest.raises(ValueError, match=next(iter(given))):
            AdaptiveScore(**given)

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            cb.GaussianNB().predict_set(normal(3)[0])

"""Posteriors, explanations and decisions of an ensemble."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

import calibayes as cb
from calibayes import BayesClassifier, PosteriorMixture
from calibayes.analysis.marginals import PartNeedsAllColumns
from calibayes.ensemble.training import JEFFREYS
from calibayes.families import Diagonal, Gaussian, NormalInverseWishart
from tests.estimators.ensemble.tables import frame


class TestAverage:
    def test_probabilities_are_the_weighted_average_of_the_members(self, fitted):
        X, _ = frame(seed=1)
        average = sum(
            fitted.weights_[name] * model.predict_proba(X) for name, model in fitted.models_.items()
        )
        average = average + fitted.weights_["class frequencies"] * fitted.class_prior_
        assert_allclose(fitted.predict_proba(X), average, atol=1e-12)
        assert sum(fitted.weights_.values()) == pytest.approx(1.0)
        assert all(
            (weight > 0) == (name in fitted.models_) for name, weight in list(fitted.weights_.items())[:-1]
        )

    def test_out_of_fold_it_has_no_more_log_loss_than_any_member_but_for_its_prior(self, fitted):
        """The weights maximize likelihood and Dirichlet prior: they are as good as nearly all weight on one member."""
        losses = [path.log_loss[path.best] for path in fitted.paths_.values()]
        n, others = fitted.tried_rows_, len(fitted.paths_)
        rest = JEFFREYS / n  # the weight of each other part in that comparison
        prior = -JEFFREYS * others * np.log(rest) / n
        assert fitted.out_of_fold_log_loss_ <= min(losses) - np.log1p(-others * rest) + prior
        assert fitted.out_of_fold_log_loss_ <= np.mean(losses)
        X, y = frame(600, seed=2)
        assert fitted.score(X, y) > 0.7

    def test_shares_sum_to_one_and_are_those_of_the_decided_class(self, fitted):
        X, _ = frame(seed=1)
        shares = fitted.shares(X)
        assert shares.shape == (len(X), len(fitted.models_) + 1)
        assert_allclose(shares.sum(axis=1), 1.0)
        best = fitted.predict_proba(X).argmax(axis=1)
        name, model = next(iter(fitted.models_.items()))
        of_best = model.predict_proba(X)[np.arange(len(X)), best]
        expected = fitted.weights_[name] * of_best / fitted.predict_proba(X).max(axis=1)
        assert_allclose(shares[:, 0], expected, rtol=1e-9)

    def test_any_models_can_be_mixed(self):
        X, y = load_iris(return_X_y=True)
        models = [
            ("closed", cb.GaussianNB(rule="ml")),
            ("path", cb.QuadraticDiscriminantAnalysis()),
            ("cv", cb.TradeOffCV()),
            ("components", cb.MixtureDiscriminantAnalysis(n_components=2)),
        ]
        model = PosteriorMixture(models=models).fit(X, y)
        assert list(model.weights_) == ["closed", "path", "cv", "components", "class frequencies"]
        assert np.isnan(model.paths_["closed"].stop)
        assert model.paths_["path"].stop >= 0
        assert all(np.isnan(model.paths_[name].stop) for name in ("cv", "components"))
        assert model.score(X, y) > 0.95

    def test_families_can_be_given(self):
        X, y = load_iris(return_X_y=True)
        custom = ("round", Gaussian(Diagonal(), prior=NormalInverseWishart()))
        model = BayesClassifier(families=["tied", custom, ("nb", cb.GaussianNB(rule="ml"))]).fit(X, y)
        assert list(model.weights_) == ["tied", "round", "nb", "class frequencies"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"families": ["tied", "forest"]}, "unknown member 'forest'"),
            ({"families": ["tied", "tied"]}, "differ"),
            ({"families": []}, "at least one member"),
            ({"families": [("a", 3)]}, "must be a family or an estimator"),
            ({"families": [("class frequencies", cb.GaussianNB())]}, "differ"),
            ({"density": "none"}, "not among the members"),
            ({"cv": 1}, "cv must be a whole number from 2 on"),
            ({"time_limit": -1}, "time_limit"),
            ({"n_jobs": 0}, "n_jobs"),
            (
                {"cv": [(np.arange(100), np.arange(100, 150))]},
                r"class '2' has no rows \(or no weight\), or none outside of one of the folds",
            ),
        ],
    )
    def test_invalid_options_are_refused(self, options, message):
        with pytest.raises(ValueError, match=message):
            BayesClassifier(**options).fit(*load_iris(return_X_y=True))


class TestExplanations:
    @pytest.mark.parametrize("priors", [None, [0.6, 0.3, 0.1]])
    def test_contributions_sum_to_the_log_odds_of_the_mixture(self, fitted, priors):
        X, _ = frame(seed=1)
        model = fitted if priors is None else fitted.with_priors(priors)
        reasons = model.explain(X)
        log_posterior = model.predict_log_proba(X)
        rows = np.arange(len(X))
        chosen, other = (np.searchsorted(model.classes_, c) for c in (reasons.chosen, reasons.other))
        assert_array_equal(chosen, log_posterior.argmax(axis=1))
        assert_allclose(reasons.log_odds, log_posterior[rows, chosen] - log_posterior[rows, other], atol=1e-9)
        assert reasons.names[:5] == ("class prior", *X.columns)

    def test_contributions_of_one_member_are_those_of_its_own_explanation(self):
        X, y = frame()
        model = BayesClassifier(families=["tied"]).fit(X, y)
        weights = {"tied": 1.0 - 1e-300, "class frequencies": 1e-300}
        model.fitted_ = replace(model.fitted_, weights=weights)
        member = model.models_["tied"].explain(X)
        reasons = model.explain(X)
        assert reasons.names == member.names
        assert_allclose(reasons.contributions, member.contributions, atol=1e-9)

    def test_a_column_of_noise_contributes_little(self, fitted):
        overall = fitted.explain(frame(400, seed=3)[0]).overall()
        assert overall["noise"] < overall["size"]

    def test_a_class_to_compare_with_can_be_given(self, fitted):
        X, _ = frame(seed=1)
        assert set(fitted.explain(X, against="x").other) == {"x"}
        with pytest.raises(ValueError, match="not among the classes"):
            fitted.explain(X, against="w")

    def test_a_member_that_cannot_leave_out_columns_is_named(self):
        X, y = load_iris(return_X_y=True)
        model = PosteriorMixture(models=[("path", cb.TradeOffCV(lams=[1.0, 0.5]))]).fit(X, y)
        with pytest.raises(
            PartNeedsAllColumns, match=r"member 'path' \(TradeOffCV\) cannot be explained.*use a generative"
        ):
            model.explain(X)


class TestDecisions:
    def test_costs_and_thresholds_and_abstaining(self, fitted):
        X, y = frame(seed=1)
        cost_matrix = np.ones((3, 3)) - np.eye(3)
        cost_matrix[0, 1:] = 50.0
        assert np.mean(fitted.decide(X, costs=cost_matrix) == "x") > np.mean(fitted.predict(X) == "x")
        assert_array_equal(
            BayesClassifier(costs=cost_matrix).fit(*frame()).predict(X),
            fitted.decide(X, costs=cost_matrix).data,
        )
        decided = fitted.decide(X, least_posterior=0.8)
        assert 0 < decided.mask.mean() < 1
        certain = ~decided.mask
        assert np.mean(decided.data[certain] == y[certain]) > np.mean(fitted.predict(X) == y)
        strange = X.assign(noise=1e6, size=-1e6)
        threshold = fitted.outlier_threshold(X, 0.05)
        assert (
            fitted.decide(strange, least_density=threshold).mask.mean()
            >= fitted.decide(X, least_density=threshold).mask.mean()
        )

    def test_shifted_priors_multiply_the_odds(self, fitted):
        X, _ = frame(seed=1)
        new = np.array([0.7, 0.2, 0.1])
        expected = fitted.predict_proba(X) * new / fitted.class_prior_
        shifted = fitted.with_priors(new)
        assert_allclose(shifted.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), atol=1e-12)
        back = shifted.with_priors(fitted.class_prior_)
        assert_allclose(back.predict_proba(X), fitted.predict_proba(X), atol=1e-12)


def test_the_summary_shows_weights_total_steps_and_members_left_out(fitted):
    text = fitted.summary()
    assert text.splitlines()[0].startswith("BayesClassifier: ")
    assert text.splitlines()[1].split() == ["member", "weight", "total", "step", "log", "loss", "error"]
    assert f"{fitted.weights_['tied']:.3f}" in text
    assert "class frequencies" in text
    fitted = pickle.loads(pickle.dumps(fitted))
    fitted.fitted_ = replace(fitted.fitted_, skipped={"full": "too slow"})
    assert "full was left out: too slow" in fitted.summary().splitlines()


def test_plot_members_draws_the_shares_of_the_members(fitted):
    from calibayes.plots import plot_members

    X, _ = frame(seed=1)
    axes = plot_members(fitted, X)
    bars = axes.patches
    assert len(bars) == (len(fitted.models_) + 1) * len(np.unique(fitted.predict(X)))
    assert_allclose(sum(bar.get_width() for bar in bars), len(np.unique(fitted.predict(X))))


def test_compare_runs_a_fold_of_a_bayes_classifier():
    from calibayes.compare import model_rule_pairs, run_fold, stratified_folds
    from calibayes.datasets import load_penguins

    data = load_penguins()
    assert model_rule_pairs(data.data, ["BayesClassifier"], ["ml", "rc"]) == [("BayesClassifier", "rc")]
    result = run_fold(data, "BayesClassifier", "rc", stratified_folds(data.target, 3, 0)[0])
    assert result.error < 0.05
    assert result.log_loss < 0.2

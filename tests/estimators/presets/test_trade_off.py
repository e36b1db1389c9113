"""Choice of the trade-off by cross-validation."""

import numpy as np
import pytest

import calibayes as cb
from calibayes.families import NormalInverseWishart
from calibayes.learn import NoGain
from calibayes.model.checked_rows import Rows
from calibayes.model.parameters import seed_of
from calibayes.model.splits import held_out_masks, hold_out
from calibayes.rules import EM, GDT
from calibayes.tables.read import read_array
from tests.contract.tables import table


class TestTradeOff:
    def test_the_shared_path_is_the_path_of_each_fold(self):
        X, y = table()
        model = cb.TradeOffCV(estimator=cb.NaiveBayes(stop=None, max_iter=4), lams=[1.0, 0.6, 0.2], cv=3).fit(
            X, y
        )
        codes = np.searchsorted(["x", "y", "z"], y)
        rows = Rows(read_array(X), codes, np.ones(len(y)), np.arange(len(y)))
        masks = held_out_masks(3, rows, len(y), seed_of(None))
        assert len(masks) == 3
        for fold, mask in enumerate(masks):
            alone = cb.NaiveBayes(rule="ml").fit(X[~mask], y[~mask])
            loss = -alone.predict_log_proba(X[mask])[np.arange(mask.sum()), codes[mask]].mean()
            assert model.cv_results_["log_loss"][0, fold] == pytest.approx(loss, rel=1e-9)

    def test_the_best_value_wins(self):
        X, y = table()
        for scoring in ("log_loss", "error"):
            model = cb.TradeOffCV(estimator=cb.GaussianNB(max_iter=20), scoring=scoring).fit(X, y)
            means = model.cv_results_[scoring].mean(axis=1)
            assert model.lam_ == model.cv_results_["lam"][np.argmin(means)]
            assert model.estimator_.rule.lam == model.lam_

    def test_bad_values(self):
        X, y = table()
        for options in ({"lams": []}, {"lams": [2.0]}, {"scoring": "auc"}):
            with pytest.raises(ValueError, match="lam"):
                cb.TradeOffCV(**options).fit(X, y)


def test_trade_off_with_weights_of_any_kind():
    X, y = table()
    model = cb.TradeOffCV(lams=[1.0, 0.5], cv=3)
    model.fit(X, y, sample_weight=2.0)
    model.fit(X, y, sample_weight=(np.arange(400) % 4 > 0).astype(float))
    assert model.cv_results_["error"].shape == (2, 3)


class TestUnlabeledRows:
    def test_each_fold_learns_from_all_unlabeled_rows(self):
        """At lam = 1 a fold is EM on its labeled rows and all unlabeled ones."""
        X, y = table()
        X = np.asarray(X, dtype=object)[:, [0, 1]].astype(float)
        labels = np.where(np.arange(400) % 4 == 0, y, None)
        base = cb.GaussianNB(prior=NormalInverseWishart(), stop=NoGain(1e-12), max_iter=500)
        model = cb.TradeOffCV(base, lams=[1.0, 0.4], cv=3, unlabeled=0.5).fit(X, labels)
        codes = np.where(labels == None, -1, np.searchsorted(["x", "y", "z"], y))
        rows = Rows(read_array(X), codes, np.ones(len(y)), np.arange(len(y)))
        masks = held_out_masks(3, rows, len(y), seed_of(None))
        assert sum(mask.sum() for mask in masks) == 100
        for fold, mask in enumerate(masks):
            alone = type(base)(**{**base.get_params(deep=False), "rule": EM(0.5)}).fit(
                X[~mask], labels[~mask]
            )
            loss = -alone.predict_log_proba(X[mask])[np.arange(mask.sum()), codes[mask]].mean()
            assert model.cv_results_["log_loss"][0, fold] == pytest.approx(loss, rel=1e-4)
        assert model.estimator_.rule == GDT(model.lam_, unlabeled=0.5)

    def test_they_need_a_weight(self):
        X, y = table()
        with pytest.raises(ValueError, match="missing labels"):
            cb.TradeOffCV(lams=[1.0]).fit(X, np.where(y == "x", None, y))
        with pytest.raises(
            ValueError, match=r"unlabeled must be a finite number between 0 and 1e\+06, got -1"
        ):
            cb.TradeOffCV(lams=[1.0], unlabeled=-1.0).fit(X, y)

    def test_the_weight_of_the_prior(self):
        X, y = table()
        model = cb.TradeOffCV(cb.CategoricalNB(max_iter=10, stop=None), lams=[0.5, 0.0], prior_weight=2.0)
        assert model.fit(np.round(X), y).estimator_.rule == GDT(model.lam_, prior_weight=2.0)


class TestOnePath:
    def test_a_share_is_held_out_once(self):
        X, y = table()
        model = cb.TradeOffCV(cb.GaussianNB(max_iter=20), cv=0.25, random_state=3).fit(X, y)
        assert model.cv_results_["log_loss"].shape == (7, 1)
        codes = np.searchsorted(["x", "y", "z"], y)
        mask = hold_out(codes, 0.25, np.random.default_rng(seed_of(3)))
        alone = cb.GaussianNB(rule="ml").fit(X[~mask], y[~mask])
        loss = -alone.predict_log_proba(X[mask])[np.arange(mask.sum()), codes[mask]].mean()
        assert model.cv_results_["log_loss"][0, 0] == pytest.approx(loss, rel=1e-9)

    @pytest.mark.parametrize("cv", [1.5, 0.0, float("nan")])
    def test_bad_shares(self, cv):
        with pytest.raises(ValueError, match="cv must lie between 0 and 1"):
            cb.TradeOffCV(lams=[1.0], cv=cv).fit(*table())

    def test_a_share_of_too_few_rows(self):
        with pytest.raises(ValueError, match=r"cv=0\.1 of 4 rows holds out no row"):
            cb.TradeOffCV(lams=[1.0], cv=0.1).fit([[0.0], [1.0], [2.0], [4.0]], [0, 0, 1, 1])

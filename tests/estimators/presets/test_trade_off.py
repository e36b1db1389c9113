"""Choice of the trade-off by cross-validation."""

import numpy as np
import pytest

import calibayes as cb
from calibayes.model.checked_rows import Rows
from calibayes.model.parameters import seed_of
from calibayes.model.splits import held_out_masks
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

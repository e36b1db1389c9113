"""Contributions of the columns to the log odds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.utils import get_tags

import calibayes as cb
from calibayes.datasets import load_penguins
from tests.contract.tables import gappy, table
from tests.contract.test_scikit_learn import ITERATIVE

EVERY = pytest.mark.parametrize("estimator", ITERATIVE, ids=lambda estimator: type(estimator).__name__)


class TestReasons:
    @EVERY
    @pytest.mark.parametrize("rule", ["ml", "rc"])
    def test_contributions_sum_to_the_log_odds(self, estimator, rule):
        X, y = gappy() if get_tags(estimator).input_tags.allow_nan else table()
        model = clone(estimator).set_params(rule=rule, max_iter=5, stop=None).fit(X, y)
        log_posterior = model.predict_log_proba(X)
        for against in (None, "y"):
            reasons = model.explain(X, against=against)
            chosen, other = (
                np.searchsorted(model.classes_, labels) for labels in (reasons.chosen, reasons.other)
            )
            rows = np.arange(len(X))
            expected = log_posterior[rows, chosen] - log_posterior[rows, other]
            assert_allclose(reasons.log_odds, expected, atol=1e-10, rtol=1e-10)
            assert (chosen != other).all()
        assert reasons.names[0] == "class prior"

    def test_a_missing_cell_is_no_reason(self):
        X, y = gappy()
        model = cb.LinearDiscriminantAnalysis().fit(X, y)
        reasons = model.explain(X)
        assert_allclose(reasons.contributions[:, 1:][np.isnan(X)], 0.0, atol=1e-12)

    def test_frames_and_overall_view(self):
        penguins = load_penguins()
        reasons = cb.NaiveBayes(rule="ml").fit(penguins.data, penguins.target).explain(penguins.data)
        for backend in ("pandas", "polars"):
            frame = reasons.frame(backend)
            assert list(frame.columns)[:4] == ["chosen", "other", "log_odds", "class prior"]
            assert len(frame) == 344
        sizes = list(reasons.overall().values())
        assert sizes == sorted(sizes, reverse=True)
        assert "island" in repr(reasons)

    def test_unknown_class(self):
        X, y = table()
        with pytest.raises(ValueError, match="'w' is not among the classes"):
            cb.GaussianNB(rule="ml").fit(X, y).explain(X, against="w")

    def test_pictures(self, tmp_path):
        from calibayes.plots import plot_overall, plot_reasons, plot_trade_off

        X, y = table()
        reasons = cb.GaussianNB(rule="ml").fit(X, y).explain(X)
        assert len(plot_reasons(reasons, 3, most=2).get_yticklabels()) == 3
        plot_overall(reasons).figure.savefig(tmp_path / "overall.png")
        path = cb.TradeOffCV(lams=[1.0, 0.5]).fit(X, y)
        plot_trade_off(path).figure.savefig(tmp_path / "path.svg")
        assert (tmp_path / "overall.png").stat().st_size > 1000

    def test_the_picture_of_sampled_contributions_has_error_bars(self):
        from calibayes.plots import plot_reasons

        X, y = table()
        wide = np.column_stack([X, X**2])
        exact, sampled = (
            cb.LinearDiscriminantAnalysis(rule="ml").fit(columns, y).explain(columns) for columns in (X, wide)
        )
        assert len(plot_reasons(exact).collections) == 0
        axes = plot_reasons(sampled, 2, most=4)
        (lines,) = axes.collections
        largest = np.argsort(-np.abs(sampled.contributions[2]))[:4]
        lengths = sorted(np.ptp(line.get_extents().intervalx) / 2 for line in lines.get_paths())
        errors = sampled.standard_error[2, largest]
        assert_allclose(lengths, np.sort(errors[errors > 0]), rtol=1e-9)
        assert "32 permutations" in axes.get_xlabel()


def test_reasons_do_not_depend_on_where_zero_is():
    X, y = table()
    for estimator in (cb.LinearDiscriminantAnalysis, cb.GenerativeLogisticRegression):
        here, there = (estimator(rule="ml").fit(X + by, y).explain(X + by) for by in (0.0, 1e4))
        assert_allclose(there.contributions, here.contributions, atol=1e-6)
        odds = estimator(rule="ml").fit(X + 1e4, y).predict_log_proba(X + 1e4)
        assert_allclose(
            there.log_odds, np.sort(odds, axis=1)[:, -1] - np.sort(odds, axis=1)[:, -2], atol=1e-8
        )

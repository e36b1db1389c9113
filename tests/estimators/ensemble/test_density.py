"""Densities, samples and filled tables of an ensemble."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

import calibayes as cb
from calibayes import BayesClassifier
from tests.estimators.ensemble.tables import frame


class TestDensity:
    def test_the_density_is_that_of_the_kernel_member_before_calibration(self, fitted):
        X, _ = frame(seed=1)
        family = next(iter(fitted.density_.fitted_.binding.families.items()))
        encoder = fitted.density_.fitted_.binding.encoders[family[0]]
        plain = cb.GenerativeClassifier(families=[(*family, cb.every, encoder)], rule="ml").fit(*frame())
        assert_allclose(fitted.score_samples(X), plain.score_samples(X), rtol=1e-9)

    def test_samples_have_the_means_and_missing_values_of_the_table(self, fitted):
        X, y = frame(3000)
        rows, classes = fitted.sample(3000, random_state=0)
        assert list(rows.columns) == list(X.columns)
        assert rows["size"].isna().mean() == pytest.approx(X["size"].isna().mean(), abs=0.03)
        assert rows["size"].mean() == pytest.approx(X["size"].mean(), abs=0.15)
        assert np.mean(classes == "x") == pytest.approx(np.mean(y == "x"), abs=0.08)

    def test_given_values_are_kept_and_missing_ones_are_filled(self, fitted):
        rows, _ = fitted.sample(50, given={"color": "blue"}, random_state=0)
        assert set(rows["color"]) == {"blue"}
        assert rows["noise"].notna().all()
        X, _ = frame()
        filled = fitted.fill(X)
        known = X["size"].notna()
        assert filled["size"].notna().all()
        assert_array_equal(filled["size"][known], X["size"][known])

    def test_the_density_can_be_that_of_another_member(self):
        X, y = load_iris(return_X_y=True)
        model = BayesClassifier(families=["tied", ("nb", cb.GaussianNB())], density="nb").fit(X, y)
        plain = cb.GaussianNB(rule="ml").fit(X, y)
        assert_allclose(model.score_samples(X), plain.score_samples(X), rtol=1e-9)

    def test_a_member_that_cannot_be_sampled_is_refused(self):
        X, y = load_iris(return_X_y=True)
        model = BayesClassifier(families=["near"]).fit(X, y)
        assert np.isfinite(model.score_samples(X)).all()
        for call in (lambda: model.sample(3), lambda: model.fill(X), lambda: model.outlier_threshold(X)):
            with pytest.raises(ValueError, match="choose another member by `density`"):
                call()
        with pytest.raises(ValueError, match="with_priors"):
            model.with_priors([0.8, 0.1, 0.1]).score_samples(X)

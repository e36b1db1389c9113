"""Gaussian presets on shifted, scaled and extreme columns."""

import numpy as np
from numpy.testing import assert_allclose

import calibayes as cb
from calibayes.rules import RC
from tests.contract.tables import table


def test_center_and_offset_leave_the_result():
    X, y = table()
    plain = cb.QuadraticDiscriminantAnalysis(rule=RC(step=0.1), max_iter=10, stop=None).fit(X, y)
    moved = cb.QuadraticDiscriminantAnalysis(rule=RC(step=0.1), max_iter=10, stop=None).fit(X + 1e6, y)
    assert_allclose(moved.history_["log_loss"], plain.history_["log_loss"], rtol=1e-6)
    assert_allclose(moved.means_ - 1e6, plain.means_, atol=1e-6)


def test_the_default_prior_keeps_each_columns_own_scale():
    X, y = table()
    X = X * np.array([1e4, 1e-4, 1.0, 1.0, 1.0])
    mapped = cb.GaussianNB(rule="map").fit(X, y)
    plain = cb.GaussianNB(rule="ml", var_smoothing=0.0).fit(X, y)
    ratio = np.sqrt((mapped.var_ - mapped.epsilon_) / plain.var_)
    assert (np.abs(np.log(ratio)) < 0.5).all()


def test_one_far_value_leaves_the_other_classes_alone():
    X, y = table()
    far = X.copy()
    far[np.flatnonzero(y == "x")[0], 0] = 1e9
    model = cb.GaussianNB(rule="ml", var_smoothing=0.0).fit(far, y)
    plain = cb.GaussianNB(rule="ml", var_smoothing=0.0).fit(X, y)
    assert_allclose(model.var_[1:], plain.var_[1:], rtol=1e-10)

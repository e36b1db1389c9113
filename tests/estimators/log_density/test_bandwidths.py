"""Bandwidth rules and full bandwidth matrices of log densities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from calibayes import LogDensityFeatures, SparseLogBivariateClassifier
from calibayes.dependence import TopFraction
from calibayes.estimators.class_densities import full_shape
from tests.estimators.log_density.test_incomplete_columns import incomplete


def matrix_of(shape):
    """The bandwidth matrix whose kernel has these factors of x^2, xy and y^2 in its exponent."""
    return np.linalg.inv(-2.0 * np.array([[shape[0], shape[1] / 2], [shape[1] / 2, shape[2]]]))


def correlated(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal([0, 0], [[1.0, 0.9], [0.9, 1.0]], n)


@pytest.mark.parametrize("left_out", [False, True])
def test_densities_of_full_matrices_are_sums_of_normal_densities(left_out):
    X, y = np.concatenate([correlated(40), correlated(40, 1) * [1, -1]]), np.repeat([0, 1], 40)
    options = {"selection": None, "pair_bandwidths": "full", "floor": 1e-300}
    model = LogDensityFeatures(leave_one_out=left_out, **options)
    features, densities = model.fit_transform(X, y), model.densities_
    at = densities.standardize(X)
    for place, c in enumerate(densities.pair_codes):
        for row in (0, 30, 50):
            kernel, centers = matrix_of(densities.shapes[place]), at[y == c]
            values = stats.multivariate_normal.pdf(centers, at[row], kernel)
            keep = ~(left_out & (np.flatnonzero(y == c) == row))
            assert_allclose(np.exp(features[row, 4 + place]), values[keep].mean(), rtol=1e-9)


def test_full_matrices_rotate_with_the_data_and_count_copies():
    rows, ones = correlated(300) * [1.0, 2.0], np.ones(300)
    angle = 0.4
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    assert_allclose(
        matrix_of(full_shape(rows @ turn.T, ones)),
        turn @ matrix_of(full_shape(rows, ones)) @ turn.T,
        rtol=1e-6,
    )
    copies = np.random.default_rng(0).integers(1, 4, 300)
    repeated = full_shape(np.repeat(rows, copies, axis=0), np.ones(copies.sum()))
    assert_allclose(full_shape(rows, copies.astype(float)), repeated, rtol=1e-9)
    incomplete_rows = np.concatenate([rows, [[np.nan, 0.0], [1.0, np.nan]]])
    assert_allclose(full_shape(incomplete_rows, np.ones(302)), full_shape(rows, ones))


def test_full_matrices_estimate_correlated_densities_better():
    X, y = correlated(800), np.arange(800) % 2
    errors = {}
    for kind in ("product", "full"):
        model = LogDensityFeatures(selection=None, pair_bandwidths=kind, floor=1e-300).fit(X, y)
        new = correlated(500, 7)
        true = stats.multivariate_normal.logpdf(new, [0, 0], [[1.0, 0.9], [0.9, 1.0]])
        found = model.transform(new)[:, 4:] - np.log(model.densities_.scale).sum()
        errors[kind] = np.abs(found - true[:, None]).mean()
    assert errors["full"] < 0.8 * errors["product"]


def test_normal_bandwidths_are_those_of_the_reference_rule():
    X, y = correlated(400), np.arange(400) % 2
    model = LogDensityFeatures(selection=None, bandwidths="normal").fit(X, y)
    column = model.densities_.standardize(X)[y == 0, 0]
    deviation = min(column.std(ddof=1), stats.iqr(column) / 1.349)
    assert_allclose(model.densities_.kernels[0].single[0], (4 / 3) ** 0.2 * 200**-0.2 * deviation, rtol=0.01)


@pytest.mark.parametrize("options", [{"pair_bandwidths": "full"}, {"bandwidths": "normal"}, {"n_jobs": 2}])
def test_options_with_levels_and_missing_values(options, tmp_path):
    import calibayes as cb

    table, y = incomplete(300)
    plain = SparseLogBivariateClassifier(C=0.1, selection=TopFraction(1.0), normal_scores=False)
    model = SparseLogBivariateClassifier(
        C=0.1, selection=TopFraction(1.0), normal_scores=False, **options
    ).fit(table, y)
    expected = plain.fit(table, y).predict_proba(table)
    if "n_jobs" in options:
        assert_array_equal(model.predict_proba(table), expected)
    else:
        assert 0 < np.abs(model.predict_proba(table) - expected).max() < 0.5
        assert model.score(table, y) > 0.8
    cb.save(model, tmp_path / "model.safetensors")
    loaded = cb.load(tmp_path / "model.safetensors")
    assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    assert_array_equal(loaded.score_samples(table), model.score_samples(table))


@pytest.mark.parametrize("options", [{"pair_bandwidths": "diagonal"}, {"bandwidths": None}])
def test_unknown_bandwidths_are_refused(options):
    name = next(iter(options))
    with pytest.raises(ValueError, match=f"{name} must be"):
        SparseLogBivariateClassifier(**options).fit(correlated(40), np.arange(40) % 2)

"""Kernel densities of columns and pairs against direct sums over rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from calibayes import LogDensityFeatures
from calibayes.estimators.density_columns import LabeledNumbers as Labeled
from calibayes.estimators.log_kernel_densities import learn_log_densities
from calibayes.kernels.grids import plug_in_bandwidths
from calibayes.kernels.joint_density import ProductKernel, learn_normal_scores


def quiet(*_):
    pass


def rows(n=40, d=4, k=2, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % k
    return Labeled(rng.normal(size=(n, d)) + codes[:, None], codes, np.ones(n), k, np.zeros(d, int))


def direct(kernel, row, pair=None, skip=None):
    """The density of one column (pair = (j,)) or of two, summed row by row."""
    h = kernel.single if len(pair) == 1 else kernel.double
    copies = kernel.weights.copy()
    if skip is not None:
        copies[skip] -= 1
    parts = [stats.norm.pdf(row[j], kernel.centers[j], h[j]) for j in pair]
    return np.prod(parts, axis=0) @ copies / copies.sum()


@pytest.mark.parametrize("block", [1, 2**20])
@pytest.mark.parametrize("left_out", [False, True])
def test_densities_are_sums_over_rows(left_out, block, monkeypatch):
    monkeypatch.setattr("calibayes.kernels.joint_density.CELLS_PER_BLOCK", block)
    data = rows()._replace(weights=np.random.default_rng(1).integers(1, 4, 40).astype(float))
    densities, positions = learn_log_densities(data, floor=1e-300, kept_rows=None, seed=0)
    densities = densities.with_pairs(np.array([0, 1, 1]), np.array([[0, 1, 2], [3, 2, 3]]))
    found = np.exp(densities.evaluate(data.columns, positions if left_out else None, quiet))
    points = densities.standardize(data.columns)
    for l in (0, 1, 38):
        for c, kernel in enumerate(densities.kernels):
            skip = positions[c][l] if left_out and positions[c][l] >= 0 else None
            for j in range(4):
                assert_allclose(found[l, 4 * c + j], direct(kernel, points[l], (j,), skip), rtol=1e-10)
        for place, (c, i, j) in enumerate([(0, 0, 3), (1, 1, 2), (1, 2, 3)]):
            kernel = densities.kernels[c]
            skip = positions[c][l] if left_out and positions[c][l] >= 0 else None
            assert_allclose(found[l, 8 + place], direct(kernel, points[l], (i, j), skip), rtol=1e-10)


def test_a_row_of_a_class_of_one_has_the_floor_without_itself():
    data = rows(5)._replace(codes=np.array([0, 0, 0, 0, 1]))
    densities, positions = learn_log_densities(data, floor=1e-7, kept_rows=None, seed=0)
    found = densities.evaluate(data.columns, positions, quiet)
    assert_allclose(found[4, 4:], np.log(1e-7))


def test_densities_of_pairs_integrate_to_one():
    kernel = ProductKernel(
        np.array([[0.0, 1.0], [0.5, -1.0]]), np.array([2.0, 1.0]), np.ones(2), np.array([0.4, 0.7])
    )

    def at(x, y):
        ((_, _, double),) = kernel.densities(np.array([[x, y]]), np.array([[0], [1]]), np.array([-1]))
        return double[0, 0]

    total, _ = integrate.dblquad(at, -6, 6, -6, 6, epsabs=1e-4)
    assert_allclose(total, 1, atol=1e-3)


def direct_plug_in(x):
    """Two stages, sums over all pairs of rows without cells (Wand and Jones 1995, section 3.6)."""
    n = len(x)
    scale = min(x.std(ddof=1), stats.iqr(x) / 1.349)
    gaps = (x[:, None] - x) / scale

    def functional(order, g):
        hermite = np.polynomial.hermite_e.hermeval(gaps / g, [0] * order + [1])
        return (hermite * stats.norm.pdf(gaps / g)).sum() / g ** (order + 1) / n**2

    sixth = functional(6, (2 / (7 * n)) ** (1 / 9) * np.sqrt(2))
    fourth = functional(4, (-6 * stats.norm.pdf(0) / (sixth * n)) ** (1 / 7))
    return scale * (1 / (2 * np.sqrt(np.pi) * fourth * n)) ** 0.2


@pytest.mark.parametrize("draw", [np.random.Generator.normal, np.random.Generator.exponential])
def test_bandwidths_are_those_of_the_direct_plug_in_rule(draw):
    columns = draw(np.random.default_rng(0), size=(150, 3))
    expected = [direct_plug_in(column) for column in columns.T]
    assert_allclose(plug_in_bandwidths(columns, np.ones(150)), expected, rtol=5e-3)


def test_bandwidths_of_copies_and_units():
    columns = np.random.default_rng(0).normal(size=(50, 2))
    copies = np.random.default_rng(1).integers(1, 4, 50)
    found = plug_in_bandwidths(columns, copies.astype(float))
    assert_allclose(found, plug_in_bandwidths(np.repeat(columns, copies, axis=0), np.ones(copies.sum())))
    assert_allclose(plug_in_bandwidths(1000 * columns, copies.astype(float)), 1000 * found)


@pytest.mark.parametrize("column", [np.zeros(30), np.arange(30) % 2, np.r_[np.zeros(28), 1, 5]])
def test_bandwidths_of_ties_are_numbers(column):
    (found,) = plug_in_bandwidths(column[:, None].astype(float), np.ones(30))
    assert np.isfinite(found)
    assert (found > 0) == bool(np.ptp(column))


def test_training_rows_left_out_are_as_if_refitted_without_them():
    data = rows(30, 2)
    model = LogDensityFeatures(selection=None, leave_one_out=True)
    features = model.fit_transform(data.columns, data.codes)
    kernel = model.densities_.kernels[0]
    point = model.densities_.standardize(data.columns)[0]
    rest = kernel.centers[:, 1:]
    expected = stats.norm.pdf(point[:, None], rest, kernel.single[:, None]).mean(axis=1)
    assert_allclose(np.exp(features[0, :2]), expected)


def test_normal_scores_are_normal_and_depend_on_ranks_only():
    column = np.random.default_rng(0).exponential(size=(500, 1))
    scores = learn_normal_scores(column, np.ones(500))
    found = scores.apply(column)[:, 0]
    assert stats.kstest(found, "norm").pvalue > 0.5
    assert (np.argsort(found) == np.argsort(column[:, 0])).all()
    assert_allclose(scores.apply(np.array([[-9.0], [99.0]]))[:, 0], [found.min(), found.max()])


def test_normal_scores_of_ties_and_copies():
    column = np.array([[0.0], [0.0], [0.0], [5.0]])
    found = learn_normal_scores(column, np.ones(4)).apply(column)[:, 0]
    assert found[0] == found[2] < found[3]
    columns = np.random.default_rng(0).normal(size=(50, 2))
    copies = np.random.default_rng(1).integers(1, 4, 50)
    weighted = learn_normal_scores(columns, copies.astype(float))
    repeated = learn_normal_scores(np.repeat(columns, copies, axis=0), np.ones(copies.sum()))
    assert_allclose(weighted.apply(columns), repeated.apply(columns))

"""Kernel densities against SciPy's and against direct sums."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from calibayes.core.protocols import Layout
from calibayes.encoders import AdaptiveBins, Grid
from calibayes.families import (
    FixedWidth,
    KernelDensity,
    KernelPair,
    NormalReference,
    OverBins,
    SheatherJones,
    Silverman,
)
from calibayes.kernels import grids
from calibayes.kernels.level_counts import smooth
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_array


def learned(family, rows, encoder):
    """The log density of new rows under a family of one class, learned from some, and the family."""
    columns, d = read_array(rows), rows.shape[1]
    fitted = encoder.fit(summary_of(columns, np.ones(len(rows))), list(range(d)))
    bound = family.bind(Layout(("a",), tuple(f"x{j}" for j in range(d)), **fitted.layout()))
    sums = bound.statistics(fitted.encode(columns), np.ones((len(rows), 1)))
    bound = bound.prepare(sums)
    parameters = bound.parameters(sums)
    return lambda x: bound.log_density(fitted.encode(read_array(x)), parameters)[:, 0], bound, fitted


def column(name, n=300, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "normal": rng.normal(size=n),
        "two": rng.normal(size=n) + 5 * (np.arange(n) % 3 == 0),
        "skewed": rng.gamma(3.0, size=n),
        "heavy": rng.standard_t(3, size=n),
        "few": rng.normal(size=12),
        "ties": np.round(rng.normal(size=n), 0),
        "far": 1e6 + 1e-3 * rng.normal(size=n),
    }[name]


@pytest.mark.parametrize("name", ["normal", "two", "skewed", "heavy", "few", "ties", "far"])
def test_one_column_is_that_of_scipy(name):
    values = column(name)
    density, _, grid = learned(KernelDensity(NormalReference(), 0.0), values[:, None], Grid(128))
    at = np.linspace(grid.origin[0], grid.origin[0] + 127 * grid.step[0], 1777)
    expected = stats.gaussian_kde(values)(at)
    assert np.abs(np.exp(density(at[:, None])) - expected).max() <= 0.02 * expected.max()


@pytest.mark.parametrize("prior_rows", [0.0, 3.0])
@pytest.mark.parametrize("name", ["two", "heavy"])
def test_the_integral_over_the_whole_line_is_one(name, prior_rows):
    density, _, grid = learned(KernelDensity(prior_rows=prior_rows), column(name)[:, None], Grid(128))
    points = grid.origin[0] + grid.step[0] * np.arange(128)
    inside = np.trapezoid(np.exp(density(points[:, None])), points)
    length, last = 127 * grid.step[0], points[-1]

    def tail(u, sign):
        end = last if sign > 0 else points[0]
        return float(np.exp(density(np.array([[end + sign * u]])))[0])

    beyond = [integrate.quad(tail, 1e-12 * length, np.inf, args=(sign,), points=None)[0] for sign in (-1, 1)]
    assert inside + sum(beyond) == pytest.approx(1.0, abs=1e-6)


def test_two_columns_are_those_of_scipy():
    """SciPy's kernel has the correlation of the columns; for uncorrelated columns it is a product kernel, as ours."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 2)) * [1.0, 3.0] + np.where(np.arange(400) % 2, 4.0, 0.0)[:, None] * [1, -2]
    rows = (rows - rows.mean(axis=0)) @ np.linalg.eigh(np.cov(rows.T))[1]
    density, _, grid = learned(KernelPair(NormalReference(), 0.0), rows, Grid(128))
    sides = [
        origin + step * np.linspace(0, 127, 90) for origin, step in zip(grid.origin, grid.step, strict=True)
    ]
    points = np.stack([side.ravel() for side in np.meshgrid(*sides)], axis=1)
    found, expected = np.exp(density(points)), stats.gaussian_kde(rows.T)(points.T)
    assert np.abs(found - expected).max() <= 0.02 * expected.max()
    assert found.sum() * np.prod([side[1] - side[0] for side in sides]) == pytest.approx(1.0, abs=1e-3)


def test_two_correlated_columns():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(150, 2)) @ [[1.0, 0.8], [0.0, 0.5]]
    density, family, grid = learned(KernelPair(Silverman(), 0.0), rows, Grid(128))
    widths = family.bandwidths[0] * grid.step
    points = rng.normal(size=(200, 2)) @ [[1.0, 0.8], [0.0, 0.5]]
    kernels = stats.norm.pdf(points[:, None], rows, widths)
    expected = kernels.prod(axis=2).mean(axis=1)
    assert_allclose(np.exp(density(points)), expected, atol=0.02 * expected.max())


class TestBandwidths:
    def found(self, rule, values, points=512):
        _, family, grid = learned(KernelDensity(rule, 0.0), values[:, None], Grid(points))
        return float(family.bandwidths[0, 0] * grid.step[0])

    @pytest.mark.parametrize("name", ["normal", "two", "skewed"])
    def test_rules_of_thumb_are_those_of_the_rows(self, name):
        values = column(name)
        n, deviation = len(values), values.std(ddof=1)
        assert self.found(NormalReference(), values) == pytest.approx(deviation * n**-0.2, rel=1e-3)
        spread = min(deviation, stats.iqr(values) / 1.34)
        assert self.found(Silverman(), values) == pytest.approx(0.9 * spread * n**-0.2, rel=0.02)
        assert self.found(FixedWidth(0.25), values) == pytest.approx(0.25, rel=1e-12)

    def test_a_plug_in_finds_the_best_bandwidth_of_a_normal(self):
        """It is (4 / 3n)^(1/5) standard deviations."""
        values = np.random.default_rng(0).normal(size=20_000)
        assert self.found(SheatherJones(), values) == pytest.approx((4 / 60_000) ** 0.2, rel=0.05)

    def test_a_plug_in_is_not_misled_by_two_modes(self):
        values = np.random.default_rng(0).normal(size=20_000) + np.where(np.arange(20_000) % 2, 10.0, -10.0)
        best = (4 / 30_000) ** 0.2  # of each half by itself
        assert self.found(SheatherJones(), values) == pytest.approx(best, rel=0.05)
        assert self.found(Silverman(), values) > 5 * best

    @pytest.mark.parametrize("values", [np.array([3.0]), np.array([1.0, 2.0]), np.repeat([1.0, 2.0], 50)])
    def test_degenerate_columns_fall_back_to_another_bandwidth_rule(self, values):
        width = self.found(SheatherJones(), values)
        assert np.isfinite(width)
        assert width >= 0

    def test_over_bins(self):
        rule = OverBins()
        assert_allclose(
            rule.width_in_cells(np.full((2, 40), 10.0), np.zeros(40)), 0.56 * 40 * 400 ** (-1 / 3)
        )
        assert_allclose(rule.width_in_cells(np.full((2, 2), 10.0), np.zeros(2)), 0.0)

    def test_a_given_width_needs_cells_of_equal_width(self):
        with pytest.raises(ValueError, match=r"needs cells of equal width.*Grid"):
            learned(KernelDensity(FixedWidth(0.2)), column("skewed")[:, None], AdaptiveBins())


def test_smoothing_is_the_direct_sum():
    rng = np.random.default_rng(0)
    table, width = rng.random((3, 40)), np.array([0.0, 1.7, 12.0])
    gap = np.abs(np.arange(40)[:, None] - np.arange(40))
    expected = [table[0]]
    for row, h in zip(table[1:], width[1:], strict=True):
        kernel = np.exp(-0.5 * (gap / h) ** 2) * (gap <= 8 * h)
        expected.append(kernel @ (row / kernel.sum(axis=1)))
    assert_allclose(smooth(table, width), expected, rtol=1e-12)
    assert_allclose(smooth(table, width).sum(axis=1), table.sum(axis=1), rtol=1e-12)


def test_bins_with_a_pooled_prior_are_the_direct_formula():
    """D = max(K S, 0) + m pooled, normalized; pooled = smoothed counts of all classes + 1/2, normalized."""
    rng = np.random.default_rng(0)
    values, labels = rng.gamma(2.0, size=200)[:, None], np.eye(2)[np.arange(200) % 2]
    values[labels[:, 1] > 0] += 1.0
    bins = AdaptiveBins().fit(summary_of(read_array(values), np.ones(200)), [0])
    family = KernelDensity(OverBins(), 3.0).bind(Layout(("a", "b"), ("x",), **bins.layout()))
    codes = bins.encode(read_array(values))
    family = family.prepare(family.statistics(codes, labels))
    count = np.stack(
        [np.bincount(codes[labels[:, c] > 0, 0], minlength=bins.layout()["levels"][0]) for c in (0, 1)]
    )
    h = 0.56 * count.shape[1] * 100 ** (-1 / 3)
    gap = np.abs(np.subtract.outer(np.arange(count.shape[1]), np.arange(count.shape[1])))
    kernel = np.exp(-0.5 * (gap / h) ** 2)
    near = np.stack([kernel @ (row / kernel.sum(axis=1)) for row in count])
    pooled = near.sum(axis=0) + 0.5
    density = near + 3.0 * pooled / pooled.sum()
    density = density / density.sum(axis=1, keepdims=True) / np.diff(bins.edges[0])
    found = np.exp(family.log_density(codes, family.parameters(family.statistics(codes, labels))))
    assert_allclose(found, density.T[codes[:, 0]], rtol=1e-9)


def test_linear_binning_keeps_count_and_mean():
    rng = np.random.default_rng(0)
    positions, weights = rng.uniform(0, 23, size=(80, 1)), rng.normal(size=(80, 2))
    family = KernelDensity().bind(
        Layout(("a", "b"), ("x",), levels=(26,), ordered=(24,), log_volume=np.zeros(26), gridded=True)
    )
    count = family.statistics(positions, weights)["count"]
    assert_allclose(count.sum(axis=1), weights.sum(axis=0), rtol=1e-12)
    assert_allclose(count[:, :24] @ np.arange(24), weights.T @ positions[:, 0], rtol=1e-10)
    assert_allclose(count[:, 24:], 0.0)


def test_missing_values_are_filled_by_the_mean():
    density, family, grid = learned(
        KernelDensity(NormalReference(), 0.0), column("skewed")[:, None], Grid(128)
    )
    at = np.linspace(0, 127, 20_001)
    values = (grid.origin + grid.step * at)[:, None]
    expected = np.trapezoid(at * np.exp(density(values)), at) / np.trapezoid(np.exp(density(values)), at)
    sums = family.statistics(grid.encode(read_array(column("skewed")[:, None])), np.ones((300, 1)))
    filled = family.fill(np.array([[np.nan]]), family.parameters(sums), np.ones((1, 1)))
    assert filled[0, 0] == pytest.approx(expected, rel=1e-4)


def test_a_pair_with_one_value_given():
    """Samples of one column given the other, against the joint density along that line."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(300, 2)) @ [[1.0, 0.9], [0.0, 0.4]]
    density, family, grid = learned(KernelPair(Silverman(), 0.0), rows, Grid(64))
    sums = family.statistics(grid.encode(read_array(rows)), np.ones((300, 1)))
    given = np.tile(grid.encode(read_array(np.array([[1.0, np.nan]]))), (20_000, 1))
    drawn = family.sample(family.parameters(sums), np.zeros(20_000, dtype=int), rng, given)
    at = np.linspace(0, 63, 4001)
    line = np.exp(density(np.column_stack([np.ones(4001), grid.origin[1] + grid.step[1] * at])))
    expected = np.trapezoid(at * line, at) / np.trapezoid(line, at)
    assert drawn[:, 1].mean() == pytest.approx(expected, abs=0.15)
    filled = family.fill(given[:1], family.parameters(sums), np.ones((1, 1)))
    assert filled[0, 1] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("cells", [(0, 100), (3, 4, 9), (0, 1, 2, 50)])
def test_the_interquartile_range_of_counts_with_gaps(cells):
    """A thousand rows in each cell, spread evenly over it."""
    count = np.zeros(101)
    count[list(cells)] = 1000.0
    rows = np.concatenate([cell + (np.arange(1000) + 0.5) / 1000 for cell in cells])
    expected = np.subtract(*np.quantile(rows, [0.75, 0.25], method="inverted_cdf"))
    assert grids.interquartile_ranges(count[None])[0] == pytest.approx(expected, abs=2e-3)


def test_even_counts_have_no_bandwidth_or_a_finite_one():
    assert not np.isinf(grids.improved_sheather_jones(np.full(64, 5.0)))

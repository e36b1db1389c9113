"""Full and tied Gaussians by triangular products and rank-k updates, against direct formulas."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from calibayes import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, TrainingOptions
from calibayes.core.protocols import Layout
from calibayes.engines import Serial
from calibayes.families import Diagonal, Full, Gaussian, Product, Spherical, Tied, TiedDiagonal, TiedSpherical
from calibayes.kernels import gaussian_density, moments
from calibayes.kernels.posterior import NEGLIGIBLE, without_negligible
from calibayes.rules import RC
from calibayes.tables.row_blocks import BLOCK_MULTIPLES, BYTES_PER_BLOCK, ArraySource


def rows(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def covariances(k, d, condition=10.0, seed=0):
    """Random directions, variances spread evenly in logarithm."""
    rng = np.random.default_rng(seed)
    roots = [
        np.linalg.qr(rng.normal(size=(d, d)))[0] * condition ** np.linspace(-0.25, 0.25, d) for _ in range(k)
    ]
    return np.stack([root @ root.T for root in roots])


class TestDensity:
    @pytest.mark.parametrize("n", [1, moments.FEWEST_ROWS, 3 * moments.CELLS // 70 + 1])
    def test_a_covariance_for_each_class_agrees_with_scipy(self, n):
        x, mean, covariance = rows(n, 70), rows(3, 70, seed=1), covariances(3, 70)
        found = gaussian_density.full_gaussian(x, mean, covariance, *gaussian_density.whiteners(covariance))
        expected = [stats.multivariate_normal(m, c).logpdf(x) for m, c in zip(mean, covariance, strict=True)]
        assert_allclose(found, np.stack(expected, axis=-1).reshape(n, 3), rtol=1e-10)

    @pytest.mark.parametrize("n", [1, 3 * moments.CELLS // 40 + 1])
    def test_a_shared_covariance_agrees_with_scipy(self, n):
        x, mean, covariance = 1e3 + rows(n, 40), 1e3 + rows(3, 40, seed=1), covariances(1, 40)
        found = gaussian_density.full_gaussian(x, mean, covariance, *gaussian_density.whiteners(covariance))
        expected = [stats.multivariate_normal(m, covariance[0]).logpdf(x) for m in mean]
        assert_allclose(found, np.stack(expected, axis=-1).reshape(n, 3), rtol=1e-10)

    def test_no_distance_is_negative(self):
        covariance = covariances(1, 5)
        mean = rows(2, 5) + np.array([[0.0], [1e5]])
        assert (
            gaussian_density.distances_shared(
                mean, mean, gaussian_density.whiteners(covariance)[0][0], np.diag(covariance[0])
            )
            >= 0
        ).all()

    def test_a_matrix_that_is_not_positive_definite_has_no_factor(self):
        with pytest.raises(np.linalg.LinAlgError):
            gaussian_density.whiteners(-np.eye(3)[None])


class TestSinglePrecision:
    """Products of float32 rows: rounding of d terms each, in every whitened coordinate."""

    @pytest.mark.parametrize("shared", [False, True])
    @pytest.mark.parametrize("condition", [1.0, 1e3])
    def test_error_is_bounded_by_rounding(self, shared, condition):
        n, d, k = 500, 96, 3
        x, mean = rows(n, d).astype(np.float32), 0.3 * rows(k, d, seed=1)
        covariance = covariances(1 if shared else k, d, condition)
        arguments = (mean, covariance, *gaussian_density.whiteners(covariance))
        single = gaussian_density.full_gaussian(x, *arguments)
        double = gaussian_density.full_gaussian(x.astype(np.float64), *arguments)
        assert not np.array_equal(single, double)
        assert (np.abs(single - double) <= _rounding(x, mean, arguments[2], shared)).all()

    @pytest.mark.parametrize("shared", [False, True])
    def test_an_ill_conditioned_covariance_is_computed_in_double(self, shared):
        x, mean = rows(50, 20).astype(np.float32), rows(2, 20, seed=1)
        covariance = covariances(1 if shared else 2, 20, condition=1e16)
        arguments = (mean, covariance, *gaussian_density.whiteners(covariance))
        assert_array_equal(
            gaussian_density.full_gaussian(x, *arguments),
            gaussian_density.full_gaussian(x.astype(np.float64), *arguments),
        )

    @pytest.mark.parametrize("estimator", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
    def test_sums_are_those_of_the_same_rows_in_double(self, estimator):
        x, y = (rows(300, 6) + 100.0).astype(np.float32), np.arange(300) % 3
        single, double = (estimator(rule="ml").fit(table, y) for table in (x, x.astype(np.float64)))
        assert single.means_.dtype == np.float32
        for name, value in double.data_statistics_["columns"].items():
            assert single.data_statistics_["columns"][name].dtype == np.float64
            assert_allclose(single.data_statistics_["columns"][name], value, rtol=1e-12, atol=1e-9)

    def test_calibration_gives_the_same_decisions(self):
        rng = np.random.default_rng(3)
        y = np.arange(600) % 3
        x = (rng.normal(size=(600, 8)) + 0.8 * rng.normal(size=(3, 8))[y]).astype(np.float32)
        single, double = (
            QuadraticDiscriminantAnalysis(rule=RC(step=0.1), max_iter=10, stop=None).fit(table, y)
            for table in (x, x.astype(np.float64))
        )
        assert_allclose(single.predict_proba(x), double.predict_proba(x.astype(np.float64)), atol=1e-4)


def _rounding(x, mean, whitener, shared):
    """Most that rounding to float32 can change a log density by: half of 2 |z| |e| + |e|^2, with e <= terms * unit."""
    unit, d = 2.0**-24, x.shape[1]
    factors = np.broadcast_to(whitener, (len(mean), d, d))
    bounds = []
    for m, factor in zip(mean, factors, strict=True):
        # About the middle of the means a row and a mean are whitened apart: the terms of both count.
        point = mean.mean(axis=0) if shared else m
        away, size = x - m, np.abs(x - point) + np.abs(m - point)
        error = (d + 4) * unit * np.linalg.norm(size @ np.abs(factor).T, axis=1)
        length = np.linalg.norm(away @ factor.T, axis=1)
        own = np.linalg.norm((x - point) @ factor.T, axis=1) + np.linalg.norm((m - point) @ factor.T)
        bounds.append(0.5 * (2.0 * length * error + error**2) + (d + 4) * unit * own**2)
    return np.stack(bounds, axis=1)


class TestMoments:
    def test_rank_updates_are_weighted_outer_products(self):
        x, weights = rows(200, 7), rows(200, 4, seed=1)
        weights[:, 1] = np.abs(weights[:, 1])
        weights[::3, 2] = 0.0
        weights[:, 3] = 0.0
        assert_allclose(
            moments.outer(x, weights), np.einsum("nk,ni,nj->kij", weights, x, x), rtol=1e-12, atol=1e-12
        )

    def test_rows_without_weight_are_skipped(self):
        x, weights = rows(20, 3), rows(20, 2, seed=1)
        weights[:5], x[:5] = 0.0, np.inf
        assert_allclose(moments.outer(x, weights), moments.outer(x[5:], weights[5:]), rtol=1e-14)

    def test_a_weight_of_nan_is_not_lost(self):
        weights = np.array([[1.0], [np.nan]])
        assert np.isnan(moments.outer(rows(2, 3), weights)).all()

    def test_weights_that_add_up_to_none_are_none(self):
        posterior = np.random.default_rng(0).dirichlet(np.ones(7), size=50)
        residual = np.eye(7)[np.arange(50) % 7] - posterior
        assert_array_equal(moments.sum_over_classes(residual), 0.0)
        assert_allclose(moments.sum_over_classes(1e-20 * posterior), 1e-20)

    def test_calibration_does_not_change_a_tied_second_moment(self):
        x, y = rows(300, 4), np.arange(300) % 3
        model = LinearDiscriminantAnalysis(rule=RC(step=0.5), max_iter=5, stop=None).fit(x, y)
        ours, given = (s["columns"] for s in (model.statistics_, model.data_statistics_))
        assert_array_equal(ours["second"], given["second"])
        assert not np.array_equal(ours["first"], given["first"])


class TestUndecidedRows:
    def test_only_tiny_weights_are_left_out(self):
        weights = np.array(
            [[1.0, -1e-3, NEGLIGIBLE, -NEGLIGIBLE], [1.01 * NEGLIGIBLE, -1.01 * NEGLIGIBLE, 0.0, np.nan]]
        )
        kept = np.array([[1.0, -1e-3, 0.0, 0.0], [1.01 * NEGLIGIBLE, -1.01 * NEGLIGIBLE, 0.0, np.nan]])
        assert_array_equal(without_negligible(weights), kept)

    @pytest.mark.parametrize("shape", [Full(), Tied()])
    def test_a_statistic_moves_by_less_than_the_bound(self, shape):
        x, k = rows(400, 5), 3
        family = Gaussian(shape).bind(Layout(("a", "b", "c"), tuple("vwxyz"), center=np.zeros(5)))
        weights = 10.0 ** np.random.default_rng(1).uniform(-20, -8, size=(400, k))
        whole, left = (family.statistics(x, w) for w in (weights, without_negligible(weights)))
        assert (without_negligible(weights) == 0).mean() > 0.5
        ones = np.ones((400, k))
        most = {"count": ones.sum(axis=0), "first": ones.T @ np.abs(x), "second": np.abs(x).T @ np.abs(x)}
        classes = {"count": 1, "first": 1, "second": k if shape.tied else 1}
        for name, bound in most.items():
            moved = np.abs(whole[name] - left[name])
            assert (moved <= NEGLIGIBLE * classes[name] * bound + 1e-15 * np.abs(whole[name])).all()
            assert moved.max() > 0

    def test_calibration_is_that_of_all_rows(self, monkeypatch):
        rng = np.random.default_rng(0)
        y = np.arange(900) % 3
        x = 8.0 * rng.normal(size=(3, 4))[y] + rng.normal(size=(900, 4)) * (1.0 + y[:, None])
        model = QuadraticDiscriminantAnalysis(rule=RC(step=0.1), max_iter=20, stop=None)
        few = model.fit(x, y).statistics_["columns"]
        weights = np.eye(3)[y] - model.predict_proba(x)
        assert 0.2 < (without_negligible(weights) == 0).mean() < 1.0
        monkeypatch.setattr("calibayes.learn.run.NEGLIGIBLE", 0.0)
        every = model.fit(x, y).statistics_["columns"]
        for name, value in every.items():
            assert_allclose(few[name], value, rtol=1e-9, atol=1e-8)


@dataclass
class Counting:
    """The serial engine, with the number of passes."""

    passes: list = field(default_factory=list)

    def total(self, function, source):
        self.passes.append(len(source.parts()))
        return Serial().total(function, source)

    def each(self, function, source):
        self.passes.append(len(source.parts()))
        return Serial().each(function, source)


class TestPasses:
    @pytest.mark.parametrize("estimator", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
    def test_a_closed_form_reads_the_rows_once(self, estimator):
        engine = Counting()
        model = estimator(rule="ml", engine=engine).fit(rows(60, 3), np.arange(60) % 2)
        assert len(engine.passes) == 1
        assert not hasattr(model, "history_")
        assert model.best_iter_ == 0

    def test_a_closed_form_with_callbacks_has_a_history(self):
        model = QuadraticDiscriminantAnalysis(
            rule="ml", training=TrainingOptions(callbacks=[lambda progress: None])
        )
        assert len(model.fit(rows(60, 3), np.arange(60) % 2).history_["error"]) == 1

    def test_any_number_of_threads_gives_the_same_bits(self):
        x, y = rows(13_000, 80) * 2.0, np.arange(13_000) % 3
        fits = [
            QuadraticDiscriminantAnalysis(n_jobs=jobs, max_iter=2, stop=None).fit(x, y) for jobs in (1, 2, 5)
        ]
        assert len(ArraySource({"x": x}, y, y, y, least_cells=3 * 80 * 81 // 2).parts()) > 1
        assert gaussian_density.MANY_PRODUCTS < 3 * 80**3  # covariances are factored by several threads, too
        for fit in fits[1:]:
            for name, array in fits[0].statistics_["columns"].items():
                assert_array_equal(fit.statistics_["columns"][name], array)
            assert_array_equal(fit.predict_proba(x), fits[0].predict_proba(x))

    def test_blocks_are_no_smaller_than_the_statistics(self):
        engine, d, k = Counting(), 120, 3
        model = QuadraticDiscriminantAnalysis(rule="ml", prior=None, engine=engine)
        model.fit(rows(9000, d), np.arange(9000) % k)
        assert model.fitted_.model.least_cells == k * d * (d + 1) // 2
        x, zeros = np.zeros((90_000, d)), np.zeros(90_000)
        for least in (0, 10**5, 10**6, 3 * 10**6, 10**8):
            blocks = [
                load() for load in ArraySource({"x": x}, zeros, zeros, zeros, least_cells=least).parts()
            ]
            sizes = [block.columns["x"].size for block in blocks]
            assert min(sizes) >= least or len(blocks) == 1
            assert max(sizes) <= max(4 * least, 2 * BYTES_PER_BLOCK // 8)
            assert len(blocks) < min(BLOCK_MULTIPLES) or len(blocks) % min(BLOCK_MULTIPLES) == 0

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("estimator", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
    def test_predictions_do_not_depend_on_threads(self, estimator, dtype):
        x, y = rows(30_000, 40).astype(dtype), np.arange(30_000) % 3
        models = [estimator(rule="ml", n_jobs=jobs).fit(x, y) for jobs in (1, 3)]
        assert_array_equal(*(model.predict_joint_log_proba(x) for model in models))


class TestSpread:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_extent_and_variances(self, dtype):
        x = (rows(40_000, 3) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1e3]).astype(dtype)
        assert moments.extent(x) == (x.min(), x.max())
        assert_allclose(
            moments.variances(x, np.median(x, axis=0)), np.var(x, axis=0, dtype=np.float64), rtol=1e-9
        )

    def test_a_missing_value_makes_the_extent_nan(self):
        x = rows(40_000, 3)
        x[-1, 1] = np.nan
        assert np.isnan(moments.extent(x)).all()
        assert moments.extent(np.zeros((0, 3))) == (0.0, 0.0)


class TestContrast:
    """Log densities up to a term that is equal for all classes."""

    @pytest.mark.parametrize(
        "shape", [Full(), Tied(), Diagonal(), TiedDiagonal(), Spherical(), TiedSpherical()]
    )
    @pytest.mark.parametrize("offset", [0.0, 1e6])
    @pytest.mark.parametrize("gaps", [False, True])
    def test_classes_differ_as_their_densities_do(self, shape, offset, gaps):
        x, labels = rows(120, 4) + offset, np.eye(3)[np.arange(120) % 3]
        layout = Layout(("a", "b", "c"), tuple("wxyz"), center=x[0], variance=np.ones(4))
        family = Gaussian(shape).bind(layout)
        parameters = family.parameters(family.statistics(x, labels))
        x = np.where(np.arange(480).reshape(120, 4) % 7 == 3, np.nan, x) if gaps else x
        apart = family.log_density(x, parameters) - family.contrast(x, parameters)
        assert_allclose(apart, apart[:, :1] + np.zeros(3), atol=1e-8)

    def test_rows_of_float32_are_classified_as_those_of_float64(self):
        x, labels = rows(200, 6).astype(np.float32), np.eye(3)[np.arange(200) % 3]
        family = Gaussian(Tied()).bind(Layout(("a", "b", "c"), tuple("uvwxyz"), center=np.zeros(6)))
        parameters = family.parameters(family.statistics(x, labels))
        single, double = (family.contrast(table, parameters) for table in (x, x.astype(np.float64)))
        assert not np.array_equal(single, double)
        assert_allclose(single, double, atol=1e-5)

    def test_calibration_is_that_of_densities(self, monkeypatch):
        x, y = rows(300, 4) + 0.5 * np.eye(3, 4)[np.arange(300) % 3], np.arange(300) % 3
        model = LinearDiscriminantAnalysis(rule=RC(step=0.5), max_iter=10, stop=None)
        quick = model.fit(x, y).history_["log_loss"]
        monkeypatch.setattr(Product, "contrast", Product.log_joint)
        assert_allclose(model.fit(x, y).history_["log_loss"], quick, rtol=1e-12)

"""Kernel densities over all columns together, beyond scikit-learn's checks."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_moons

from calibayes import JointKernelClassifier
from calibayes.estimators.joint_kernel import PRIOR_ROWS
from calibayes.kernels import joint_density
from calibayes.kernels.joint_density import STEPS, KernelRows, relevance
from calibayes.model.checked_rows import Rows
from calibayes.model.splits import unit_weight
from calibayes.tables.read import read_array, read_frame


def direct_sums(rows, kept, square, left_out=None):
    """Sums of kernels by class, one row at a time, (n, k)."""
    sums = []
    for i, row in enumerate(rows):
        kernels = np.exp(-np.sum((kept.rows - row) ** 2, axis=1) / (2 * square)) * kept.weight
        if left_out is not None:
            kernels[left_out[i]] = 0.0
        sums.append([kernels[start:stop].sum() for start, stop in pairwise(kept.ends)])
    return np.array(sums)


def direct_posterior(rows, kept, square, prior, prior_rows, step, left_out=None):
    """p(class | x) smoothed towards that of twice the bandwidth, from the widest on."""
    posterior = np.tile(prior, (len(rows), 1))
    distances = np.array([np.sum((kept.rows - row) ** 2, axis=1) for row in rows])
    if left_out is not None:
        distances[np.arange(len(rows)), left_out] = np.inf
    for wider in range(step % 2, step + 1, 2):
        sums = direct_sums(rows, kept, square / 2**wider, left_out)
        nearest = np.exp(-distances.min(axis=1) / (2 * square / 2**wider))
        unknown = 0.01 * nearest[:, None]
        posterior = sums + prior_rows * posterior + unknown * prior
        posterior /= sums.sum(axis=1, keepdims=True) + prior_rows + unknown
    return posterior


@pytest.fixture
def cloud():
    rng = np.random.default_rng(0)
    kept = KernelRows(rng.normal(size=(70, 3)), rng.random(70), (0, 20, 20, 50, 70))
    return rng.normal(size=(40, 3)), kept


class TestKernels:
    def test_class_sums_are_direct_sums_for_every_bandwidth(self, cloud):
        rows, kept = cloud
        found = joint_density.class_sums(rows, kept, 3.0)
        for step in range(STEPS):
            expected = direct_sums(rows, kept, 3.0 / 2**step)
            unit = np.exp(-found.nearest * 2.0**step)[:, None]
            assert_allclose(found.sums[step] * unit, expected, rtol=1e-8, atol=1e-300)
        some = joint_density.class_sums(rows, kept, 3.0, (1, 2, 7))
        assert_allclose(some.sums, found.sums[[1, 2, 7]], rtol=1e-8, atol=1e-300)

    def test_missing_values_are_left_out_of_distances(self, cloud):
        rows, kept = cloud
        gaps = rows.copy()
        gaps[:, 0] = np.nan
        gaps[0] = np.nan
        found = joint_density.class_sums(gaps, kept, 0.7)
        known = joint_density.class_sums(rows[1:, 1:], replace(kept, rows=kept.rows[:, 1:]), 0.7)
        assert_allclose(found.sums[:, 1:], known.sums, rtol=1e-9)
        assert_allclose(found.nearest[1:], known.nearest, atol=1e-12)
        weights = [kept.weight[start:stop].sum() for start, stop in pairwise(kept.ends)]
        assert_allclose(found.sums[:, 0], np.tile(weights, (STEPS, 1)))

    @pytest.mark.parametrize("step", [0, 1, 6, 9])
    def test_posteriors_are_smoothed_towards_wider_kernels(self, cloud, step):
        rows, kept = cloud
        prior, prior_rows = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.0, 0.3, 10.0])
        found = joint_density.class_sums(rows, kept, 3.0)
        along = list(joint_density.posteriors(found, prior, prior_rows))
        for place, value in enumerate(prior_rows):
            expected = direct_posterior(rows, kept, 3.0, prior, value, step)
            assert_allclose(along[step][place], expected, rtol=1e-7)
        alone = joint_density.class_sums(rows, kept, 3.0, joint_density.steps_up_to(step))
        assert_allclose(list(joint_density.posteriors(alone, prior, prior_rows))[-1], along[step], rtol=1e-8)

    def test_where_no_row_is_near_wider_kernels_decide(self):
        kept = KernelRows(np.array([[0.0], [1.0]]), np.ones(2), (0, 1, 2))
        found = joint_density.class_sums(np.array([[1e3]]), kept, 1.0)
        wide, *_, narrow = joint_density.posteriors(found, np.array([0.9, 0.1]), np.array([1.0]))
        assert_allclose(wide[0, 0], [0.9, 0.1])
        assert_allclose(narrow[0, 0], [0.9, 0.1])

    def test_a_row_is_left_out_of_its_own_sums(self, cloud):
        _, kept = cloud
        positions = np.array([3, 9, 69])
        found = joint_density.class_sums(kept.rows[positions], kept, 3.0, left_out=positions)
        unit = np.exp(-found.nearest * 2.0**4)[:, None]
        expected = direct_sums(kept.rows[positions], kept, 3.0 / 16, positions)
        assert_allclose(found.sums[4] * unit, expected, rtol=1e-8)

    def test_a_pickled_model_does_not_contain_its_rows_twice(self, cloud):
        rows, kept = cloud
        before = len(pickle.dumps(kept))
        joint_density.class_sums(np.where(np.arange(3) == 1, np.nan, rows), kept, 1.0)
        assert len(pickle.dumps(kept)) == before

    def test_densities_integrate_to_one(self):
        kept = KernelRows(np.array([[-1.0], [0.3], [2.0]]), np.array([5.0, 3.0, 2.0]), (0, 3))
        grid = np.linspace(-9.0, 9.0, 20001)[:, None]
        found = joint_density.log_densities(grid, kept, (0.25, 0.5))
        assert np.trapezoid(np.exp(found), grid[:, 0]) == pytest.approx(1.0, abs=1e-6)
        parts = [joint_density.log_densities(grid, kept, (square,)) for square in (0.25, 0.5)]
        assert_allclose(np.exp(found), np.exp(parts).mean(axis=0))

    def test_relevance_is_mutual_information_with_the_class(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 4000)
        noise = rng.normal(size=4000)
        found = relevance(np.stack([y.astype(float), noise, noise + 3.0 * y], axis=1), np.eye(2)[y], 4000)
        assert found[0] == pytest.approx(np.log(2), abs=0.01)
        assert found[1] < 0.01 < found[2] < found[0]

    def test_relevance_does_not_depend_on_signs_or_units_of_weight(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 600)
        rare = np.where(np.arange(600) < 30, 0.0, 1.0)
        x = np.column_stack([rare, -rare, rng.normal(size=600) + y])
        found = relevance(x, np.eye(2)[np.where(rare == 0, 1, y)], 600)
        assert 0.02 < found[0] == pytest.approx(found[1])
        assert_allclose(relevance(x, 1e-3 * np.eye(2)[y], 600), relevance(x, np.eye(2)[y], 600))


class TestEstimator:
    def test_kept_rows_represent_all_distinct_rows(self):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 2, (3000, 3)).astype(float)
        y = (rng.random(3000) < 0.1 + 0.8 * X[:, 0] * X[:, 1]).astype(int)
        few, many = (JointKernelClassifier(kept_rows=kept).fit(X, y) for kept in (400, 3000))
        assert_allclose(few.predict_proba(X), many.predict_proba(X), atol=0.15)

    def test_left_out_losses_are_dropped_when_nothing_is_chosen(self):
        X, y = load_iris(return_X_y=True)
        model = JointKernelClassifier().fit(X, y).set_params(bandwidth_step=3, prior_rows=0.1).fit(X, y)
        assert not hasattr(model, "left_out_log_loss_")

    @pytest.mark.parametrize("weight", [5e-324, 1e-3, 7.0, 1e307])
    def test_predictions_do_not_depend_on_the_unit_of_weights(self, weight):
        X, y = load_iris(return_X_y=True)
        plain, weighted = (
            JointKernelClassifier().fit(X, y),
            JointKernelClassifier().fit(X, y, np.full(150, weight)),
        )
        assert_allclose(weighted.predict_proba(X), plain.predict_proba(X), atol=1e-9)

    def test_far_numbers_have_probabilities(self):
        X, y = load_iris(return_X_y=True)
        found = JointKernelClassifier().fit(X * 1e-250, y).predict_proba(np.full((1, 4), 1e99))
        assert np.isfinite(found).all()

    @pytest.mark.parametrize("prior_rows", [0.0, 0.01, 10.0])
    def test_nothing_is_certain_far_from_all_rows(self, prior_rows):
        X, y = load_iris(return_X_y=True)
        model = JointKernelClassifier(bandwidth_step=9, prior_rows=prior_rows).fit(X, y)
        assert model.predict_proba([[1e90, 1.0, 1.0, 1.0], [0.0, 1e9, 0.0, 0.0]]).min() > 1e-3

    def test_classes_that_no_line_separates(self):
        X, y = make_moons(2400, noise=0.15, random_state=0)
        assert JointKernelClassifier().fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.98

    def test_bandwidth_and_prior_rows_minimize_the_leave_one_out_log_loss(self):
        X, y = load_iris(return_X_y=True)
        model = JointKernelClassifier().fit(X, y)
        losses, density = model.left_out_log_loss_, model.density_
        least = losses.min(axis=1)
        place = PRIOR_ROWS.tolist().index(model.prior_rows_)
        assert least[place] <= least.min() / (1 - 1e-3)
        assert (least[place + 1 :] > least.min() / (1 - 1e-3)).all()
        assert model.bandwidth_step_ == np.argmin(losses[place])
        posterior = direct_posterior(
            density.centers.rows,
            density.centers,
            density.square,
            density.prior,
            model.prior_rows_,
            model.bandwidth_step_,
            np.arange(150),
        )
        log_loss = -np.mean(np.log(posterior[np.arange(150), density.codes]))
        assert least[place] == pytest.approx(log_loss, rel=1e-8)

    def test_bandwidth_or_prior_rows_may_be_given_alone(self):
        X, y = load_iris(return_X_y=True)
        narrow = JointKernelClassifier(bandwidth_step=4).fit(X, y)
        assert (narrow.bandwidth_step_, narrow.left_out_log_loss_.shape) == (4, (8, 15))
        backed = JointKernelClassifier(prior_rows=0.5).fit(X, y)
        assert (backed.prior_rows_, backed.left_out_log_loss_.shape) == (0.5, (1, 15))

    def test_repeated_rows_are_recognized_where_neighbors_are_uninformative(self):
        """Some rows occur again, always with the same label; the labels of their neighbors are random."""
        rng = np.random.default_rng(0)
        contents, labels = rng.uniform(size=(300, 3)), rng.integers(0, 2, 300)
        seen = np.append(rng.integers(0, 60, 300), np.arange(60, 300))
        model = JointKernelClassifier().fit(contents[seen], labels[seen])
        known = model.predict_proba(contents[:60])[np.arange(60), labels[:60]]
        assert known.mean() > 0.8
        assert model.predict_proba(rng.uniform(size=(200, 3))).max(axis=1).mean() < 0.65

    def test_uninformative_columns_have_little_relevance(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 300)
        X = np.column_stack([y + 0.3 * rng.normal(size=300), rng.normal(size=(300, 8))])
        model = JointKernelClassifier().fit(X, y)
        assert max(list(model.relevance_.values())[1:]) < 0.05
        assert next(iter(model.relevance_.values())) == 1.0

    def test_contributions_sum_to_the_log_odds(self):
        X, y = load_iris(return_X_y=True, as_frame=True)
        model = JointKernelClassifier().fit(X, y)
        reasons = model.explain(X)
        log_posterior = model.predict_log_proba(X)
        best = np.sort(log_posterior, axis=1)
        assert_allclose(reasons.log_odds, best[:, -1] - best[:, -2], atol=1e-9)
        assert reasons.names == ("class prior", *X.columns)
        assert "petal" in next(iter(reasons.overall()))

    def test_columns_are_left_out_of_the_distances(self):
        X, y = load_iris(return_X_y=True, as_frame=True)
        X["kind"] = np.where(np.arange(150) % 3, "a", "b")
        model = JointKernelClassifier().fit(X, y)
        density, step = model.density_, model.bandwidth_step_
        known = np.array([source in (1, 4) for source in density.encoder.sources])
        rows = density.encode(read_frame(X))[::10, known]
        kept = replace(density.centers, rows=density.centers.rows[:, known])
        expected = direct_posterior(rows, kept, density.square, density.prior, model.prior_rows_, step)
        scores = model.marginals(X[::10]).scores(np.array([False, True, False, False, True]))
        assert_allclose(np.exp(scores), expected, rtol=1e-8)
        nothing = model.marginals(X[::10]).scores(np.zeros(5, dtype=bool))
        assert_allclose(np.exp(nothing), np.tile(density.prior, (15, 1)), rtol=1e-12)

    def test_a_row_of_weight_two_is_two_rows(self):
        X, y = load_iris(return_X_y=True)
        many = np.random.default_rng(0).integers(0, 3, 150)
        weighted = JointKernelClassifier().fit(X, y, sample_weight=many)
        repeated = JointKernelClassifier().fit(np.repeat(X, many, axis=0), np.repeat(y, many))
        assert weighted.bandwidth_step_ == repeated.bandwidth_step_
        assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)

    def test_class_weights_count_by_their_ratio(self):
        X, y = load_iris(return_X_y=True)
        found = [
            JointKernelClassifier(class_weight={0: unit, 1: 3 * unit, 2: 0.1 * unit})
            .fit(X, y)
            .predict_proba(X)
            for unit in (1.0, 2.0, 0.3)
        ]
        assert_allclose(found[1], found[0], atol=1e-9)
        assert_allclose(found[2], found[0], atol=1e-9)

    @pytest.mark.parametrize(
        ("weight", "factor", "unit"),
        [
            ([1, 1, 3], 1.0, 1.0),
            ([2, 4, 6], 1.0, 2.0),
            ([2.1, 6.3, 14.7], 0.7, 2.1),
            ([0.5, 0.5, 0.5], 1.0, 0.5),
            ([1e307, 1e307, 1e307], 1.0, 1e307),
            ([1, 1, 999_998], 1.0, 1000.0),
            ([0.5, 0.5, 1e-9], 1.0, 0.5),
        ],
    )
    def test_unit_weight(self, weight, factor, unit):
        table, factors = read_array(np.arange(3.0)[:, None]), np.full(3, factor)
        rows = Rows(table, np.zeros(3, int), np.array(weight, dtype=float), np.arange(3), factors)
        assert unit_weight(rows) == pytest.approx(unit, rel=1e-6)

    def test_columns_may_have_any_unit(self):
        X, y = load_iris(return_X_y=True)
        with np.errstate(all="raise"):
            far = JointKernelClassifier().fit(X * 1e20, y).predict_proba(X * 1e20)
        assert_allclose(far, JointKernelClassifier().fit(X, y).predict_proba(X), atol=1e-7)

    def test_many_rows_are_predicted_in_parts(self, monkeypatch):
        X, y = load_iris(return_X_y=True, as_frame=True)
        model = JointKernelClassifier().fit(X, y)
        at_once, reasons = model.predict_proba(X), model.explain(X).log_odds
        monkeypatch.setattr("calibayes.estimators.joint_kernel.MOST_SUMS", 100)
        assert_allclose(model.predict_proba(X), at_once, rtol=1e-9)
        assert_allclose(model.explain(X).log_odds, reasons, rtol=1e-6, atol=1e-9)

    def test_a_random_subset_of_many_rows_is_kept(self):
        rng = np.random.default_rng(0)
        y = np.arange(25_000) % 2
        X = rng.normal(size=(25_000, 2)) + 3.0 * y[:, None]
        model = JointKernelClassifier(bandwidth_step=6, prior_rows=1.0).fit(X, y)
        assert 20_000 <= len(model.density_.codes) <= 20_002
        assert model.score(X[:500], y[:500]) > 0.95

    def test_kept_rows_keep_the_class_frequencies(self):
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1], [3900, 100])
        X = rng.normal(size=(4000, 2)) + 4.0 * y[:, None]
        model = JointKernelClassifier(kept_rows=400).fit(X, y)
        assert_allclose(model.density_.prior, [0.975, 0.025])
        assert_array_equal(np.bincount(model.density_.codes), [390, 50])
        assert model.score(X, y) > 0.99

    def test_predictions_do_not_depend_on_the_number_of_threads(self):
        X, y = make_moons(3000, noise=0.3, random_state=0)
        one, two = (JointKernelClassifier(n_jobs=jobs).fit(X, y) for jobs in (1, 2))
        assert_array_equal(one.predict_proba(X), two.predict_proba(X))

    @pytest.mark.parametrize(
        "options",
        [
            {"bandwidth_step": -1},
            {"bandwidth_step": STEPS},
            {"prior_rows": -1},
            {"prior_rows": "few"},
            {"kept_rows": 0},
        ],
    )
    def test_bad_options_are_refused(self, options):
        X, y = load_iris(return_X_y=True)
        with pytest.raises(ValueError, match=next(iter(options))):
            JointKernelClassifier(**options).fit(X, y)

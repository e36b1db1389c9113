"""Kernel densities over all columns together, beyond scikit-learn's checks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_moons

from calibayes import JointKernelClassifier
from calibayes.kernels import joint_kernel
from calibayes.kernels.joint_kernel import STEPS
from calibayes.kernels.relevance import relevance


def by_hand(rows, kept, shares, square, own=None):
    """Sums of kernels in units of the nearest one's, one row at a time."""
    found = []
    for i, row in enumerate(rows):
        away = np.sum((kept - row) ** 2, axis=1)
        left = np.arange(len(kept)) != (-1 if own is None else own[i])
        kernels = np.exp(-(away - away[left].min()) / (2 * square)) * left
        found.append(kernels @ shares)
    return np.array(found)


@pytest.fixture
def cloud():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)), rng.normal(size=(70, 3)), rng.random((70, 4))


class TestKernels:
    def test_votes_are_those_by_hand_for_every_bandwidth(self, cloud):
        rows, kept, shares = cloud
        found = joint_kernel.votes(rows, kept, shares, 3.0)
        for step in range(STEPS):
            expected = by_hand(rows, kept, shares, 3.0 / 2**step)
            assert_allclose(found[step], expected, rtol=1e-8, atol=1e-300)
            assert_allclose(joint_kernel.votes_at(rows, kept, shares, 3.0 / 2**step), expected, rtol=1e-8)

    def test_a_row_is_left_out_of_its_own_sums(self, cloud):
        _, kept, shares = cloud
        own = np.array([3, 9, 69])
        found = joint_kernel.votes(kept[own], kept, shares, 3.0, own)
        assert_allclose(found[4], by_hand(kept[own], kept, shares, 3.0 / 16, own), rtol=1e-8)

    def test_densities_integrate_to_one(self):
        kept, grid = np.array([[-1.0], [0.3], [2.0]]), np.linspace(-9.0, 9.0, 20001)[:, None]
        found = joint_kernel.log_densities(grid, kept, np.array([0.5, 0.3, 0.2]), 0.25)
        assert np.trapezoid(np.exp(found), grid[:, 0]) == pytest.approx(1.0, abs=1e-6)

    def test_relevance_is_the_mutual_information_of_what_is_told(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 4000)
        noise = rng.normal(size=4000)
        found = relevance(np.stack([y.astype(float), noise, noise + 3.0 * y], axis=1), np.eye(2)[y])
        assert found[0] == pytest.approx(np.log(2), abs=0.01)
        assert found[1] < 0.01 < found[2] < found[0]

    def test_relevance_knows_neither_signs_nor_units_of_weight(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 600)
        rare = np.where(np.arange(600) < 30, 0.0, 1.0)
        x = np.column_stack([rare, -rare, rng.normal(size=600) + y])
        found = relevance(x, np.eye(2)[np.where(rare == 0, 1, y)])
        assert 0.02 < found[0] == pytest.approx(found[1])
        assert_allclose(relevance(x, 1e-3 * np.eye(2)[y]), relevance(x, np.eye(2)[y]))


class TestEstimator:
    def test_rows_that_are_kept_have_the_contents_of_all(self):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 2, (3000, 3)).astype(float)
        y = (rng.random(3000) < 0.1 + 0.8 * X[:, 0] * X[:, 1]).astype(int)
        few, many = (JointKernelClassifier(kept_rows=kept).fit(X, y) for kept in (400, 3000))
        assert_allclose(few.predict_proba(X), many.predict_proba(X), atol=0.15)

    def test_what_was_left_out_is_forgotten_where_nothing_is(self):
        X, y = load_iris(return_X_y=True)
        model = JointKernelClassifier().fit(X, y).set_params(narrowing=3).fit(X, y)
        assert not hasattr(model, "left_out_log_loss_")

    @pytest.mark.parametrize("weight", [5e-324, 1e-3, 7.0, 1e307])
    def test_the_unit_of_weights_leaves_no_trace(self, weight):
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

    def test_it_finds_what_no_line_tells_apart(self):
        X, y = make_moons(400, noise=0.15, random_state=0)
        assert JointKernelClassifier().fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.97

    def test_the_bandwidth_is_the_one_under_which_left_out_rows_are_likeliest(self):
        X, y = load_iris(return_X_y=True)
        model = JointKernelClassifier().fit(X, y)
        assert model.narrowing_ == np.argmin(model.left_out_log_loss_)
        density = model.density_
        codes = density.shares.argmax(axis=1)
        square = density.square / 2**model.narrowing_
        votes = by_hand(density.kept, density.kept, density.shares, square, np.arange(150))
        smooth = votes + 0.05 * density.prior
        log_loss = -np.mean(np.log(smooth[np.arange(150), codes] / smooth.sum(axis=1)))
        assert model.left_out_log_loss_.min() == pytest.approx(log_loss, rel=1e-8)

    def test_columns_that_say_nothing_hardly_count(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 300)
        X = np.column_stack([y + 0.3 * rng.normal(size=300), rng.normal(size=(300, 8))])
        model = JointKernelClassifier().fit(X, y)
        assert max(list(model.relevance_.values())[1:]) < 0.05
        assert next(iter(model.relevance_.values())) == 1.0

    def test_reasons_sum_to_the_log_odds_and_begin_with_what_tells_most(self):
        X, y = load_iris(return_X_y=True, as_frame=True)
        model = JointKernelClassifier().fit(X, y)
        reasons = model.explain(X)
        log_posterior = model.predict_log_proba(X)
        best = np.sort(log_posterior, axis=1)
        assert_allclose(reasons.log_odds, best[:, -1] - best[:, -2], atol=1e-9)
        assert reasons.names[0] == "class prior"
        assert set(reasons.names[1:]) == set(X.columns)
        assert "petal" in reasons.names[1]

    def test_a_row_of_weight_two_does_as_two_rows(self):
        X, y = load_iris(return_X_y=True)
        many = np.random.default_rng(0).integers(0, 3, 150)
        weighted = JointKernelClassifier().fit(X, y, sample_weight=many)
        repeated = JointKernelClassifier().fit(np.repeat(X, many, axis=0), np.repeat(y, many))
        assert weighted.narrowing_ == repeated.narrowing_
        assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)

    def test_some_rows_stand_for_all_of_their_class(self):
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1], [3900, 100])
        X = rng.normal(size=(4000, 2)) + 4.0 * y[:, None]
        model = JointKernelClassifier(kept_rows=400).fit(X, y)
        assert_allclose(model.density_.prior, [0.975, 0.025])
        assert_array_equal(np.count_nonzero(model.density_.shares, axis=0), [390, 50])
        assert model.score(X, y) > 0.99

    def test_the_number_of_threads_leaves_no_trace(self):
        X, y = make_moons(3000, noise=0.3, random_state=0)
        one, two = (JointKernelClassifier(n_jobs=jobs).fit(X, y) for jobs in (1, 2))
        assert_array_equal(one.predict_proba(X), two.predict_proba(X))

    @pytest.mark.parametrize("options", [{"narrowing": -1}, {"narrowing": STEPS}, {"kept_rows": 0}])
    def test_bad_options_are_refused(self, options):
        X, y = load_iris(return_X_y=True)
        with pytest.raises(ValueError, match=next(iter(options))):
            JointKernelClassifier(**options).fit(X, y)

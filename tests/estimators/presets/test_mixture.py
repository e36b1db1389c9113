"""MixtureDiscriminantAnalysis: number of components, shapes, bad input, what it leaves behind."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import calibayes as cb
from calibayes.core.protocols import Layout
from calibayes.datasets import load_penguins
from calibayes.families import Bernoulli, Gaussian, Mixture, NormalInverseWishart, Spherical, Tied
from calibayes.rules import GDT, RC

MDA = cb.MixtureDiscriminantAnalysis
SHAPES = ("full", "diagonal", "spherical", "tied", "tied_diagonal", "tied_spherical")
IGNORE_WARNINGS = pytest.mark.filterwarnings(
    "ignore::calibayes.SingularCovarianceWarning",
    "ignore::calibayes.FewRowsWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


def clumps(n=240, seed=0):
    """Class a has two clumps with class b between them: no single Gaussian of one covariance can tell."""
    rng = np.random.default_rng(seed)
    y = np.array(["a", "b"])[np.arange(n) % 2]
    middle = np.where(y == "b", 0.0, np.where(np.arange(n) % 4 == 0, -4.0, 4.0))
    return rng.normal(size=(n, 3)) + middle[:, None] * [1.0, 0.5, 0.0], y


class TestNumberOfComponents:
    @pytest.mark.parametrize("rule", ["ml", "rc", GDT(lam=0.5)])
    def test_components_separate_classes_that_one_gaussian_cannot(self, rule):
        (X, y), (fresh, truth) = clumps(), clumps(seed=1)
        two = MDA(n_components=(2, 1), rule=rule).fit(X, y)
        assert two.score(fresh, truth) > 0.95
        assert MDA(n_components=1, rule=rule).fit(X, y).score(fresh, truth) < 0.8
        assert_array_equal(two.n_components_, [2, 1])
        assert_allclose(np.sort(two.means_[0][:, 0]), [-4.0, 4.0], atol=1.0)
        assert_allclose([w.sum() for w in two.weights_], 1.0)

    @pytest.mark.parametrize("covariance", SHAPES)
    def test_information_finds_it_class_by_class(self, covariance):
        X, y = clumps()
        model = MDA(n_components="bic", covariance=covariance, max_components=4, rule="ml").fit(X, y)
        assert_array_equal(model.n_components_, [2, 1])
        assert model.bic_.shape == (2, 4)

    def test_information_is_that_of_scikit_learn(self):
        from sklearn.mixture import GaussianMixture

        X, y = clumps()
        model = MDA(n_components="bic", covariance="full", max_components=2, rule="ml").fit(X, y)
        for c, label, count in ((0, "a", 1), (0, "a", 2), (1, "b", 1)):
            other = GaussianMixture(count, reg_covar=0.0, tol=1e-6, random_state=0).fit(X[y == label])
            assert_allclose(model.bic_[c, count - 1], other.bic(X[y == label]), rtol=1e-4)

    @IGNORE_WARNINGS
    def test_validation_finds_it_under_the_rule(self):
        X, y = clumps()
        model = MDA(n_components="cv", max_components=3, random_state=0).fit(X, y)
        assert model.cv_results_["log_loss"].shape == (3, 5)
        losses = model.cv_results_["log_loss"].mean(axis=1)
        assert losses[0] > 2 * losses.min()
        assert model.n_components_.max() == np.argmin(losses) + 1 >= 2

    def test_invalid_numbers_of_components(self):
        X, y = clumps()
        for given in (0, 2.5, True, [1, 2, 3], [2, 0], "aic"):
            with pytest.raises(ValueError, match="n_components"):
                MDA(n_components=given).fit(X, y)
        with pytest.raises(ValueError, match="max_components"):
            MDA(n_components="bic", max_components=0).fit(X, y)
        with pytest.raises(ValueError, match="one row only"):
            MDA(n_components="cv").fit(X, np.where(np.arange(240) == 3, "c", y))


class TestShapes:
    @pytest.mark.parametrize("covariance", SHAPES)
    @pytest.mark.parametrize("rule", ["ml", "map", "rc", "tm", "gdt", "em"])
    @IGNORE_WARNINGS
    def test_every_shape_under_every_rule(self, covariance, rule):
        X, y = clumps()
        model = MDA(n_components=2, covariance=covariance, rule=rule, max_iter=20).fit(X, y)
        assert model.score(X, y) > 0.95
        assert [v.shape for v in model.covariances_] == [(2, 3, 3)] * 2
        assert all(
            np.linalg.eigvalsh(matrix).min() > 0 for matrices in model.covariances_ for matrix in matrices
        )

    def test_shapes_by_object_and_bad_names(self):
        X, y = clumps()
        named, given = (MDA(covariance=c, rule="ml").fit(X, y) for c in ("spherical", Spherical()))
        assert_array_equal(named.predict_proba(X), given.predict_proba(X))
        for covariance in ("round", Spherical, None):
            with pytest.raises(ValueError, match="covariance must be one of 'full', 'diagonal'"):
                MDA(covariance=covariance).fit(X, y)
        with pytest.raises(ValueError, match="reg must be a number"):
            MDA(reg=-1.0).fit(X, y)

    def test_a_ridge_widens_by_its_share_of_each_column(self):
        X, y = clumps()
        X = X * [1.0, 100.0, 1e-3]
        plain, wide = (
            MDA(n_components=1, covariance="full", reg=reg, rule="ml").fit(X, y) for reg in (0.0, 0.1)
        )
        assert_allclose(
            wide.covariances_[0][0] - plain.covariances_[0][0], np.diag(0.1 * X.var(axis=0)), atol=1e-9
        )


@IGNORE_WARNINGS
@pytest.mark.parametrize("covariance", SHAPES)
@pytest.mark.parametrize("rule", ["ml", "rc"])
class TestBadInput:
    """A right answer: finite everywhere, and no worse than it must be."""

    def judged(self, X, y, covariance, rule, least, **options):
        model = MDA(covariance=covariance, rule=rule, **options).fit(X, y)
        assert np.isfinite(model.predict_log_proba(X)).all()
        assert np.isfinite(model.score_samples(X)).all()
        assert np.isfinite(model.sample(20, random_state=0)[0]).all()
        assert model.score(X, y) >= least
        return model

    def test_fewer_rows_than_components(self, covariance, rule):
        X, y = clumps()
        few = np.r_[np.arange(0, 240, 2), 1, 3]
        model = self.judged(X[few], y[few], covariance, rule, 0.8, n_components=4)
        assert_array_equal(model.n_components_, [4, 2])

    def test_a_class_of_one_row(self, covariance, rule):
        X, y = clumps()
        y = np.where(np.arange(240) == 7, "c", y)
        assert_array_equal(self.judged(X, y, covariance, rule, 0.8).n_components_, [3, 3, 1])

    def test_a_column_with_one_value_in_a_class(self, covariance, rule):
        X, y = clumps()
        X[y == "b", 2] = 1.0
        self.judged(X, y, covariance, rule, 0.9)

    def test_a_class_of_one_point(self, covariance, rule):
        X, y = clumps()
        X[y == "b"] = X[1]
        self.judged(X, y, covariance, rule, 0.9)

    def test_rows_that_repeat(self, covariance, rule):
        X, y = clumps(40)
        self.judged(np.repeat(X, 6, axis=0), np.repeat(y, 6), covariance, rule, 0.9)

    def test_a_value_at_a_million_standard_deviations(self, covariance, rule):
        """It becomes a separate component; a tied covariance can only grow in its direction."""
        X, y = clumps()
        X[0, 1] = 1e6
        self.judged(X, y, covariance, rule, 0.5 if "tied" in covariance else 0.9)

    def test_one_column(self, covariance, rule):
        X, y = clumps()
        self.judged(X[:, :1], y, covariance, rule, 0.9)

    def test_numbers_far_from_zero(self, covariance, rule):
        X, y = clumps()
        model = self.judged(X + 1e7, y, covariance, rule, 0.9)
        assert_allclose(
            model.predict_proba(X + 1e7),
            MDA(covariance=covariance, rule=rule).fit(X, y).predict_proba(X),
            atol=0.02,
        )


def test_strict_likelihood_names_class_and_component():
    X, y = clumps()
    X[0, 1] = 1e6
    with pytest.raises(ValueError, match=r"class 'a, component \d'.*singular"):
        MDA(covariance="full", prior=None).fit(X, y)
    with pytest.warns(cb.SingularCovarianceWarning, match=r"class 'a, component \d'"):
        MDA(covariance="full", rule="ml").fit(X, y)


def test_an_empty_component_stays_where_it_is():
    """Rows whose known cells are all nearer to the other seed: a component without a row is no obstacle."""
    X, y = clumps()
    model = MDA(n_components=2, covariance="diagonal", rule="ml", prior=NormalInverseWishart(1.0, 1.0)).fit(
        X, y
    )
    family, parameters = model.fitted_.model.families["columns"], model.parameters_["columns"]
    start = family.statistics(X, np.eye(2)[(y == "b").astype(int)], parameters)
    empty = {
        name: np.where(np.arange(4).reshape(-1, *[1] * (v.ndim - 1)) == 1, 0.0, v)
        for name, v in start.items()
    }
    found = family.parameters(empty)
    assert all(np.isfinite(v).all() for v in found.values())
    assert np.exp(found["log_weight"][1]) < 1e-9
    assert_allclose(np.exp(found["log_weight"][:2]).sum(), 1.0)
    admission = family.keep_valid(start, empty)
    assert_array_equal(admission.statistics["component"], start["component"] * [1, 1, 1, 1])
    assert admission.frozen > 0
    assert not admission.frozen_classes.any()


def test_a_class_is_held_only_with_all_its_components():
    X, y = clumps()
    model = MDA(n_components=2, covariance="full", rule="ml").fit(X, y)
    family, start = model.fitted_.model.families["columns"], model.statistics_["columns"]
    for lost, held in (((0,), [False, False]), ((0, 1), [True, False])):
        sign = np.where(np.isin(np.arange(4), lost), -1.0, 1.0)
        proposed = {name: v * sign.reshape(-1, *[1] * (v.ndim - 1)) for name, v in start.items()}
        assert_array_equal(family.keep_valid(start, proposed).frozen_classes, held)


def test_what_a_mixture_can_be_made_of():
    with pytest.raises(ValueError, match="family over numbers such as Gaussian"):
        Mixture(Bernoulli())
    with pytest.raises(ValueError, match="needs seeds for its components"):
        Mixture().bind(Layout(("a",), ("x",)))


def test_rows_in_pieces():
    """Online: the seeds of the first rows, then a step of expectation maximization with every piece."""
    X, y = clumps(400)
    model = MDA(n_components=2, covariance="full", rule="ml")
    for part in np.array_split(np.arange(400), 4):
        model.partial_fit(X[part], y[part], classes=["a", "b"])
    whole = MDA(n_components=2, covariance="full", rule="ml").fit(X, y)
    assert model.statistics_["columns"]["component"].sum() == pytest.approx(400)
    assert abs(model.score_samples(X).mean() - whole.score_samples(X).mean()) < 0.05
    with pytest.raises(ValueError, match="components of a mixture"):
        whole.merge(whole)
    with pytest.raises(ValueError, match="clusters are found in the training rows"):
        cb.cross_validate_closed_form(MDA(rule="ml"), X, y)


def test_rows_without_a_label_help():
    X, y = clumps(400)
    labels = np.where(np.arange(400) % 10 < 2, y.astype(object), None)
    model = MDA(n_components=(2, 1), covariance="full", rule="em").fit(X, labels)
    assert model.score(X, y) > 0.97


def test_calibration_begins_where_likelihood_ends():
    X, y = clumps()
    ml = MDA(rule="ml").fit(X, y)
    rc = MDA(rule=RC(), max_iter=64).fit(X, y)
    truth = np.searchsorted(ml.classes_, y)
    loss = -ml.predict_log_proba(X)[np.arange(240), truth].mean()
    assert rc.history_["log_loss"][0] == pytest.approx(loss, rel=1e-9)
    assert rc.history_["log_loss"][-1] < loss


def test_beside_columns_of_levels():
    penguins = load_penguins()
    families = [
        ("sizes", Mixture(Gaussian(Tied(), prior="auto")), cb.numeric),
        ("kinds", cb.families.Categorical(alpha=1.0), cb.categorical),
    ]
    model = cb.GenerativeClassifier(families=families, training=cb.TrainingOptions(start="likelihood")).fit(
        penguins.data, penguins.target
    )
    assert model.score(penguins.data, penguins.target) > 0.98
    reasons = model.explain(penguins.data)
    assert reasons.names == ("class prior", *penguins.data.columns)
    assert (np.abs(reasons.contributions[:, 1:]).max(axis=0) > 0.1).all()


def test_the_picture_of_components():
    from calibayes.plots import plot_components

    X, y = clumps()
    axes = plot_components(MDA(n_components=(2, 1), rule="ml").fit(X, y), columns=(0, 2))
    assert len(axes.lines) == 6
    assert axes.get_ylabel() == "x2"
    width = np.ptp(axes.lines[0].get_xdata())
    assert width == pytest.approx(4.0, rel=0.3)

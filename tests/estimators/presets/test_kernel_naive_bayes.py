"""Kernel naive Bayes: held-out errors, unusual columns and invalid parameters."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import gaussian_kde
from sklearn.model_selection import train_test_split

import calibayes as cb
from calibayes.encoders import Grid, QuantileBins, UniformBins
from calibayes.families import FixedWidth, KernelPair, Silverman

BOTH = pytest.mark.parametrize("binning", ["adaptive", "grid"])


def table(n=240, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + 1.5 * y[:, None], y


def best(X, y):
    """The score of the Bayes rule for these rows."""
    return np.mean(np.argmin(((X[:, None] - 1.5 * np.arange(3)[:, None]) ** 2).sum(axis=2), axis=1) == y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "most"), [("qsar", 0.165), ("satellite", 0.145), ("vehicle", 0.27), ("optdigits", 0.06)]
)
def test_held_out_errors(data_file, name, most):
    """Calibrated, over five splits, with one setting of the parameters: the defaults."""
    data = pd.read_csv(data_file(name))
    X, y = data.iloc[:, :-1], data.iloc[:, -1].to_numpy()
    errors = {"ml": [], "rc": []}
    for seed in range(5):
        training, held_out, labels, truth = train_test_split(X, y, test_size=0.25, random_state=seed)
        for rule, found in errors.items():
            found.append(1 - cb.KernelNB(rule=rule).fit(training, labels).score(held_out, truth))
    assert np.mean(errors["rc"]) <= most
    assert np.mean(errors["rc"]) < 0.8 * np.mean(errors["ml"])


def test_a_grid_decides_as_one_density_of_scipy_for_each_class_and_column():
    X, y = table()
    model = cb.KernelNB(rule="ml", binning="grid", bandwidth="normal", prior_rows=0.0).fit(X, y)
    density = [
        [gaussian_kde(column)(column_of_all) for column, column_of_all in zip(X[y == c].T, X.T, strict=True)]
        for c in range(3)
    ]
    expected = np.log(density).sum(axis=1).T - np.log(3)
    found, joint = np.exp(model.predict_joint_log_proba(X)), np.exp(expected)
    assert np.abs(found - joint).max() <= 0.02 * joint.max()
    assert_allclose(model.predict_proba(X), joint / joint.sum(axis=1, keepdims=True), atol=0.02)


@BOTH
class TestUnusualColumns:
    def test_one_value_in_a_class(self, binning):
        X, y = table()
        X[y == 1, 0] = 0.25
        model, without = (cb.KernelNB(binning=binning).fit(rows, y) for rows in (X, X[:, 1:]))
        assert np.isfinite(model.predict_log_proba(X)).all()
        found, missed = (model.predict(X[y == 1]) == 1).mean(), (without.predict(X[y == 1, 1:]) == 1).mean()
        assert found > missed + 0.2

    def test_ties(self, binning):
        X, y = table()
        model = cb.KernelNB(binning=binning, rule="ml").fit(np.round(X), y)
        assert model.score(np.round(X), y) > best(np.round(X), y) - 0.05

    @pytest.mark.parametrize("far", [1e6, -1e6])
    def test_a_value_a_million_deviations_out(self, binning, far):
        X, y = table()
        plain = cb.KernelNB(binning=binning, rule="ml").fit(X, y)
        X[5, 0] = far
        model = cb.KernelNB(binning=binning, rule="ml").fit(X, y)
        assert np.mean(model.predict(X[6:]) == plain.predict(X[6:])) > 0.97
        assert np.isfinite(model.score_samples(X)).all()
        new = plain.predict_log_proba([[far, 0.0], [0.0, -far]])
        assert np.isfinite(new).all()

    def test_a_constant_column_is_ignored(self, binning):
        X, y = table()
        wide = np.column_stack([X, np.full(len(X), 7.0)])
        without, beside = (cb.KernelNB(binning=binning, rule="ml").fit(rows, y) for rows in (X, wide))
        assert_allclose(beside.predict_proba(wide), without.predict_proba(X), atol=1e-12)

    def test_thousands_of_values(self, binning):
        X, y = table(9000)
        model = cb.KernelNB(binning=binning, rule="ml").fit(X, y)
        assert model.score(X, y) > best(X, y) - 0.01

    def test_rows_without_a_known_cell(self, binning):
        X, y = table()
        X[3] = np.nan
        X[10:60, 1] = np.nan
        model = cb.KernelNB(binning=binning).fit(X, y)
        shares = np.exp(model.parameters_["class_prior"]["log_probability"])
        assert_allclose(model.predict_proba(np.full((1, 2), np.nan))[0], shares, rtol=1e-9)
        assert not np.isnan(model.fill(X)).any()

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # two rows are soon apart
    @pytest.mark.parametrize("rule", ["ml", "rc"])
    def test_two_rows(self, binning, rule):
        model = cb.KernelNB(binning=binning, rule=rule).fit([[0.0], [1.0]], [0, 1])
        assert_array_equal(model.predict([[0.0], [1.0]]), [0, 1])

    def test_weighted_rows_are_repeated_rows(self, binning):
        X, y = table()
        times = np.random.default_rng(1).integers(0, 4, size=len(y))
        model = cb.KernelNB(binning=binning)
        expected = model.fit(np.repeat(X, times, axis=0), np.repeat(y, times)).predict_proba(X)
        assert_allclose(model.fit(X, y, sample_weight=times).predict_proba(X), expected, rtol=1e-7)

    def test_samples_are_numbers_of_the_column(self, binning):
        X, y = table(3000)
        model = cb.KernelNB(binning=binning, rule="ml").fit(X, y)
        rows, classes = model.sample(6000, random_state=0)
        for c in range(3):
            assert_allclose(np.median(rows[classes == c], axis=0), 1.5 * c, atol=0.15)
            assert_allclose(np.std(np.clip(rows[classes == c], -4, 7), axis=0), 1.0, atol=0.15)
        given, _ = model.sample(20, given={0: 0.5}, random_state=0)
        assert_array_equal(given[:, 0], 0.5)


def test_naive_bayes_is_kernel_naive_bayes_unless_numbers_are_cut():
    X, y = table()
    assert_array_equal(cb.NaiveBayes().fit(X, y).predict_proba(X), cb.KernelNB().fit(X, y).predict_proba(X))
    cut = cb.NaiveBayes(discretize="kmeans").fit(X, y)
    assert list(cut.fitted_.binding.families) == ["binned"]


def test_mixed_columns():
    penguins = cb.datasets.load_penguins()
    model = cb.KernelNB(binning="grid", kinds={"year": "categorical"}).fit(penguins.data, penguins.target)
    assert {column.kind for column in model.schema_.columns} == {"kernel", "categorical"}
    assert model.schema_["bill_length_mm"].reason == "numbers: 128 points"
    assert model.score(penguins.data, penguins.target) > 0.98
    assert set(model.explain(penguins.data).names) >= {"sex", "bill_length_mm"}


@pytest.mark.parametrize("encoder", [Grid(200), QuantileBins(20), UniformBins(20)])
@pytest.mark.parametrize("bandwidth", [None, "normal", "silverman", "sheather_jones", "bins", Silverman()])
def test_any_binning_with_any_bandwidth(encoder, bandwidth):
    X, y = table()
    model = cb.KernelNB(binning=encoder, bandwidth=bandwidth, rule="ml").fit(X, y)
    assert model.score(X, y) > best(X, y) - 0.05


def test_a_bandwidth_in_the_columns_units():
    X, y = table()
    narrow, named = (
        cb.KernelNB(binning="grid", bandwidth=given, rule="ml").fit(X, y)
        for given in (0.05, FixedWidth(0.05))
    )
    assert_array_equal(narrow.predict_proba(X), named.predict_proba(X))
    grid = narrow.fitted_.binding.encoders["kernel"]
    assert_allclose(narrow.fitted_.model.families["kernel"].bandwidths * grid.step, 0.05)


def test_levels_in_later_rows():
    X = np.array([["a"], ["b"], ["a"], ["c"], ["b"]], dtype=object)
    families = [("levels", cb.families.KernelDensity(), cb.every, cb.encoders.Levels())]
    model = cb.GenerativeClassifier(families=families, rule="ml")
    model.partial_fit(X[:3], [0, 1, 0], classes=[0, 1]).partial_fit(X[3:], [1, 1])
    whole = cb.GenerativeClassifier(families=families, rule="ml").fit(X, [0, 1, 0, 1, 1])
    assert_allclose(model.predict_proba(X), whole.predict_proba(X), rtol=1e-10)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_pair_models_the_joint_density_of_two_columns():
    """Exclusive or: neither column alone depends on the class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    pair = cb.GenerativeClassifier(families=[("pair", KernelPair(), [0, 1])], rule="ml").fit(X, y)
    assert pair.score(X, y) > 0.9
    assert cb.KernelNB(rule="ml").fit(X, y).score(X, y) < 0.7
    with pytest.raises(ValueError, match="a KernelPair takes two columns, got 1"):
        cb.GenerativeClassifier(families=[("pair", KernelPair(), [0])]).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"binning": "fine"}, "binning must be one of 'adaptive', 'grid' or an object such as Grid"),
        ({"binning": Grid}, "binning must be one of"),
        ({"bandwidth": "wide"}, "bandwidth must be one of 'normal', 'silverman'"),
        ({"bandwidth": Silverman}, "bandwidth must be one of"),
        ({"bandwidth": -1.0, "binning": "grid"}, "must not be negative"),
        ({"bandwidth": 0.1}, "needs cells of equal width"),
        ({"prior_rows": -1}, "prior_rows must be a number"),
        ({"rule": "gd"}, "natural parameters"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        cb.KernelNB(**options).fit(*table())

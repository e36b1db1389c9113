"""`surprise`: p-values are uniform for rows of the training distribution, and name the cell that is unusual."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import calibayes as cb
from calibayes.analysis.cell_scores import SurpriseReference, conformal
from calibayes.trust import Surprise
from tests.files.cases import counts, mixed, sparse


def drawn(n, rng):
    """Two columns that depend on each other, one on the class, and levels."""
    y = rng.integers(0, 2, n)
    a = rng.normal(size=n)
    frame = pd.DataFrame({"a": a, "b": a + 0.1 * rng.normal(size=n), "c": rng.normal(3.0 * y, 1.0)})
    return frame, y


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_p_values_are_uniform(rng):
    """Each p-value is of a model, so that they are independent."""
    p_values = []
    for _ in range(30):
        model = cb.QuadraticDiscriminantAnalysis(rule="ml").fit(*drawn(100, rng))
        found = model.surprise(drawn(1, rng)[0])
        p_values.append([found.p_value[0], *found.column_p_value[0]])
    for column in np.transpose(p_values):
        assert stats.kstest(column, "uniform").pvalue > 0.002


def test_a_cell_that_contradicts_the_others_is_named(rng):
    """Its value is usual in the column, but not given the rest of the row."""
    model = cb.QuadraticDiscriminantAnalysis(rule="ml").fit(*drawn(400, rng))
    X, _ = drawn(50, rng)
    X.loc[7, ["a", "b", "c"]] = [1.0, -1.0, 0.0]
    X.loc[9, "c"] = 20.0
    found = model.surprise(X)
    assert isinstance(found, Surprise)
    assert set(found.most_surprising(2).tolist()) == {7, 9}
    assert found.strangest_column()[9] == "c"
    assert found.strangest_column()[7] in ("a", "b")
    assert "row 9: p = 0.00249, most unusual in c" in str(found)
    assert found.held_out_rows == 400


def test_a_level_that_training_rows_did_not_have_is_unusual():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"level": rng.choice(list("uv"), 200), "number": rng.normal(size=200)})
    model = cb.NaiveBayes(rule="ml").fit(X, rng.integers(0, 2, 200))
    new = X[:3].assign(level=["u", "new", None])
    found = model.surprise(new).column_p_value
    assert found[1, 0] == pytest.approx(1 / 201)
    assert np.isnan(found[2, 0])
    assert found[0, 0] > 0.2


def test_rows_with_missing_values_are_compared_with_such_rows():
    """Without that, a missing value raises the density and so the p-value."""
    known = np.array([[True, True]] * 60 + [[True, False]] * 60)
    density = np.concatenate([np.linspace(-20, -10, 60), np.linspace(-6, -4, 60)])
    reference = SurpriseReference(density, np.zeros((120, 2)), known, np.ones(120))
    found = reference.p_values(np.array([-7.0, -7.0]), np.array([[True, False], [True, True]]))
    np.testing.assert_allclose(found, [1 / 61, 1.0])
    unknown = reference.p_values(np.array([-7.0]), np.array([[False, True]]))
    assert unknown[0] == pytest.approx((1 + (np.r_[density[:60] / 2, density[60:]] <= -7).sum()) / 121)


def test_conformal_p_values():
    old = np.array([1.0, 2.0, 2.0, 5.0])
    np.testing.assert_allclose(conformal(old, np.ones(4), np.array([0.0, 2.0, 9.0])), [0.2, 0.8, 1.0])
    weighted = conformal(old, np.array([3.0, 1.0, 1.0, 3.0]), np.array([1.5]))
    np.testing.assert_allclose(weighted, (1 + 3 / 2) / 5)


MODELS = [
    cb.NaiveBayes(rule="ml"),
    cb.GaussianNB(),
    cb.CategoricalNB(rule="ml"),
    cb.BernoulliNB(),
    cb.QuadraticDiscriminantAnalysis(rule="ml"),
    cb.LinearDiscriminantAnalysis(rule="ml"),
    cb.TreeAugmentedNB(rule="ml"),
    cb.MixtureDiscriminantAnalysis(rule="ml", n_components=1),
    cb.JointKernelClassifier(),
    cb.KernelNB(rule="ml"),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_models_with_densities(model, tmp_path):
    """p-values are probabilities, do not depend on other rows, and are those of a loaded model."""
    X, y = counts()
    found = model.fit(X, y).surprise(X[:20])
    assert ((found.p_value > 0) & (found.p_value <= 1)).all()
    assert ((found.column_p_value > 0) & (found.column_p_value <= 1)).all()
    alone = model.surprise(X[3:4])
    np.testing.assert_allclose(alone.column_p_value[0], found.column_p_value[3])
    cb.save(model, tmp_path / "model.safetensors")
    loaded = cb.load(tmp_path / "model.safetensors").surprise(X[:20])
    np.testing.assert_array_equal(loaded.p_value, found.p_value)
    np.testing.assert_array_equal(loaded.column_p_value, found.column_p_value)


@pytest.mark.filterwarnings("ignore:column 'name' left out")
def test_tables_with_every_kind_of_column():
    X, y = mixed()
    found = cb.NaiveBayes(rule="ml").fit(X, y).surprise(X[:15])
    assert found.columns == tuple(X.columns)
    known = X[:15].notna().to_numpy() & (X.columns != "name")
    np.testing.assert_array_equal(np.isnan(found.column_p_value), ~known)


def test_counts_have_no_p_values_by_column():
    for X, y in (counts(), sparse()):
        found = cb.MultinomialNB().fit(X, y).surprise(X[:5])
        assert (found.p_value > 0).all()
        assert np.isnan(found.column_p_value).all()
        assert "most unusual" not in str(found)


def test_given_held_out_rows(rng):
    model = cb.GaussianNB().fit(*drawn(100, rng))
    given = model.with_held_out(*drawn(60, rng))
    assert given.surprise(drawn(5, rng)[0]).held_out_rows == 60


def test_models_without_densities_or_training_rows_are_refused(rng):
    X, y = drawn(60, rng)
    with pytest.raises(TypeError, match="CalibratedTrees has no density"):
        cb.CalibratedTrees(max_trees=2).fit(X, y).surprise(X)
    with pytest.raises(ValueError, match="surprise needs rows"):
        cb.GaussianNB().fit(X, y).with_priors([0.5, 0.5]).surprise(X)

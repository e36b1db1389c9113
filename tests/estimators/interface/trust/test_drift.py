"""`drift`: false alarms at the stated rate, the three kinds told apart, and the columns that moved."""

import numpy as np
import pandas as pd
import pytest

import calibayes as cb
from calibayes.trust import Drift
from tests.files.cases import mixed

FREQUENCIES = (0.5, 0.3, 0.2)


def drawn(n, rng, frequencies=FREQUENCIES):
    """Numbers with ties, missing cells and levels that depend on the class."""
    y = rng.choice(3, n, p=frequencies)
    a = rng.normal(y, 1.0)
    frame = pd.DataFrame({"a": a, "b": (a + rng.normal(size=n)).round(), "c": rng.normal(size=n)})
    frame["level"] = np.where(rng.random(n) < 0.2 + 0.3 * y, "u", rng.choice(list("vwx"), n))
    frame.loc[rng.random(n) < 0.1, "c"] = np.nan
    return frame, y


@pytest.fixture(scope="module")
def model():
    return cb.NaiveBayes(rule="ml").fit(*drawn(1500, np.random.default_rng(0)))


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def test_false_alarms_are_no_more_frequent_than_stated():
    """One training table for each draw: the alarms of one model are not independent."""
    rng, alarms = np.random.default_rng(1), []
    for n in (30, 100, 1000) * 16:
        trained = cb.NaiveBayes(rule="ml", discretize="quantile").fit(*drawn(150, rng))
        alarms.append(trained.drift(drawn(n, rng)[0]).is_detected)
    assert np.mean(alarms) < 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / len(alarms))


def test_rows_of_the_same_distribution(model, rng):
    found = model.drift(drawn(400, rng)[0])
    assert isinstance(found, Drift)
    assert not found.is_detected
    assert found.moved_columns == ()
    assert "no change found" in str(found)


def test_class_frequencies_that_moved_are_told_from_other_changes(rng):
    """p(x | class) is reported in at most 2 of 12 draws: 5 % false alarms."""
    frequencies, found = (0.1, 0.2, 0.7), []
    for _ in range(12):
        trained = cb.NaiveBayes(rule="ml", discretize="quantile").fit(*drawn(1000, rng))
        found.append(trained.drift(drawn(600, rng, frequencies)[0]))
    assert all("p(class)" in drift.moved for drift in found)
    assert sum("p(x | class)" in drift.moved for drift in found) <= 2
    mean = np.mean([drift.class_frequencies[1] for drift in found], axis=0)
    np.testing.assert_allclose(mean, frequencies, atol=0.1)
    assert any("class 2: " in str(drift) for drift in found)


def test_a_moved_column_is_named(model, rng):
    X, _ = drawn(500, rng)
    found = model.drift(X.assign(c=X["c"] + 0.5))
    assert "p(x | class)" in found.moved
    assert "p(class)" not in found.moved
    assert found.moved_columns == ("c",)
    assert found.columns[0].name == "c"
    assert found.columns[0].p_value_given_class < 1e-3
    assert "column c: a new value exceeds an old one in 6" in str(found)


def test_levels_and_missing_values_that_moved(model, rng):
    X, _ = drawn(500, rng)
    assert "level: other levels 0% -> " in str(model.drift(X.replace({"level": {"v": "new"}})))
    assert "c: missing 1" in str(model.drift(X.assign(c=X["c"].where(rng.random(500) < 0.5))))


def test_another_dependence_between_columns_is_found_by_the_density(rng):
    X = rng.normal(size=(600, 2))
    y = rng.integers(0, 2, 600)
    trained = cb.QuadraticDiscriminantAnalysis().fit(X @ [[1, 0.95], [0, 0.31]], y)
    found = trained.drift(X[:300])
    assert found.has_density
    assert "p(x | class)" in found.moved
    assert found.moved_columns == ()


def test_given_held_out_rows_need_no_other_model(rng):
    trained = cb.NaiveBayes(rule="ml").fit(*drawn(300, rng)).with_held_out(*drawn(500, rng))
    assert trained.drift_reference_.model is None
    assert not trained.drift(drawn(300, rng)[0]).is_detected
    assert trained.drift(drawn(300, rng, (0.1, 0.1, 0.8))[0]).moved == ("p(x)", "p(class)")


def test_training_rows_are_weighted(rng):
    """Rows of weight 0.2 are a fifth as frequent."""
    X, y = drawn(2000, rng, (0.4, 0.3, 0.3))
    weight = np.where(y == 2, 0.2, 1.0)
    trained = cb.NaiveBayes(rule="ml").fit(X, y, weight)
    shares = np.array([0.4, 0.3, 0.06]) / 0.76
    assert not trained.drift(drawn(600, rng, shares)[0]).is_detected
    assert "p(class)" in trained.drift(drawn(600, rng, (0.4, 0.3, 0.3))[0]).moved


def test_models_without_a_density_compare_columns_and_classes(rng):
    trained = cb.CalibratedTrees(max_trees=3).fit(*drawn(300, rng))
    found = trained.drift(drawn(300, rng, (0.05, 0.05, 0.9))[0])
    assert not found.has_density
    assert "p(class)" in found.moved


@pytest.mark.filterwarnings("ignore:column 'name' left out")
def test_tables_with_every_kind_of_column():
    X, y = mixed()
    trained = cb.NaiveBayes(rule="ml").fit(X, y)
    assert "name" not in {column.name for column in trained.drift(X).columns}  # an identifier
    later = X.assign(day=X["day"] + pd.Timedelta(days=400))
    assert "day" in trained.drift(later).moved_columns


def test_it_is_saved_with_the_model(model, rng, tmp_path):
    X, _ = drawn(200, rng)
    expected = str(model.drift(X))
    cb.save(model, tmp_path / "model.safetensors")
    assert str(cb.load(tmp_path / "model.safetensors").drift(X)) == expected


def test_few_rows_and_models_without_training_rows_are_refused(model, rng):
    with pytest.raises(ValueError, match="at least 10 new rows, got 3"):
        model.drift(drawn(3, rng)[0])
    with pytest.raises(ValueError, match="alpha"):
        model.drift(drawn(30, rng)[0], alpha=2)
    with pytest.raises(ValueError, match="drift needs rows"):
        model.with_priors([0.2, 0.3, 0.5]).drift(drawn(30, rng)[0])

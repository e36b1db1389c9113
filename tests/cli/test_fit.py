"""The commands fit, evaluate, explain, sample and datasets."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss, precision_recall_fscore_support

import calibayes
from calibayes.cli import rows as training_data
from calibayes.datasets import load_penguins
from tests.cli.conftest import call


def test_fit_gives_the_model_of_python(penguins):
    X, y = load_penguins(return_X_y=True)
    model = calibayes.NaiveBayes(rule="ml", random_state=0).fit(X, y)
    saved = calibayes.load(penguins / "nb.safetensors")
    np.testing.assert_array_equal(saved.predict_proba(X), model.predict_proba(X))


def test_a_wide_table_is_read(tmp_path):
    """Its header is longer than what is looked at to find out how a file is written."""
    path, model = tmp_path / "wide.csv", tmp_path / "m.safetensors"
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 5, (8, 1400)).astype(float))
    frame.columns = [f"{j} {'long name ' * 20}" for j in range(1400)]
    frame.assign(y=list("abababab")).to_csv(path, index=False)
    result = call("fit", path, "--target", "y", "-o", model, "--model", "GaussianNB", "--rule", "ml")
    assert result.exit_code == 0, result.output
    assert calibayes.load(model).n_features_in_ == 1400
    result = call("predict", model, path)
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 9


def test_options_reach_the_model(penguins, tmp_path):
    path = tmp_path / "m.safetensors"
    words = (
        "--model",
        "NaiveBayes",
        "--rule",
        "rc",
        "--set",
        "max_iter=3",
        "--set",
        "discretize=mdl",
        "--set",
        "stop=null",
    )
    more = (
        "--kind",
        "year=categorical",
        "--ignore",
        "island,sex",
        "--weights",
        "body_mass_g",
        "--seed",
        4,
        "-j",
        2,
    )
    table = tmp_path / "table.csv"
    pd.read_csv(penguins / "penguins.csv").dropna().to_csv(table, index=False)
    result = call("fit", table, "--target", "species", "-o", path, *words, *more)
    assert result.exit_code == 0, result.output
    X = pd.read_csv(table)
    kept = X.drop(columns=["species", "island", "sex", "body_mass_g"]).astype(float)
    model = calibayes.NaiveBayes(
        rule="rc", max_iter=3, stop=None, discretize="mdl", kinds={"year": "categorical"}, random_state=4
    ).fit(kept, X["species"], sample_weight=X["body_mass_g"])
    saved = calibayes.load(path)
    np.testing.assert_array_equal(saved.predict_proba(kept), model.predict_proba(kept))
    assert saved.n_jobs == 2


def test_large_files_are_read_in_passes(penguins, tmp_path, monkeypatch):
    words = (
        "fit",
        penguins / "penguins.csv",
        "--target",
        "species",
        "--model",
        "NaiveBayes",
        "--rule",
        "ml",
        "-o",
    )
    monkeypatch.setattr(training_data, "LARGE_FILE", 1)
    assert training_data.is_large(str(penguins / "penguins.csv"))
    result = call(*words, tmp_path / "m.safetensors")
    assert result.exit_code == 0, result.output
    X, _ = load_penguins(return_X_y=True)
    one, other = calibayes.load(tmp_path / "m.safetensors"), calibayes.load(penguins / "nb.safetensors")
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-12)


def test_classes_that_are_whole_numbers(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("x,y\n" + "1.5,0\n2.5,1\n1.0,0\n3.0,1\n" * 6)
    model = tmp_path / "m.safetensors"
    assert call("fit", table, "--target", "y", "-o", model, "--model", "LDA").exit_code == 0
    assert call("predict", model, table).stdout.startswith("prediction,p_0,p_1\n0,")
    assert json.loads(call("evaluate", model, table, "--target", "y", "--json").stdout)["error"] == 0


def test_notes_of_fit(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("x,z,y\n" + "".join(f"{i},{i % 3 or '?'},{i % 40}\n{i},2,\n" for i in range(80)))
    result = call(
        "fit",
        table,
        "--target",
        "y",
        "-o",
        tmp_path / "m.safetensors",
        "--model",
        "NaiveBayes",
        "--rule",
        "ml",
    )
    assert result.exit_code == 0, result.output
    assert "note: 80 rows without a label left out" in result.stderr
    assert "is it a quantity?" in result.stderr
    assert "'?' taken as missing" in result.stderr


def test_scores_are_those_of_scikit_learn(penguins):
    words = (
        "evaluate",
        penguins / "nb.safetensors",
        penguins / "penguins.csv",
        "--target",
        "species",
        "--json",
    )
    found = json.loads(call(*words).stdout)
    X, y = load_penguins(return_X_y=True)
    model = calibayes.load(penguins / "nb.safetensors")
    P, predicted = model.predict_proba(X), model.predict(X)
    assert found["error"] == pytest.approx((predicted != y).mean())
    assert found["log_loss"] == pytest.approx(log_loss(y, P))
    assert found["brier"] == pytest.approx(
        sum(brier_score_loss(y == c, P[:, j]) for j, c in enumerate(model.classes_))
    )
    np.testing.assert_array_equal(found["confusion"]["weight"], confusion_matrix(y, predicted))
    precision, recall, f1, _ = precision_recall_fscore_support(y, predicted)
    for j, one in enumerate(found["classes"]):
        assert [one["precision"], one["recall"], one["f1"]] == pytest.approx([precision[j], recall[j], f1[j]])


def test_evaluate_with_weights_and_other_classes(penguins, tmp_path):
    frame = pd.read_csv(penguins / "penguins.csv")
    frame.loc[:4, "species"] = "Emperor"
    frame.loc[5:6, "species"] = None
    frame["w"] = np.where(frame.index < 100, 2.0, 1.0)
    frame.to_csv(tmp_path / "table.csv", index=False)
    words = (
        "evaluate",
        penguins / "nb.safetensors",
        tmp_path / "table.csv",
        "--target",
        "species",
        "--weights",
        "w",
    )
    result = call(*words, "--json")
    assert "rows with a weight of 10 have a class that the model does not know" in result.stderr
    found = json.loads(result.stdout)
    assert found["rows_without_label"] == 2
    assert found["weight"] == frame["w"].sum() - 4
    assert "(unknown)" in call(*words).stdout


def test_explanations_are_those_of_the_model(penguins):
    X, _ = load_penguins(return_X_y=True)
    explanation = calibayes.load(penguins / "nb.safetensors").explain(X)
    words = ("explain", penguins / "nb.safetensors", penguins / "penguins.csv", "--json")
    found = json.loads(call(*words).stdout)
    assert found["mean_absolute_contribution"] == pytest.approx(explanation.overall())
    rows = json.loads(call(*words, "--row", "1,343").stdout)
    assert [row["row"] for row in rows] == [1, 343]
    assert rows[1]["log_odds"] == pytest.approx(explanation.log_odds[343])
    some = call(*words, "--max-rows", 50)
    assert json.loads(some.stdout)["rows"] == 50
    assert "50 of 344 rows are explained" in some.stderr


def test_samples_are_those_of_the_model(penguins, tmp_path):
    words = (
        "sample",
        penguins / "nb.safetensors",
        "--rows",
        20,
        "--class",
        "Gentoo",
        "--given",
        "sex=male",
        "--seed",
        3,
    )
    found = pd.read_csv(io.StringIO(call(*words).stdout))
    X, _ = calibayes.load(penguins / "nb.safetensors").sample(20, "Gentoo", {"sex": "male"}, random_state=3)
    np.testing.assert_allclose(found["body_mass_g"], X["body_mass_g"])
    assert set(found["class"]) == {"Gentoo"}
    assert set(found["sex"]) == {"male"}
    assert call(*words, "-o", tmp_path / "s.parquet").exit_code == 0
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "s.parquet"), found, check_dtype=False)


def test_data_sets_are_listed_and_written(tmp_path):
    assert "penguins" in call("datasets").stdout
    assert call("datasets", "iris", "-o", tmp_path / "iris.csv").exit_code == 0
    assert pd.read_csv(tmp_path / "iris.csv").shape == (150, 5)
    assert call("datasets", "-o", tmp_path / "all.csv").exit_code == 2

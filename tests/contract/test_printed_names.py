"""What is printed shows names of columns, levels and classes as text: no escape sequence, line break or mark of direction of theirs."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from typer.testing import CliRunner

import calibayes as cb
from calibayes.checks import run_checks
from calibayes.cli import app
from calibayes.core.notices import listed, printable, text_table
from calibayes.files import describe_file
from calibayes.trust import fair_thresholds
from tests.contract.test_scikit_learn import ESTIMATORS

HOSTILE = {
    "\x1b[2J\x1b]0;owned\x07",
    "\nINJECTED",
    "\u202egpj.exe",
    "\x9b31m",
    "\u200f",
    "\r",
    "\u2028",
    "\x7f",
}
COLUMN, LEVEL, LABEL = ("".join([word, *sorted(HOSTILE)]) for word in ("column", "level", "label"))
CLASSIFIERS = [estimator for estimator in ESTIMATORS if is_classifier(estimator)]


def hostile_table(n=160):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    levels = np.array([f"{LEVEL}{j}" for j in range(3)], dtype=object)
    X = pd.DataFrame(
        {
            f"{COLUMN} a": rng.normal(size=n) + y,
            f"{COLUMN} b": rng.normal(size=n),
            f"{COLUMN} c": levels[np.where(rng.random(n) < 0.7, y, 2)],
            f"{COLUMN} key": [f"{LEVEL} {j}" for j in range(n)],
        }
    )
    return X, np.array([f"{LABEL} no", f"{LABEL} yes"], dtype=object)[y]


def assert_printable(text):
    assert text
    lines = str(text).split("\n")
    assert all(line.isprintable() for line in lines), [line for line in lines if not line.isprintable()]
    assert not any(line.startswith("INJECTED") for line in lines), text


@given(st.text())
def test_printable_text_is_one_line_and_ordinary_names_are_unchanged(name):
    assert printable(name).isprintable()
    assert printable(name) == name or not name.isprintable()
    assert_printable(text_table([("name", "kind"), (name, name)]))
    assert listed([name, "b"]).isprintable()


def results_of(model, X, y):
    """Whatever the model gives that can be printed, with the methods that it has."""
    rows = X[:40]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield model.summary()
        yield repr(getattr(model, "schema_", "-"))
        yield model.drift(X.assign(**{X.columns[0]: X[X.columns[0]] + 5.0}))
        yield repr(model.explain(rows))
        yield "".join(model.label_issues(X, y, reasons=5).reason) or "-"
        yield model.adapt_priors(rows).prior_shift_
        yield model.influence(X, y, rows, y[:40], groups=X[X.columns[2]])
        yield fair_thresholds(model, X, y, X[X.columns[2]], criterion="demographic_parity", positive=y[0])
        yield model.questions(rows.mask(np.arange(40)[:, None] % 3 == np.arange(X.shape[1])))
        if hasattr(model, "score_samples"):
            yield model.surprise(rows)
            yield repr(model.surprise(rows.set_axis([f"{LEVEL} {j}" for j in range(40)])))
    for warning in caught:
        yield str(warning.message)


@pytest.mark.parametrize("model", [cb.NaiveBayes(rule="ml"), cb.TreeAugmentedNB(rule="ml")], ids=repr)
def test_results_of_models_show_hostile_names_as_text(model):
    X, y = hostile_table()
    with pytest.warns(UserWarning, match="left out") as caught:
        fitted = clone(model).fit(X, y)
    printed = [*results_of(fitted, X, y), *(str(warning.message) for warning in caught)]
    assert len(printed) > 10
    for text in printed:
        assert_printable(str(text))
    assert any("\\x1b[2J" in str(text) for text in printed)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda each: type(each).__name__)
def test_summaries_and_errors_of_every_classifier(estimator):
    rng = np.random.default_rng(0)
    y = np.array([f"{LABEL} no", f"{LABEL} yes"], dtype=object)[np.arange(80) % 2]
    X = pd.DataFrame(rng.integers(0, 4, (80, 2)), columns=[f"{COLUMN} a", f"{COLUMN} b"])
    fitted = clone(estimator).fit(X, y)
    assert_printable(fitted.summary())
    texts = X.assign(**{X.columns[0]: LEVEL})
    calls = [
        lambda: fitted.predict(texts),
        lambda: fitted.score(X, y="none"),
        lambda: fitted.explain(X, LABEL),
    ]
    calls += [lambda: clone(estimator).fit(X.rename(columns={X.columns[0]: "y"}), y="none")]
    for call in calls:
        try:
            call()
        except (ValueError, TypeError, AttributeError) as error:
            assert_printable(str(error).replace("\n- ", "").replace("\n", ""))


@pytest.mark.filterwarnings("ignore")
def test_checks_files_and_commands(tmp_path):
    X, y = hostile_table()
    model = cb.NaiveBayes(rule="ml").fit(X, y)
    found = run_checks(X.assign(constant=LEVEL), y, model)
    assert found.found
    assert_printable(found)
    path = tmp_path / "model.safetensors"
    cb.save(model, path)
    assert_printable(describe_file(path))
    X.assign(target=y).to_csv(tmp_path / "table.csv", index=False)
    table, folder = str(tmp_path / "table.csv"), str(tmp_path)
    commands = [
        ("inspect", str(path)),
        ("inspect", str(path), "--json"),
        (
            "fit",
            table,
            "--target",
            "target",
            "-o",
            f"{folder}/nb.safetensors",
            "--model",
            "NaiveBayes",
            "--rule",
            "ml",
        ),
        ("evaluate", f"{folder}/nb.safetensors", table, "--target", "target"),
        ("explain", f"{folder}/nb.safetensors", table),
        ("explain", f"{folder}/nb.safetensors", table, "--row", "0"),
        ("explain", f"{folder}/nb.safetensors", table, "--against", "none"),
        ("predict", f"{folder}/nb.safetensors", table, "--id", "none"),
        ("compare", table, "--target", "target", "--model", "LDA", "--rule", "ml", "--folds", "2"),
        ("compare", table, "--target", "none"),
    ]
    for words in commands:
        result = CliRunner().invoke(app, words)
        assert result.exit_code in (0, 2), (words, result.output)
        assert_printable(result.output)

"""Reports on tables and models: what they contain, their size, and what they say about themselves."""

import json
import re
import runpy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import train_test_split

import calibayes as cb
from calibayes.checks import Findings
from calibayes.compare import BASELINES, MODELS
from calibayes.datasets import load_penguins
from calibayes.model.training_rows import HeldOut
from calibayes.report import report_on_model, report_on_table
from calibayes.report.markup import readable
from calibayes.report.page import SCRIPT, STYLE
from calibayes.report.python_code import NotExpressible, code_of
from calibayes.report.quality_facts import quality_facts
from calibayes.report.ranking_facts import chosen_pairs
from calibayes.report.reason_facts import chosen_rows
from calibayes.report.sections import SECTIONS, page_of
from calibayes.report.table_facts import labeled_rows, table_facts
from calibayes.report.values import Facts
from tests.contract.test_scikit_learn import ESTIMATORS
from tests.report.test_markup import HOSTILE, read

CLASSIFIERS = [estimator for estimator in ESTIMATORS if is_classifier(estimator)]
SKIPPED_AS = {
    "models": "Models compared",
    "curves": "Learning curves",
    "quality": "Quality on held-out rows",
    "reasons": "Reasons for predictions",
    "surprise": "Surprising rows",
    "labels": "Labels that look wrong",
    "python": "Python code for this model",
}
"""Anchor of a section -> what it is called where it was skipped."""


@pytest.fixture(scope="module")
def penguins():
    return load_penguins(return_X_y=True)


@pytest.fixture(scope="module")
def report(penguins):
    return report_on_table(
        *penguins, models=["KernelNB", "BinnedNB", "GaussianNB"], folds=3, title="Penguins"
    )


def anchors(page):
    return set(re.findall(r'<section id="([a-z]+)"', page))


def assert_present_or_skipped(report):
    skipped = {each.what: each.why for each in report.facts.skipped}
    shown = anchors(report.html)
    for key in SECTIONS:
        if key not in shown:
            assert len(skipped[SKIPPED_AS[key]]) > 10, key
        else:
            assert SKIPPED_AS.get(key) not in skipped, key


def test_a_report_on_a_table_has_all_sections(report):
    assert anchors(report.html) == set(SECTIONS)
    assert report.facts.ranking.folds == 3
    assert {each.name for each in report.facts.ranking.methods} == {
        f"{model}, {rule}" for model in ("KernelNB", "BinnedNB", "GaussianNB") for rule in ("ml", "rc")
    }
    assert len(report.html.encode()) < 300_000


def test_quality_is_that_of_held_out_rows(report):
    record, quality = report.model.held_out_, report.facts.quality
    assert quality.rows == len(record.codes) == 344
    wrong = record.log_posterior.argmax(axis=1) != record.codes
    assert quality.error == pytest.approx(np.average(wrong, weights=record.weight), abs=1e-12)
    assert quality.confusion.sum() == 344
    assert "was not trained on" in report.html


def run_code(code, folder, **names):
    script = folder / "code.py"
    script.write_text(code, encoding="utf-8")
    return runpy.run_path(str(script), init_globals=names)


def test_the_code_makes_the_same_model(report, penguins, tmp_path):
    X, y = penguins
    space = run_code(report.facts.code, tmp_path, X=X, y=y)
    np.testing.assert_allclose(space["model"].predict_proba(X), report.model.predict_proba(X), atol=1e-9)
    assert report.facts.code.splitlines()[0] in report.html.replace("&quot;", '"')


@pytest.mark.parametrize("name", [*MODELS, *BASELINES])
def test_the_code_of_every_model_that_is_compared_runs(name, penguins, tmp_path):
    X, _ = penguins
    model = MODELS[name]() if name in MODELS else BASELINES[name](X)
    space = run_code(code_of(model).replace("model.fit(X, y)", ""), tmp_path)
    assert repr(space["model"]) == repr(model)


def test_code_that_cannot_be_written_is_refused():
    with pytest.raises(NotExpressible, match="no public name"):
        code_of(cb.GenerativeClassifier(families=[("all", cb.families.Gaussian(), lambda table: [0])]))
    with pytest.raises(NotExpressible, match="2000 elements is too long"):
        code_of(cb.NaiveBayes(costs=np.zeros(2000)))


def test_the_facts_are_json(report):
    read_back = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert read_back["title"] == "Penguins"
    assert read_back["quality"]["rows"] == 344
    assert read_back["ranking"]["methods"][0]["name"] == report.facts.ranking.methods[0].name
    assert set(read_back["findings"]) >= {"found", "passed", "skipped", "silenced"}


def test_a_report_is_saved_and_shown(report, tmp_path):
    path = report.save(tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == report.html
    frame = read(report._repr_html_())
    assert frame.tags == ["iframe"]
    attributes = dict(frame.attributes)
    assert attributes["srcdoc"] == report.html
    assert attributes["sandbox"] == "allow-scripts allow-popups"
    assert "kB" in repr(report)


def test_the_page_asks_for_nothing_outside(report):
    reader = read(report.html)
    addresses = [value for name, value in reader.attributes if name in ("src", "srcset", "action", "data")]
    assert addresses == []
    assert not re.search(r"url\(|@import|fetch\(|XMLHttp", STYLE + SCRIPT)
    assert [value for name, value in reader.attributes if name == "content" and "default-src 'none'" in value]
    assert not [name for name, _ in reader.attributes if name == "style" or name.startswith("on")]


def test_pictures_and_tables_can_be_read_aloud(report):
    for picture in re.findall(r"<svg.*?</svg>", report.html, flags=re.DOTALL):
        assert 'aria-hidden="true"' in picture or re.search(
            r'role="img".*<title>.+</title><desc>.+</desc>', picture
        )
    tables = re.findall(r"<table.*?</table>", report.html, flags=re.DOTALL)
    assert tables
    assert all("<caption" in table and 'scope="col"' in table for table in tables)
    levels = [int(level) for level in re.findall(r"<h([1-6])", report.html)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    names = re.findall(r' id="([^"]+)"', report.html)
    assert len(names) == len(set(names))
    groups = re.findall(r"<[a-z]+ [^>]*role=\"group\"[^>]*>", report.html)
    assert len(groups) == len(tables)
    assert all('aria-label="' in group for group in groups)
    stacked = [table for table in tables if 'role="table"' in table]
    assert stacked
    assert all('role="columnheader"' in table and 'role="rowheader"' in table for table in stacked)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda each: type(each).__name__)
def test_every_classifier_has_a_report(estimator):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(120) % 3 == 0, "rare", "usual")
    X = rng.poisson(3 + 2 * (y == "rare")[:, None], size=(120, 3))
    model = clone(estimator).fit(X[:60], y[:60])
    report = report_on_model(model, X[60:], y[60:])
    assert_present_or_skipped(report)
    assert report.facts.quality.rows == 60
    assert type(estimator).__name__ in report.html
    json.dumps(report.to_dict(), allow_nan=False)


def test_what_a_model_cannot_do_is_said():
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 2
    lacking = {
        LogisticRegression(): "density",
        cb.SparseLogBivariateClassifier(loss="hinge"): "probabilities",
    }
    for model, what in lacking.items():
        report = report_on_model(model.fit(X[:60], y[:60]), X[60:], y[60:])
        assert_present_or_skipped(report)
        skipped = {each.what: each.why for each in report.facts.skipped}
        assert what in skipped["Surprising rows"]
    assert "predicts no probabilities" in skipped["Quality on held-out rows"]
    assert report.facts.quality is None


def test_a_model_reports_on_rows_that_it_was_not_trained_on(penguins):
    X, X_new, y, y_new = train_test_split(*penguins, random_state=0)
    report = cb.TreeAugmentedNB().fit(X, y).report(X_new, y_new, costs=[[0, 1, 5], [1, 0, 1], [1, 1, 0]])
    assert report.facts.quality.rows == len(y_new)
    assert report.facts.quality.cost <= report.facts.quality.cost_of_likely + 0.05
    assert report.facts.surprise.rows[0].p_value <= 0.05
    with pytest.raises(ValueError, match="is not among the model's classes"):
        cb.NaiveBayes().fit(X[y != "Gentoo"], y[y != "Gentoo"]).report(X_new, y_new)
    with pytest.raises(NotFittedError):
        cb.NaiveBayes().report(X_new, y_new)


def hostile_table():
    rng = np.random.default_rng(0)
    y = np.array(["<script>alert('class')</script>", "\u202eb</title>"])[np.arange(80) % 2]
    names = [
        readable(name) if "\ud83d" in name else name for name in HOSTILE
    ]  # pandas refuses halves of characters
    columns = {f"{name} {place}": rng.normal(size=80) for place, name in enumerate(names)}
    columns["levels & </svg><script>"] = np.array(names, dtype=object)[rng.integers(0, len(names), 80)]
    return pd.DataFrame(columns), y


def test_hostile_names_stay_text():
    X, y = hostile_table()
    report = report_on_table(X, y, models=["KernelNB"], folds=2, title="</title><script>alert(2)</script>")
    page = report.html
    page.encode()
    tags = read(page).tags
    assert tags.count("script") == 1
    assert tags.count("style") == 1
    assert tags.count("title") == 1 + sum(tag == "desc" for tag in tags)
    assert "img" not in tags
    assert "<script>alert" not in page
    assert "x" * 1000 not in page


def test_a_table_of_2000_columns_stays_small():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    names = [f"a rather long name of column {j} " * 3 for j in range(250)]
    X = pd.DataFrame(rng.normal(size=(120, 250)), columns=names)
    X.iloc[:, 70] += 3 * y
    table = table_facts(labeled_rows(X, y))
    assert "column 70 " in table.columns[0].name
    table = replace(
        table, columns=(*table.columns, *(replace(each, picture=None) for each in table.columns * 7))
    )
    page = page_of(Facts("Wide", "2,000 columns", "none", table, findings=Findings((), ())))
    assert "The 24 most informative of 2,000 columns" in page
    assert len(page.encode()) < 1_000_000
    wider = replace(table, columns=table.columns * 20)
    page = page_of(Facts("Wider", "40,000 columns", "none", wider, findings=Findings((), ())))
    assert "least informative columns." in page
    assert len(page.encode()) < 2_000_000


def test_stages_are_reported_in_order(penguins):
    seen = []
    report_on_table(*penguins, models=["KernelNB"], folds=2, progress=lambda *stage: seen.append(stage))
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
    assert len({name for name, _ in seen}) > 5


def test_labels_that_are_missing_or_rare(penguins):
    X, y = penguins
    some = y.astype(object).copy()
    some[:40] = None
    some[40] = "only one"
    report = report_on_table(X, some, models=["KernelNB"])
    assert report.facts.table.unlabeled == 40
    assert "a class has only one row" in dict(report.facts.skipped)["Models compared"]
    assert_present_or_skipped(report)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": ["Forest"]}, "there is no model 'Forest'"),
        ({"folds": 1}, "folds must be at least 2"),
        ({"max_rows": 0}, "max_rows must be at least 1"),
        ({"ignore": ["CB999"]}, "unknown code"),
        ({"costs": [[0, 1], [1, 0]]}, "costs must be a matrix of 3"),
        ({"y": ["a"] * 344}, "at least two classes"),
        ({"y": ["a", "b"]}, "344 rows, but there are 2 labels"),
    ],
)
def test_wrong_input_is_refused(change, message, penguins):
    X, y = penguins
    options = {"models": ["KernelNB"], "folds": 2, **change}
    with pytest.raises(ValueError, match=message):
        report_on_table(X, options.pop("y", y), **options)


def test_columns_of_any_kind_are_described(tmp_path):
    n = 60
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = pd.DataFrame(
        {
            "day": pd.date_range("2024-01-01", periods=n),
            "wait": pd.to_timedelta(rng.integers(0, 1000, n), unit="s"),
            "whole": pd.array([None, *range(1, n)], dtype="Int64"),
            "kind": pd.Categorical(rng.choice([1, 2, 3], n)),
            "flag": rng.random(n) < 0.5 + 0.4 * y,
            "nothing": np.full(n, np.nan),
            "constant": np.ones(n),
            "": rng.normal(size=n) + y,
        }
    )
    report = report_on_table(X, y, models=["KernelNB"], folds=2)
    columns = {column.name: column for column in report.facts.table.columns}
    assert columns["day"].range == "2024-01-01 to 2024-02-29, median 2024-01-30"
    assert columns["day"].reason.startswith("dates, in days")
    assert columns["whole"].missing == 1
    assert columns["kind"].picture.counts.sum() == n
    assert columns["nothing"].distinct == 0
    assert "too few values" in dict(report.facts.skipped)["Column nothing in all models"]
    space = run_code(report.facts.code, tmp_path, X=X, y=y)
    assert "nothing" not in space["model"].feature_names_in_
    np.testing.assert_allclose(
        space["model"].predict_proba(X.drop(columns="nothing")),
        report.model.predict_proba(X.drop(columns="nothing")),
    )


SMALL = {"models": ["KernelNB"], "folds": 2}


def small_table(n=60):
    y = np.arange(n) % 2
    return pd.DataFrame(np.random.default_rng(0).normal(size=(n, 3)) + y[:, None], columns=list("abc")), y


def test_columns_of_few_dates_or_durations_are_shown_as_levels():
    X, y = small_table()
    days = pd.to_datetime(["2024-01-01 00:00", "2024-02-01 00:00", "2024-02-01 06:00"] * 20)
    X = X.assign(day=days, wait=pd.to_timedelta([1, 2, 3] * 20, unit="h"))
    columns = {column.name: column for column in table_facts(labeled_rows(X, y)).columns}
    assert columns["day"].picture.levels == ("2024-01-01", "2024-02-01", "2024-02-01 06:00:00")
    assert columns["wait"].picture.levels == tuple(f"0 days 0{hours}:00:00" for hours in (1, 2, 3))


def test_a_column_with_a_few_values_is_left_out_of_models_and_densities():
    X, y = small_table()
    X["rare"] = np.where(np.arange(len(y)) < 6, np.arange(len(y)) / 7, np.nan)
    report = report_on_table(X, y, **SMALL)
    assert "(6)" in dict(report.facts.skipped)["Column rare in all models"]
    assert report.facts.surprise.scored == len(y)


@pytest.mark.parametrize("rare", [1, 2])
@pytest.mark.parametrize("n", [20, 24, 60])
def test_a_class_of_one_or_two_rows_ends_in_a_report(n, rare):
    X, _ = small_table(n)
    report = report_on_table(X, np.repeat(["rare", "usual"], [rare, n - rare]), **SMALL)
    assert_present_or_skipped(report)
    if rare == 1:  # the only row of a class is never held out
        assert report.facts.quality.rows == n - 1
        assert report.facts.quality.tradeoffs == ()
        assert report.facts.quality.threshold is None


@pytest.mark.parametrize("n", [4, 5, 6, 9])
def test_tiny_tables_end_in_a_report(n):
    report = report_on_table(*(part[:n] for part in small_table()), **SMALL)
    assert_present_or_skipped(report)
    assert "at least 20 are needed" in dict(report.facts.skipped)["Surprising rows"]


def test_all_checks_of_models_and_comparisons_are_run(report, penguins):
    assert not {"CB001", "CB002", "CB012", "CB013"} & set(report.findings.skipped)
    X, X_new, y, y_new = train_test_split(*penguins, random_state=0)
    on_model = cb.NaiveBayes(rule="ml").fit(X, y).report(X_new, y_new)
    assert set(on_model.findings.skipped) == {"CB002", "CB012"}  # without a comparison, and 86 rows only


def test_a_list_of_rows_is_read_as_by_the_model():
    X, y = (part.tolist() for part in (small_table()[0].to_numpy(), small_table()[1]))
    report = report_on_model(cb.GaussianNB().fit(X, y), X, [None, *y[1:]])
    assert report.facts.table.unlabeled == 1
    assert report.facts.reasons is not None


def test_numbers_in_an_array_of_objects_are_shown_as_numbers():
    X, y = small_table()
    mixed = np.column_stack([X.to_numpy(), np.where(y == 1, "u", "v")]).astype(object)
    mixed[:, :3] = X.to_numpy()
    columns = {column.name: column for column in table_facts(labeled_rows(mixed, y)).columns}
    assert columns["x0"].picture.edges is not None
    assert columns["x3"].picture.levels == ("v", "u")


def test_a_report_after_a_comparison_of_baselines_alone_says_what_it_describes():
    report = report_on_table(*small_table(), models=["sklearn-LogReg"], folds=2)
    assert report.facts.model == "BayesClassifier"
    assert "The rest of this report describes BayesClassifier, which was not compared." in report.html


def test_confident_mistakes_are_named_once():
    posterior = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    record = HeldOut(np.log(posterior), np.array([1, 1, 0, 0]), np.ones(4), np.arange(4), "drawn")
    reasons = dict(chosen_rows(record, np.array(["a", "b"])))
    assert reasons[0] == "confident mistake"
    assert reasons[1] == "another confident mistake"


def test_arrays_without_a_literal_are_written_as_code(tmp_path):
    costs = np.array([[0.0, np.inf], [np.nan, 0.0]])
    space = run_code(code_of(cb.NaiveBayes(costs=costs)).replace("model.fit(X, y)", ""), tmp_path)
    np.testing.assert_array_equal(space["model"].costs, costs)


def test_a_model_that_refuses_the_table_is_skipped(penguins, monkeypatch):
    def refusing(frame):
        raise ValueError("no such table")

    monkeypatch.setitem(BASELINES, "sklearn-LogReg", refusing)
    X, y = penguins
    report = report_on_table(X, y, models=["KernelNB", "sklearn-LogReg"], rules=["ml"], folds=2)
    assert [each.name for each in report.facts.ranking.methods] == ["KernelNB, ml"]
    assert dict(report.facts.skipped)["Model sklearn-LogReg"] == "no such table"
    with pytest.raises(ValueError, match="no such table"):
        report_on_table(X, y, models=["sklearn-LogReg"], folds=2)


def test_wide_tables_are_compared_without_slow_models():
    X = pd.DataFrame(np.zeros((4, 151)))
    pairs, skipped = chosen_pairs(X, None, None)
    assert "QDA" not in {model for model, _ in pairs}
    assert "square of the number of columns" in skipped[0].why
    assert ("QDA", "ml") in chosen_pairs(X, ["QDA"], ["ml"])[0]


def test_thresholds_follow_costs():
    rng = np.random.default_rng(0)
    probability = rng.random(20_000)
    codes = (rng.random(20_000) < probability).astype(int)
    record = HeldOut(
        np.log(np.stack([1 - probability, probability], axis=1)),
        codes,
        np.ones(20_000),
        np.arange(20_000),
        "drawn",
    )
    quality = quality_facts(record, np.array(["no", "yes"]), [[0, 1], [4, 0]])
    event = quality.threshold
    right = 0.2 if event.name == "yes" else 0.8
    assert event.usual == pytest.approx(right)
    assert event.best == pytest.approx(right, abs=0.06)
    assert event.honest_cost == pytest.approx(event.usual_cost, abs=0.02)
    assert quality.tradeoffs[0].auc == pytest.approx(roc_auc_score(codes, probability), abs=1e-9)
    assert quality.brier == pytest.approx(2 * brier_score_loss(codes, probability))
    assert quality.calibration_error < 0.02
    assert quality.cost < quality.cost_of_likely

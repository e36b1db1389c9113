"""A report gives one account of a table: columns as the model reads them, one set of predictions, one number of each row."""

import re

import numpy as np
import pandas as pd
import pytest

import calibayes as cb
from calibayes.checks import run_checks
from calibayes.report import report_on_model, report_on_table
from calibayes.report.table_facts import labeled_rows, table_facts


def seasons(n=800, seed=0):
    """Days whose class depends on the month and, less, on a temperature; rows in random order."""
    rng = np.random.default_rng(seed)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.permutation(4 * 365)[:n], unit="D")
    winter = np.cos(2 * np.pi * (day.day_of_year - 20) / 365)
    y = np.where(rng.random(n) < 0.5 + 0.45 * winter, "rain", np.where(rng.random(n) < 0.2, "fog", "sun"))
    temperature = (10 - 4 * winter + rng.normal(0, 6, n)).round(1)
    return pd.DataFrame({"temperature": temperature, "noise": rng.normal(size=n), "date": day}), y


FORMS = {
    "dates": lambda dates: dates,
    "text": lambda dates: dates.dt.strftime("%Y-%m-%d"),
    "other text": lambda dates: dates.dt.strftime("%d.%m.%Y"),
    "objects": lambda dates: dates.dt.date.astype(object),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_date_is_described_and_checked_in_the_same_way_however_it_is_written(form):
    X, y = seasons()
    written = X.assign(date=FORMS[form](X["date"]))
    expected = {each.name: each for each in table_facts(labeled_rows(X, y)).columns}
    for model in (None, cb.NaiveBayes(rule="ml").fit(written, y)):
        facts = table_facts(labeled_rows(written, y), model)
        assert facts.columns[0].name == "date"  # the month says most
        date = facts.columns[0]
        assert date.information == expected["date"].information > 0.15
        assert date.range == expected["date"].range
        np.testing.assert_array_equal(date.picture.edges, expected["date"].picture.edges)
        assert "in days" in date.reason
        assert "also month" in date.reason
        assert date.kind in ("numeric", "kernel")
        order = np.argsort(X["date"].to_numpy())
        found = [run_checks(each.iloc[order], y[order], model).found for each in (X, written)]
        assert [each.message for each in found[0]] == [each.message for each in found[1]]
        assert any(each.columns == ("date",) for each in found[1])  # rows in the order of their dates


def test_a_date_that_a_model_takes_for_levels_is_described_as_levels():
    X, y = seasons()
    X["date"] = pd.Categorical(X["date"].dt.strftime("%Y-%m"))
    for model in (None, cb.NaiveBayes(rule="ml").fit(X, y)):
        facts = {each.name: each for each in table_facts(labeled_rows(X, y), model).columns}
        assert facts["date"].kind == "categorical"
        assert facts["date"].range == ""


@pytest.fixture(scope="module")
def report():
    X, y = seasons(400)
    return report_on_table(
        X.assign(date=FORMS["text"](X["date"])), y, models=["KernelNB", "LDA", "BayesClassifier"], folds=3
    )


def test_header_table_and_quality_have_the_same_scores(report):
    ranking, quality = report.facts.ranking, report.facts.quality
    described = next(each for each in ranking.methods if (each.model, each.rule) == ranking.chosen)
    assert quality.error == pytest.approx(described.error.mean, abs=1e-12)
    assert quality.log_loss == pytest.approx(described.log_loss.mean, abs=1e-12)
    assert quality.how == "the 3 folds of the comparison"
    record = report.model.held_out_
    wrong = record.log_posterior.argmax(axis=1) != record.codes
    assert quality.error == pytest.approx(np.average(wrong, weights=record.weight), abs=1e-12)
    shown = {f"{100 * quality.error:.1f}", f"{100 * described.error.mean:.1f}"}
    assert len(shown) == 1


def assert_rows_are_consistent(reasons):
    assert reasons.singles
    for each in reasons.singles:
        assert each.probability >= each.other_probability
        log_odds = np.log(each.probability) - np.log(each.other_probability)
        assert each.log_odds == pytest.approx(log_odds, abs=1e-8)
        total = each.rest + sum(part.contribution for part in each.contributions)
        assert total == pytest.approx(log_odds, abs=1e-8)
        assert each.decided != each.other
        if "mistake" in each.why_shown:
            assert each.decided != each.label
        if "typical" in each.why_shown:
            assert each.decided == each.label


def test_prediction_probability_and_reasons_of_a_row_are_of_one_model_that_did_not_see_it(report):
    assert_rows_are_consistent(report.facts.reasons)
    X = seasons(400)[0]
    X["date"] = FORMS["text"](X["date"])
    in_sample = report.model.predict_proba(X)
    differs = [
        abs(each.probability - in_sample[each.row].max()) > 1e-6 for each in report.facts.reasons.singles
    ]
    assert any(differs)
    assert "not trained on any of these rows" in report.html


@pytest.mark.parametrize(
    "model", [cb.NaiveBayes(), cb.BayesClassifier(), cb.QuadraticDiscriminantAnalysis()], ids=repr
)
def test_rows_of_a_report_on_a_model_are_consistent(model):
    X, y = seasons(400)
    X = X.drop(columns="date") if isinstance(model, cb.QuadraticDiscriminantAnalysis) else X
    fitted = model.fit(X[:250], y[:250])
    assert_rows_are_consistent(report_on_model(fitted, X[250:], y[250:]).facts.reasons)


def test_contributions_are_those_of_tempered_probabilities():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = pd.DataFrame(
        np.repeat(rng.normal(size=(300, 1)) + y[:, None], 4, axis=1) + rng.normal(size=(300, 4)) * 0.1
    )
    X.columns = list("abcd")
    model = cb.BayesClassifier().fit(X[:200], y[:200])
    assert_rows_are_consistent(report_on_model(model, X[200:], y[200:]).facts.reasons)


def test_rows_are_numbered_from_0_everywhere(report):
    X, y = seasons(400)
    date = FORMS["text"](X["date"])
    for each in report.facts.reasons.singles:
        assert each.label == y[each.row]
        value = next(part.value for part in each.contributions if part.column == "date")
        assert value == date[each.row]
        assert f"Row {each.row}: " in report.html
    for each in report.facts.labels.rows:
        assert each.label == y[each.row]
    assert re.search(r"Rows are numbered from 0", report.html)

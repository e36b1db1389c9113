"""Rows that look mislabeled: planted labels are found, by models that did not see the rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from calibayes import CategoricalNB, GaussianNB, JointKernelClassifier, NaiveBayes, datasets
from calibayes.analysis.held_out import cross_fitted
from calibayes.analysis.marginals import PartNeedsAllColumns
from calibayes.model.classifier import Classifier

COLUMNS = ["row", "label", "suggested", "probability", "score", "issue", "gain", "reason"]


def with_planted(y, share, seed=0):
    """Labels of which a share is wrong, and the positions of these."""
    rng = np.random.default_rng(seed)
    classes, codes = np.unique(y, return_inverse=True)
    wrong = rng.choice(len(y), round(share * len(y)), replace=False)
    codes[wrong] = (codes[wrong] + rng.integers(1, len(classes), len(wrong))) % len(classes)
    return classes[codes], wrong


@pytest.mark.parametrize("model", [GaussianNB(rule="ml"), GaussianNB(), NaiveBayes()], ids=str)
def test_planted_labels_come_first(model):
    X, y = load_iris(return_X_y=True)
    labels, wrong = with_planted(y, 0.05)
    issues = model.fit(X, labels).label_issues(X, labels)
    first = issues.head(len(wrong))
    assert len(set(first.row) & set(wrong)) >= 0.75 * len(wrong)
    found = first[first.row.isin(wrong)]
    assert (found.suggested == y[found.row]).mean() > 0.8
    assert found.issue.mean() > 0.5
    assert (found.gain > 0).all()


def test_layout():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    names = np.where(y, "benign", "malignant")
    issues = GaussianNB(rule="ml").fit(X, names).label_issues(X, names, reasons=5)
    assert list(issues) == COLUMNS
    assert sorted(issues.row) == list(range(len(y)))
    assert (issues.label == names[issues.row]).all()
    assert issues.score.is_monotonic_increasing
    assert issues.issue.dtype == bool
    assert not issues.issue[issues.suggested == issues.label].any()
    assert (issues.reason[:5] != "").all()
    assert (issues.reason[5:] == "").all()
    assert issues.reason.iloc[0].split(" (")[0] in X.columns


def test_scores_are_those_of_the_record_of_held_out_rows():
    X, y = load_iris(return_X_y=True)
    model = GaussianNB(rule="ml").fit(X, y)
    issues, record = model.label_issues(X, y).sort_values("row"), model.held_out_
    posterior = np.exp(record.log_posterior)
    own = posterior[np.arange(len(y)), y]
    average = np.array([own[y == c].mean() for c in range(3)])
    np.testing.assert_allclose(issues.probability, own, rtol=1e-9)
    assert (average > 0.5).all()
    np.testing.assert_allclose(issues.score, own / posterior.max(axis=1), rtol=1e-9)
    losses = -record.log_posterior[np.arange(len(y)), y]
    without = np.array([np.delete(losses, i).mean() for i in range(len(y))])
    np.testing.assert_allclose(issues.gain, losses.mean() - without, rtol=1e-6, atol=1e-12)


def test_labels_of_a_class_that_is_never_probable_are_not_all_suspicious():
    """A rare class in the midst of another one: its rows have improbable labels, but not wrong ones."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [300, 300, 30])
    X = rng.normal(size=(630, 2)) + np.array([[0, 0], [6, 6], [0.5, 0.5]])[y]
    labels = y.copy()
    labels[300:315] = 0  # rows of class 1 at the center of class 0
    issues = GaussianNB(rule="ml").fit(X, labels).label_issues(X, labels, reasons=0)
    own = issues.probability[issues.label == 2]
    assert own.mean() < 0.25
    is_suggested = (issues.label == 2) & (issues.suggested == 2)
    assert (issues.score[is_suggested] == 1.0).all()
    is_rare = (issues.label == 2) & (issues.suggested == 0)
    assert (issues.score > issues.probability)[is_rare].all()
    assert set(issues.row[:15]) == set(range(300, 315))


def test_a_model_that_memorizes_rows_does_not_see_the_row_it_judges():
    """Random labels of distinct rows: whoever saw the row knows its label, anyone else guesses."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    model = JointKernelClassifier().fit(X, y)
    memorizing = CategoricalNB(alpha=1e-6, rule="ml").fit(np.arange(200)[:, None].astype(str), y)
    assert memorizing.score(np.arange(200)[:, None].astype(str), y) == 1.0
    for fitted, table in ((model, X), (memorizing, np.arange(200)[:, None].astype(str))):
        issues = fitted.label_issues(table, y, reasons=0)
        assert (issues.suggested == issues.label).mean() < 0.6


def test_every_row_is_in_a_fold_where_there_is_no_leave_one_out(monkeypatch):
    held_out = "calibayes.analysis.held_out"
    monkeypatch.setattr(f"{held_out}.MANY_ROWS", 100)
    given = []
    monkeypatch.setattr(
        "calibayes.analysis.label_issues.cross_fitted",
        lambda *arguments: given.append(arguments[2]) or cross_fitted(*arguments),
    )
    X, y = load_iris(return_X_y=True)
    issues = GaussianNB().fit(X, y).label_issues(X, y, reasons=0)
    assert given == [5]
    assert not issues.score.isna().any()


@pytest.mark.parametrize("rule", ["ml", "rc"])
def test_the_order_of_the_rows_does_not_matter(rule):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(y))
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    model = GaussianNB(rule=rule)
    plain = model.fit(X, y, weight).label_issues(X, y, weight, reasons=0).sort_values("row")
    moved = model.fit(X[order], y[order], weight[order]).label_issues(
        X[order], y[order], weight[order], reasons=0
    )
    moved = moved.assign(row=order[moved.row]).sort_values("row")
    is_copy = pd.DataFrame(np.column_stack([X, y])).duplicated(keep=False).to_numpy()
    for name in ("probability", "score", "gain"):
        np.testing.assert_allclose(
            plain[name][~is_copy[plain.row]], moved[name][~is_copy[moved.row]], rtol=1e-6, atol=1e-12
        )


def test_a_weight_of_two_is_two_rows_elsewhere():
    X, y = load_iris(return_X_y=True)
    weight = np.where(np.arange(150) == 60, 2.0, 1.0)
    weighted = GaussianNB(rule="ml").label_issues(X, y, weight, reasons=0).set_index("row")
    twice = np.append(np.arange(150), 60)
    repeated = GaussianNB(rule="ml").label_issues(X[twice], y[twice], reasons=0).set_index("row")
    others = np.delete(np.arange(150), 60)
    np.testing.assert_allclose(
        weighted.probability[others], repeated.probability[others], rtol=1e-8, atol=1e-12
    )
    assert weighted.gain[60] != pytest.approx(repeated.gain[60])


def test_an_estimator_that_is_not_fitted_stays_so():
    X, y = load_iris(return_X_y=True)
    model = GaussianNB(rule="ml")
    pd.testing.assert_frame_equal(
        model.label_issues(X, y), GaussianNB(rule="ml").fit(X, y).label_issues(X, y)
    )
    assert not hasattr(model, "fitted_")


def test_rows_that_cannot_be_judged_are_last():
    X, y = load_iris(return_X_y=True)
    labels = np.where(np.arange(150) == 9, "alone", np.array(["a", "b", "c"])[y])
    weight = np.where(np.arange(150) == 4, 0.0, 1.0)
    issues = GaussianNB(rule="ml").fit(X, labels, weight).label_issues(X, labels, weight)
    assert issues.row.tolist()[-2:] == [4, 9]
    assert issues.score.isna().sum() == 2
    assert not issues.issue.iloc[-2:].any()


def test_a_mixed_table_with_missing_values():
    penguins = datasets.load("penguins")
    labels, wrong = with_planted(np.asarray(penguins.target), 0.03)
    issues = NaiveBayes().label_issues(penguins.data, labels)
    assert len(set(issues.head(len(wrong)).row) & set(wrong)) >= 0.8 * len(wrong)
    assert issues.reason.iloc[0]


def test_missing_labels_are_refused():
    X, y = load_iris(return_X_y=True)
    model = GaussianNB(rule="ml").fit(X, y)
    labels = y.astype(object)
    labels[7] = None
    with pytest.raises(ValueError, match="a label for each row, but 1 have none, the first is row 7"):
        model.label_issues(X, labels)


def test_reasons_are_a_whole_number():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="reasons"):
        GaussianNB(rule="ml").label_issues(X, y, reasons=-1)


def needs_all_columns(self, X):
    raise PartNeedsAllColumns("a family cannot leave out columns")


@pytest.mark.parametrize("marginals", [needs_all_columns, Classifier.marginals])
def test_models_that_need_all_columns_have_no_reasons(marginals, monkeypatch):
    X, y = load_iris(return_X_y=True)
    monkeypatch.setattr(GaussianNB, "marginals", marginals)
    issues = GaussianNB(rule="ml").fit(X, y).label_issues(X, y)
    assert (issues.suggested != issues.label).any()
    assert set(issues.reason) == {""}


@pytest.mark.parametrize("error", [ValueError, TypeError])
def test_an_error_in_the_explanation_is_raised(error, monkeypatch):
    def fail(self, X):
        raise error("the explanation failed")

    X, y = load_iris(return_X_y=True)
    model = GaussianNB(rule="ml").fit(X, y)
    monkeypatch.setattr(GaussianNB, "marginals", fail)
    with pytest.raises(error, match="the explanation failed"):
        model.label_issues(X, y)

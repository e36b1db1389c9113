"""`summary` of every classifier, `schema_` of the ensembles, and how a summary is displayed."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

import calibayes as cb
from calibayes.core.notices import PlainText
from calibayes.datasets import load_penguins
from tests.contract.test_scikit_learn import ESTIMATORS

CLASSIFIERS = [estimator for estimator in ESTIMATORS if is_classifier(estimator)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda e: type(e).__name__)
def test_every_classifier_has_a_summary(estimator):
    X = np.random.default_rng(0).poisson(3, size=(60, 3))
    y = np.where(np.arange(60) % 3 == 0, "rare", "usual")
    estimator = clone(estimator)
    with pytest.raises(NotFittedError):
        estimator.summary()
    summary = estimator.fit(X, y).summary()
    assert isinstance(summary, PlainText)
    assert type(estimator).__name__ in summary.splitlines()[0]
    assert "2 classes" in summary.splitlines()[0]
    kept = getattr(estimator, "kept_rows_", 0)
    assert f"training rows kept in the model: {kept}" in summary
    assert "training table: 60 rows, 3 columns, 0 missing cells" in summary.splitlines()


def test_a_generative_summary_has_classes_columns_and_training():
    penguins = load_penguins()
    text = cb.NaiveBayes().fit(penguins.data, penguins.target).summary()
    assert "NaiveBayes: 3 classes, 7 columns, rule rc, " in text
    assert ["Adelie", "152", "0.442"] in [line.split() for line in text.splitlines()]
    assert any(line.split()[:2] == ["sex", "categorical"] for line in text.splitlines())
    assert "training error" in text
    assert "training table: 344 rows, 7 columns, 19 missing cells" in text.splitlines()
    given = [
        ("sizes", cb.families.Gaussian(), cb.numeric),
        ("kinds", cb.families.Categorical(), cb.categorical),
    ]
    text = cb.GenerativeClassifier(families=given, rule="ml").fit(penguins.data, penguins.target).summary()
    assert any(line.split()[:3] == ["kinds", "Categorical", "island,"] for line in text.splitlines())


def test_long_lists_are_shortened():
    rng = np.random.default_rng(0)
    text = cb.GaussianNB(rule="ml").fit(rng.normal(size=(200, 500)), np.arange(200) % 50).summary()
    assert len(text.splitlines()) < 60
    assert "... and 30 more" in text
    assert len(max(text.splitlines(), key=len)) < 120


def test_ensembles_have_a_schema():
    X = pd.DataFrame(
        {"size": [1.0, 2.0, None, 4.0] * 10, "kind": ["a", None, "b", "a"] * 10, "is_new": [True, False] * 20}
    )
    y = np.arange(40) % 2
    for model in (cb.BayesClassifier(), cb.PosteriorMixture(models=[("nb", cb.NaiveBayes())])):
        schema = model.fit(X, y).schema_
        assert [(column.name, column.kind, column.reason, column.missing) for column in schema.columns] == [
            ("size", "numeric", "numbers", 10),
            ("kind", "categorical", "text", 10),
            ("is_new", "categorical", "booleans", 0),
        ]


def test_text_is_displayed_as_it_is():
    text = PlainText("name  <b>\nage   1")
    assert text == str(text) == repr(text) == "name  <b>\nage   1"
    assert text._repr_html_() == "<pre>name  &lt;b&gt;\nage   1</pre>"
    assert pickle.loads(pickle.dumps(text)) == text
    assert type(pickle.loads(pickle.dumps(text))) is PlainText

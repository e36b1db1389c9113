"""Messages for common mistakes: they name what was called, and say what to do."""

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibayes as cb
from tests.contract.tables import frame
from tests.contract.test_scikit_learn import ESTIMATORS


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_fit_without_labels_names_the_estimator_and_what_to_do(estimator):
    X = np.arange(20.0).reshape(10, 2)
    name, estimator = type(estimator).__name__, clone(estimator)
    calls = [lambda: estimator.fit(X), lambda: estimator.fit(X, None)]
    if hasattr(estimator, "partial_fit"):
        calls.append(lambda: estimator.partial_fit(X, classes=[0, 1]))
    for call in calls:
        with pytest.raises(
            ValueError, match=f"^{name} requires y to be passed.*give the label of each row of X"
        ):
            call()


@pytest.mark.parametrize(
    "other", [LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())]
)
def test_members_of_other_packages_are_refused(other):
    X, y = frame()
    name = type(other).__name__
    for ensemble in (
        cb.BayesClassifier(families=[("lr", other)]),
        cb.PosteriorMixture(models=[("lr", other)]),
    ):
        with pytest.raises(
            ValueError, match=f"'lr' is a {name}.*estimator of this package.*VotingClassifier"
        ):
            ensemble.fit(X, y)


def test_members_given_as_one_string_are_refused():
    X, y = frame()
    with pytest.raises(ValueError, match=r"families must be a list, got 'near'; for example \['near'\]"):
        cb.BayesClassifier(families="near").fit(X, y)


def test_lazy_frames_are_refused_with_what_to_do():
    X, y = frame()
    model = cb.NaiveBayes(rule="ml").fit(X, y)
    with pytest.raises(TypeError, match=r"pass X\.collect\(\)"):
        model.explain(pl.from_pandas(X).lazy())


def test_counts_have_their_noun_in_singular_or_plural():
    X, y = frame()
    for rows, text in (([3], "1 row"), ([3, 5], "2 rows")):
        labels = y.astype(object)
        labels[rows] = None
        with pytest.raises(ValueError, match=rf"missing labels \({text}\)"):
            cb.BayesClassifier().fit(X, labels)

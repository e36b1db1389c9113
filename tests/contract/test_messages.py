"""Messages for common mistakes: they name what was called, and say what to do."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
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


PREDICTORS = [each for each in ESTIMATORS if hasattr(each, "fit") and is_classifier(each)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", PREDICTORS, ids=lambda e: type(e).__name__)
def test_predictions_for_text_in_a_column_of_numbers_name_what_changed(estimator):
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.integers(0, 4, (80, 2)), columns=["age", "visits"]), np.arange(80) % 2
    model = clone(estimator).fit(X + 3 * y[:, None], y)
    try:
        model.predict(X.assign(age="old"))
    except ValueError as error:
        message = str(error)
        assert "age" in message
        assert "NaiveBayes" not in message  # no advice to take another model: this one is fitted
        assert "if the estimator" not in message


def test_text_without_an_encoder_names_models_that_read_it():
    X = pd.DataFrame({"island": ["a", "b"] * 10, "age": np.arange(20.0)})
    for estimator in (cb.GaussianNB(), cb.QuadraticDiscriminantAnalysis()):
        with pytest.raises(
            ValueError, match=r"column 'island' does not hold numbers.*BayesClassifier"
        ) as error:
            estimator.fit(X, np.arange(20) // 10)
        assert "if the estimator" not in str(error.value)


@pytest.mark.parametrize(
    "estimator", [cb.NaiveBayes(), cb.TreeAugmentedNB(), cb.BayesClassifier(), cb.AODE()], ids=repr
)
def test_warnings_of_identifiers_advise_parameters_that_exist(estimator):
    X = pd.DataFrame({"key": [f"k{j}" for j in range(60)], "x": np.arange(60.0) % 7})
    with pytest.warns(UserWarning, match="column 'key' left out") as caught:
        estimator.fit(X, np.arange(60) % 2)
    text = next(str(each.message) for each in caught if "left out" in str(each.message))
    assert ("parameter kinds" in text) == ("kinds" in estimator.get_params())
    assert "if the estimator" not in text


def test_importances_are_of_columns_alone():
    X, y = frame()
    model = cb.NaiveBayes(rule="ml").fit(X, np.where(np.arange(len(y)) % 20 == 0, y[0], y[-1]))
    explained = model.explain(X)
    assert set(explained.overall()) == set(X.columns)
    sizes = np.abs(explained.contributions).mean(axis=0)
    assert list(explained.overall().values()) == sorted(sizes[1:], reverse=True)

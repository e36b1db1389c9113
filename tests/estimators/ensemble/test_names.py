"""Ensembles accept the same columns with and without names, as other estimators do."""

import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris

from calibayes import BayesClassifier, GaussianNB, KernelNB, PosteriorMixture

X, y = load_iris(return_X_y=True)
TABLES = {
    "array": X,
    "frame": pd.DataFrame(X, columns=list("abcd")),
    "frame with integer names": pd.DataFrame(X),
}
MODELS = {
    "BayesClassifier": BayesClassifier(),
    "PosteriorMixture": PosteriorMixture(models=[("normal", GaussianNB()), ("kernel", KernelNB())]),
}


@pytest.mark.filterwarnings("ignore:X .*feature names:UserWarning")
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("training", TABLES.values(), ids=TABLES)
def test_names_of_columns_may_be_left_out(model, training):
    fitted = model.fit(training, y)
    expected = fitted.predict_proba(training)
    for table in TABLES.values():
        assert_array_equal(fitted.predict_proba(table), expected)
        assert fitted.explain(table).names == fitted.explain(training).names
        assert_array_equal(fitted.shares(table), fitted.shares(training))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_warnings_about_names_are_those_of_scikit_learn(model):
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.fit(TABLES["frame"], y).predict(X)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        model.fit(X, y).predict(TABLES["frame"])


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_other_names_are_refused(model):
    with pytest.raises(ValueError, match="feature names should match"):
        model.fit(TABLES["frame"], y).predict(TABLES["frame"].rename(columns={"a": "z"}))


@pytest.mark.filterwarnings("ignore:X .*feature names:UserWarning")
def test_densities_accept_tables_without_names():
    model = BayesClassifier().fit(TABLES["frame"], y)
    assert_array_equal(model.score_samples(X), model.score_samples(TABLES["frame"]))
    assert model.outlier_threshold(X, 0.1) == model.outlier_threshold(TABLES["frame"], 0.1)

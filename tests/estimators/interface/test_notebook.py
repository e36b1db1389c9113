"""Notebooks show scikit-learn's diagram of a classifier and, once it is fitted, its summary as escaped text."""

import html

import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_html_repr

from calibayes import (
    BayesClassifier,
    CalibratedTrees,
    GaussianNB,
    JointKernelClassifier,
    LogUnivariateClassifier,
    NaiveBayes,
)

HOSTILE = "<script>alert('x')</script>"
X = pd.DataFrame({HOSTILE: [float(i % 7) for i in range(40)], "b & c": [float(i % 3) for i in range(40)]})
y = ["</pre><b>", "other"] * 20
MODELS = [NaiveBayes, GaussianNB, BayesClassifier, LogUnivariateClassifier, CalibratedTrees]


@pytest.mark.parametrize("cls", MODELS, ids=lambda cls: cls.__name__)
def test_the_page_of_a_fitted_model_has_its_summary_escaped(cls):
    model = cls().fit(X, y)
    for page in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert html.escape(str(model.summary())) in page
        section = page[page.index("Summary of the fitted model") :]
        assert HOSTILE not in section
        assert "</pre><b>" not in section
        assert section.count("<pre") == section.count("</pre>") == 1


@pytest.mark.parametrize("cls", [*MODELS, JointKernelClassifier], ids=lambda cls: cls.__name__)
def test_plain_text_is_that_of_scikit_learn_and_unfitted_models_have_no_summary(cls):
    model = cls()
    assert repr(model) == BaseEstimator.__repr__(model) == model._repr_mimebundle_()["text/plain"]
    assert "sk-estimator" in model._repr_html_()
    assert "Summary of the fitted model" not in model._repr_html_()


def test_display_of_text_has_no_page():
    with config_context(display="text"):
        assert not hasattr(NaiveBayes(), "_repr_html_")
        assert list(NaiveBayes()._repr_mimebundle_()) == ["text/plain"]


def test_a_pipeline_is_shown():
    pipeline = make_pipeline(FunctionTransformer(), GaussianNB()).fit(X.to_numpy(), y)
    assert "GaussianNB" in pipeline._repr_html_()
    assert "GaussianNB" in estimator_html_repr(pipeline)

"""What cannot be saved is refused in one sentence that names it, before anything is written."""

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB as TheirGaussianNB
from sklearn.pipeline import make_pipeline

import calibayes as cb
from calibayes import families, rules
from calibayes.learn import AnyOf, MaxPasses
from tests.contract.test_engines import CountingEngine
from tests.files.cases import counts

X, y = counts()


class OwnPreset(cb.GaussianNB):
    """A class that the package does not know."""


def with_attribute():
    model = cb.GaussianNB().fit(X, y)
    model.remark = "mine"
    return model


def first_columns(table):
    return [0, 1]


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (
            cb.GaussianNB(training=cb.TrainingOptions(callbacks=[lambda progress: False])),
            r"GaussianNB\.training\.callbacks\[0\]",
        ),
        (
            cb.GenerativeClassifier(families=[("n", families.Gaussian(), first_columns)]),
            r"GenerativeClassifier\.families\[0\]\[2\].*first_columns",
        ),
        (cb.GaussianNB(rule=rules.RC(step=rules.Schedule(lambda update: 0.1))), r"rule\.step\.lengths"),
        (cb.GaussianNB(engine=CountingEngine()), r"GaussianNB\.engine.*CountingEngine"),
        (OwnPreset(), "OwnPreset"),
        (TheirGaussianNB(), "only estimators of calibayes can be saved, got GaussianNB"),
        (make_pipeline(cb.GaussianNB()), "Pipeline"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_refused(model, named, tmp_path):
    model.fit(X, y)
    with pytest.raises(cb.ModelFileError, match=named) as refusal:
        cb.save(model, tmp_path / "model")
    assert "\n" not in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


def test_foreign_member(tmp_path):
    """A foreign estimator is refused by `fit` already; one that is put in later, by `save`."""
    model = cb.PosteriorMixture(models=[("nb", cb.GaussianNB())]).fit(X, y)
    model.models = [("theirs", LogisticRegression())]
    with pytest.raises(cb.ModelFileError, match=r"PosteriorMixture\.models\[0\]\[1\].*LogisticRegression"):
        cb.save(model, tmp_path / "model")


def test_unknown_attribute(tmp_path):
    with pytest.raises(cb.ModelFileError, match=r"GaussianNB\.remark"):
        cb.save(with_attribute(), tmp_path / "model")


def test_unfitted(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        cb.save(cb.GaussianNB(), tmp_path / "model")


def test_no_estimator(tmp_path):
    for value in (None, {}, np.zeros(3), cb.TrainingOptions()):
        with pytest.raises(cb.ModelFileError, match="only estimators of calibayes"):
            cb.save(value, tmp_path / "model")


def test_a_document_that_could_not_be_read(tmp_path, monkeypatch):
    """The limits of `load` hold for `save`, too."""
    monkeypatch.setattr("calibayes.files.container.MOST_VALUES", 100)
    with pytest.raises(cb.ModelFileError, match="the header of this model is too large"):
        cb.save(cb.GaussianNB().fit(X, y), tmp_path / "model")


def nested(depth):
    return AnyOf((nested(depth - 1),)) if depth else MaxPasses(3)


@pytest.mark.parametrize(
    ("parameter", "value", "named"),
    [
        ("stop", nested(60), "nested too deeply"),
        (
            "verbose",
            10**301,
            r"GaussianNB\.verbose cannot be saved: a whole number of 302 digits is too large",
        ),
        (
            "verbose",
            np.longdouble(1),
            r"GaussianNB\.verbose cannot be saved: it is of the type numpy\.longdouble",
        ),
        ("verbose", np.timedelta64(3), r"GaussianNB\.verbose cannot be saved: the type timedelta64"),
        ("verbose", np.zeros(2, dtype="i4,f8"), r"GaussianNB\.verbose cannot be saved: the type"),
        ("priors", pd.Series([0.2, 0.3, 0.5]), "give a list or an array instead"),
        ("stop", AnyOf([MaxPasses(3)]), r"GaussianNB\.stop is invalid: stops has the wrong type list"),
    ],
    ids=str,
)
def test_parameters(parameter, value, named, tmp_path):
    model = cb.GaussianNB().fit(X, y)
    setattr(model, parameter, value)
    with pytest.raises(cb.ModelFileError, match=named) as refusal:
        cb.save(model, tmp_path / "model")
    assert "\n" not in str(refusal.value)


def test_a_list_that_contains_itself(tmp_path):
    model = cb.GaussianNB().fit(X, y)
    model.verbose = []
    model.verbose.append(model.verbose)
    with pytest.raises(cb.ModelFileError, match="cannot be saved"):
        cb.save(model, tmp_path / "model")


def test_places_that_are_no_files(tmp_path):
    model = cb.GaussianNB().fit(X, y)
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path, f"{tmp_path}/new/", ""):
        with pytest.raises(OSError, match="not the name of a file"):
            cb.save(model, place)
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        cb.save(model, tmp_path / "none" / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]

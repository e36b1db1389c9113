"""What cannot be saved is refused in one sentence that names it, before anything is written."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB as TheirGaussianNB
from sklearn.pipeline import make_pipeline

import calibayes as cb
from calibayes import families, rules
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
    monkeypatch.setattr("calibayes.files.strict_json.MOST_VALUES", 100)
    with pytest.raises(cb.ModelFileError, match="the document of this model is too large"):
        cb.save(cb.GaussianNB().fit(X, y), tmp_path / "model")

"""`calibrate`: training from the statistics of a model, on rows that are not added to it."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss

from calibayes import GaussianNB, LinearDiscriminantAnalysis, NaiveBayes, TrainingOptions
from calibayes.datasets import load_penguins

X, Y = load_iris(return_X_y=True)


def test_from_the_closed_form_of_the_same_rows_it_is_fit():
    options = {"stop": None, "max_iter": 4}
    calibrated = LinearDiscriminantAnalysis(rule="ml", **options).fit(X, Y).calibrate(X, Y)
    expected = LinearDiscriminantAnalysis(rule="rc", **options).fit(X, Y)
    np.testing.assert_allclose(calibrated.predict_proba(X), expected.predict_proba(X), atol=1e-12)
    assert calibrated.get_params()["rule"] == "rc"


def test_it_goes_on_from_a_calibrated_model():
    model = GaussianNB(rule="rc", stop=None, max_iter=3).fit(X, Y)
    again = model.calibrate(X, Y)
    assert again.history_["objective"][0] == pytest.approx(model.history_["objective"].max())
    assert log_loss(Y, again.predict_proba(X)) < log_loss(Y, model.predict_proba(X))


def test_rows_are_not_added():
    model = GaussianNB(rule="ml", max_iter=2, stop=None).fit(X, Y)
    calibrated = model.calibrate(X[::2], Y[::2], sample_weight=np.full(75, 2.0))
    assert calibrated.training_table_ == model.training_table_
    np.testing.assert_array_equal(calibrated.class_count_, model.class_count_)
    np.testing.assert_array_equal(model.predict_proba(X), GaussianNB(rule="ml").fit(X, Y).predict_proba(X))


def test_mixed_columns_with_a_class_that_the_rows_lack():
    penguins = load_penguins()
    model = NaiveBayes(rule="ml", max_iter=3, stop=None).fit(penguins.data, penguins.target)
    keep = penguins.target != "Chinstrap"
    calibrated = model.calibrate(penguins.data[keep], penguins.target[keep])
    losses = [
        log_loss(penguins.target[keep], m.predict_proba(penguins.data[keep]), labels=m.classes_)
        for m in (model, calibrated)
    ]
    assert losses[1] < losses[0]


@pytest.mark.parametrize(
    ("model", "rule", "message"),
    [
        (GaussianNB(rule="ml"), "ml", "no calibration"),
        (GaussianNB(rule="ml"), "gdt", "another prior"),
        (GaussianNB(rule="ml", training=TrainingOptions(validation_fraction=0.2)), "rc", "holds no rows out"),
        (GaussianNB(rule="gd", max_iter=1, stop=None), "rc", "keeps no statistics"),
    ],
)
def test_what_cannot_be_calibrated(model, rule, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y).calibrate(X, Y, rule=rule)


def test_labels_must_be_classes_of_the_model():
    with pytest.raises(ValueError, match="7"):
        GaussianNB(rule="ml").fit(X, Y).calibrate(X, np.where(Y == 0, 7, Y))

"""Pickles of every estimator: equal after loading, and a warning if another version of the library wrote them."""

import copy
import io
import pickle
import re
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone

import calibayes as cb
from calibayes.model import pickles
from calibayes.model.training_rows import PROCESS_ONLY
from tests.contract.test_failed_fits import GOOD, outputs
from tests.contract.test_scikit_learn import ESTIMATORS

every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
WARNING = cb.PickledByAnotherVersionWarning


def through_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


COPIES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "old protocol": lambda model: pickle.loads(pickle.dumps(model, protocol=0)),
    "joblib": through_joblib,
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.fixture(autouse=True)
def warnings_of_fits_ignored():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", WARNING)
        yield


def pickled_by(version, model, monkeypatch):
    """A pickle that another version has written; None: one that writes no version."""
    with monkeypatch.context() as other:
        if version is None:
            for cls in type(model).__mro__:
                if "__getstate__" in vars(cls) and vars(cls)["__getstate__"] is pickles.get_state:
                    other.delattr(cls, "__getstate__")
        else:
            other.setattr(pickles, "CURRENT", pickles.WritingVersion(version))
        return pickle.dumps(model)


def loaded(data):
    """The object in a pickle, and all warnings of loading it."""
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        model = pickle.loads(data)
    return model, record


def assert_same(left, right):
    assert vars(left).keys() - {*PROCESS_ONLY} == vars(right).keys() - {*PROCESS_ONLY}
    assert repr(left.get_params()) == repr(right.get_params())
    left, right = outputs(left), outputs(right)
    assert left.keys() == right.keys()
    assert all(np.array_equal(left[name], right[name]) for name in left)


@every_estimator
def test_copies_are_equal_and_hold_no_version(estimator):
    model = clone(estimator).fit(*GOOD)
    assert cb.__version__.encode() in pickle.dumps(model)
    for made in COPIES.values():
        held = made(model)
        assert_same(held, model)
        assert not any("calibayes" in name for name in (*vars(held), *held.get_params()))
    assert vars(clone(model)).keys() == vars(clone(estimator)).keys()


@every_estimator
@pytest.mark.parametrize("version", ["0.0.7", None])
def test_loading_a_pickle_of_another_version_warns(estimator, version, monkeypatch):
    model = clone(estimator).fit(*GOOD)
    held, record = loaded(pickled_by(version, model, monkeypatch))
    assert_same(held, model)
    assert {warning.category for warning in record} == {WARNING}
    assert {warning.message.original_version for warning in record} == {version or "unknown"}
    assert {warning.filename for warning in record} == {__file__}
    assert_same(pickle.loads(pickle.dumps(held)), model)  # it is of this version now


def test_an_ensemble_of_another_version_warns_once(monkeypatch):
    model = cb.BayesClassifier().fit(*GOOD)
    assert len(model.models_) > 1
    data = pickled_by("0.0.7", [model, model.density_], monkeypatch)
    for _ in range(2):  # each time that it is loaded
        _, record = loaded(data)
        assert len(record) == 1
    file = io.BytesIO()
    with monkeypatch.context() as other:
        other.setattr(pickles, "CURRENT", pickles.WritingVersion("0.0.7"))
        joblib.dump(model, file)
    file.seek(0)
    with pytest.warns(WARNING) as record:
        joblib.load(file)
    assert [warning.filename for warning in record] == [__file__]


def test_the_warning_names_both_versions_and_what_to_do(monkeypatch):
    data = pickled_by("0.0.7", cb.TrainingOptions(refit=False), monkeypatch)
    with pytest.warns(WARNING, match=re.escape("calibayes.load")) as record:
        options = pickle.loads(data)
    assert options.get_params() == cb.TrainingOptions(refit=False).get_params()
    warning = record[0].message
    assert (warning.estimator_name, warning.original_version, warning.current_version) == (
        "TrainingOptions",
        "0.0.7",
        cb.__version__,
    )
    for part in (
        "written by calibayes 0.0.7 and",
        f"loaded by calibayes {cb.__version__}:",
        "calibayes.save",
    ):
        assert part in str(warning)
    assert str(pickle.loads(pickle.dumps(warning))) == str(warning)


def test_output_settings_and_metadata_requests_survive():
    features = cb.LogDensityFeatures().set_output(transform="pandas").fit(*GOOD)
    assert list(COPIES["pickle"](features).transform(GOOD[0]).columns) == list(
        features.get_feature_names_out()
    )
    with sklearn.config_context(enable_metadata_routing=True):
        model = cb.GaussianNB().set_fit_request(sample_weight=True)
        held = COPIES["pickle"](model)
        assert held.get_metadata_routing().fit.requests == {"sample_weight": True}


def test_a_subclass_of_a_user_is_pickled_with_its_own_state(monkeypatch):
    model = Subclass(rule="ml").fit(*GOOD)
    model.note = "mine"
    held, record = loaded(pickled_by("0.0.7", model, monkeypatch))
    assert (held.note, len(record)) == ("MINE", 1)
    assert_same(held, model)


class Subclass(cb.GaussianNB):
    def __getstate__(self):
        state = super().__getstate__()
        return {**state, "note": getattr(self, "note", "").upper()}

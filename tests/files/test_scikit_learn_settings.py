"""Settings that scikit-learn keeps on an estimator come back: the kind of output, and requests of metadata."""

import pytest
import sklearn

import calibayes as cb
from calibayes.files.model_file import apply_settings
from tests.files.cases import counts

X, y = counts()


def loaded(model, path):
    cb.save(model, path)
    return cb.load(path)


def test_kind_of_output(tmp_path):
    model = cb.LogDensityFeatures().set_output(transform="pandas").fit(X, y)
    assert loaded(model, tmp_path / "model").transform(X).equals(model.transform(X))


def test_requests_of_metadata(tmp_path):
    with sklearn.config_context(enable_metadata_routing=True):
        model = cb.GaussianNB().set_fit_request(sample_weight="weight").fit(X, y)
        model.set_score_request(sample_weight=True)
        found = loaded(model, tmp_path / "model")
        assert str(found.get_metadata_routing()) == str(model.get_metadata_routing())


@pytest.mark.parametrize(
    "settings",
    [
        {"output": {"transform": "evil"}},
        {"output": {"predict": "pandas"}},
        {"requests": {"__class__": {}}},
        {"requests": {"fit": {"sample_weight": [1]}}},
        {"requests": {"fit": {"a b": "x y"}}},
        {"other": 1},
        [],
    ],
)
def test_invalid_settings_are_refused(settings):
    with pytest.raises((ValueError, TypeError)):
        apply_settings(cb.GaussianNB(), settings)

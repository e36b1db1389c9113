"""Parameters of a loaded model: as valid as `fit` wants them, and predictions do not fail because of them."""

import numpy as np
import pytest

import calibayes
from calibayes.files import ModelFileError
from tests.files.forging import put_together, taken_apart
from tests.files.fuzz import OUTPUTS
from tests.files.sample_models import NAMES, counts, sample
from tests.seeds import generator

ODD = (
    *(
        None,
        True,
        False,
        -1,
        0,
        2,
        10**300,
        0.5,
        -1.5,
        "x",
        "auto",
        "rc",
        "log_loss",
        [],
        [0.5],
        {},
        {"x": 0},
    ),
    *({"$float": "nan"}, {"$float": "inf"}, {"$list": ["x"]}, {"$pairs": [[0, -1.0]]}, {"$type": "Serial"}),
    *({"$type": "Threads", "jobs": 2}, {"$type": "RC", "step": 0.1}, {"$type": "Never"}),
    {"$estimator": "TrainingOptions", "parameters": {"temperature": -1.0}, "attributes": {}},
)
"""Values that parameters are set to."""
SAMPLES = [name for name in NAMES if not name.endswith("mixed")]


def output(model, rows):
    """Predictions by the first method that there is."""
    return np.asarray(next(getattr(model, name) for name in OUTPUTS if hasattr(model, name))(rows))


USED = ("engine", "n_jobs", "costs")
"""Parameters that predictions use: all values are tried; of the others four each."""


@pytest.mark.parametrize("name", SAMPLES)
def test_odd_parameters_are_refused_or_predict_the_same(name, tmp_path):
    """But for ``costs``, which change decisions, no parameter changes what a fitted model predicts."""
    path, parts, rows = tmp_path / "model.safetensors", taken_apart(sample(name).content), sample(name).rows
    path.write_bytes(sample(name).content)
    expected, loaded, rng = output(calibayes.load(path), rows), 0, generator(9)
    for parameter in parts.model["parameters"]:
        for place in range(len(ODD)) if parameter in USED else rng.integers(len(ODD), size=4):
            changed = parts.copy()
            changed.model["parameters"][parameter] = ODD[place]
            path.write_bytes(put_together(changed))
            try:
                model = calibayes.load(path)
            except ModelFileError:
                continue
            loaded += 1
            np.testing.assert_array_equal(output(model, rows), expected, f"{parameter}={ODD[place]!r}")
            if hasattr(model, "predict"):
                model.predict(rows[:3])
    assert loaded


NOT_CHECKED = {}
WRONG = {
    "engine": 3,
    "n_jobs": 0,
    "rule": "rcc",
    "stop": "x",
    "max_iter": -1,
    "random_state": "x",
    "training": 5,
}
WRONG |= {
    "class_weight": "even",
    "time_limit": -1.0,
    "kept_rows": 0,
    "loss": "x",
    "scoring": "x",
    "lams": 2.0,
}
"""Parameter -> a value that `fit` refuses before it reads rows."""


@pytest.mark.parametrize("name", SAMPLES)
def test_what_fit_refuses_before_it_reads_rows_is_refused_in_a_file(name, tmp_path):
    path, parts, (X, y) = tmp_path / "model.safetensors", taken_apart(sample(name).content), counts()
    for parameter in WRONG.keys() & parts.model["parameters"].keys() - NOT_CHECKED.get(name, set()):
        with pytest.raises((ValueError, TypeError)) as refused:
            getattr(calibayes, name)(**{parameter: WRONG[parameter]}).fit(X, y)
        changed = parts.copy()
        changed.model["parameters"][parameter] = WRONG[parameter]
        path.write_bytes(put_together(changed))
        with pytest.raises(ModelFileError) as error:
            calibayes.load(path)
        assert str(refused.value)[:40] in str(error.value)

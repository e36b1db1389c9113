"""Trees that are grown on a device are those that are grown on the host, to the bit."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone

from calibayes import CalibratedTrees
from calibayes.backends.device import growth
from calibayes.backends.device.array import to_numpy
from calibayes.backends.device.growth import DeviceBlock
from calibayes.kernels.tree_growth import GrowthSettings, forest_scores, grow_forests
from tests.kernels.partitions.growth_tables import assert_same_growth, example, grow_folds, with_folds

SETTINGS = GrowthSettings(trees=4, leaves=9, prior=1.0)
CASES = {
    "two classes, three folds": {"k": 2, "folds": 3},
    "three classes, missing values": {"k": 3, "missing": 0.2},
    "twelve classes": {"n": 700, "k": 12, "missing": 0.1},
    "equal weights": {"k": 2, "weight": 1.0, "sizes": (9, 255, 4, 1, 2, 2, 2, 2, 7, 3)},
}


def sample_of(folds=1, **options):
    """A sample of which each fold holds out other rows."""
    rows = example(**options)
    return with_folds(rows, np.arange(rows.n) % 4 == np.arange(folds)[:, None])


def grow(kind, monkeypatch, sample, **options):
    """Trees grown on the device, by the given kind of rows."""
    monkeypatch.setattr(growth, "device_rows", kind.rows)
    blocks = DeviceBlock(sample.rows, kind.place)
    return grow_forests(blocks, len(sample.rows.held_out), SETTINGS, sample.keys, **options)


@pytest.mark.parametrize("name", CASES)
def test_trees_are_those_of_the_host(kind, monkeypatch, name):
    sample = sample_of(**CASES[name])
    expected = grow_folds(sample, SETTINGS)
    assert all(grown.forest.count for grown in expected.forests)
    assert_same_growth(grow(kind, monkeypatch, sample), expected)


def test_columns_with_directions_are_as_good(kind, monkeypatch):
    sample, direction = sample_of(k=2, n=900), np.array([0, 1, 0], dtype=np.int8)
    expected = grow_folds(sample, SETTINGS, direction=direction)
    assert 1 in expected.forests[0].forest.column
    assert_same_growth(grow(kind, monkeypatch, sample, direction=direction), expected)


def test_predictions_have_the_bits_of_the_host(kind):
    sample = sample_of(k=3, n=2000)
    grown, start = grow_folds(sample, SETTINGS).forests[0], sample.rows.scores()
    expected = forest_scores(sample.rows.columns, grown.forest, grown.log_factor, start)
    there = kind.columns(kind.place, *sample.rows.columns)
    found = to_numpy(there.forest_scores(grown.forest, grown.log_factor, start))
    assert np.ascontiguousarray(found).tobytes() == expected.tobytes()


@pytest.mark.parametrize("k", [2, 3])
def test_calibrated_trees_are_grown_where_the_table_is(monkeypatch, k):
    """The fitted model and its predictions are those of a NumPy array, to the bit; labels and weights are on the host."""
    torch = pytest.importorskip("torch")
    folds = []
    monkeypatch.setattr(
        growth, "DeviceFold", lambda *args, grown=growth.DeviceFold: folds.append(1) or grown(*args)
    )
    rng = np.random.default_rng(k)
    X, weight = rng.normal(size=(900, 4)), rng.integers(1, 3, 900).astype(float)
    y = np.digitize(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=900), [0.0, 1.0][: k - 1])
    model = CalibratedTrees(max_trees=6, max_leaves=7)
    expected = clone(model).fit(X, y, weight)
    with sklearn.config_context(array_api_dispatch=True):
        found = clone(model).fit(torch.asarray(X), y, weight)
        posterior = found.predict_proba(torch.asarray(X))
    assert folds
    assert isinstance(posterior, torch.Tensor)
    assert posterior.numpy().tobytes() == expected.predict_proba(X).tobytes()
    assert found.leaves_.log_factor.tobytes() == expected.leaves_.log_factor.tobytes()
    assert found.leaves_.losses.tobytes() == expected.leaves_.losses.tobytes()

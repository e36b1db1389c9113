"""Every estimator comes back from a file bit for bit, in the same process and in a new one."""

import subprocess
import sys
from functools import cache

import numpy as np
import pytest

import calibayes as cb
from tests.files.cases import CASES, assert_same_bits, outputs

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.xdist_group("round trip"),  # in one process, which fits each model once
]
every_case = pytest.mark.parametrize("name", CASES)

READ_ALL = """
import sys, warnings, pathlib
import numpy as np
import calibayes
from tests.files.cases import CASES, assert_same_bits, outputs
for folder in pathlib.Path(sys.argv[1]).iterdir():
    X, _ = CASES[(folder / "name").read_text()].table()
    model = calibayes.load(folder / "model.safetensors")
    with np.load(folder / "outputs.npz") as expected:
        assert_same_bits(outputs(model, X), dict(expected))
print("same")
"""


@cache
def fitted(name):
    """A fitted model and its rows; saving does not change it."""
    return CASES[name].fitted()


@every_case
def test_bits(name, tmp_path):
    """The loaded model computes the same, and gives the same file: nothing is lost, added or reordered."""
    first, second = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    model, X = fitted(name)
    cb.save(model, first)
    loaded = cb.load(first)
    assert_same_bits(outputs(loaded, X), outputs(model, X))
    cb.save(loaded, second)
    assert first.read_bytes() == second.read_bytes()
    if hasattr(model, "summary"):
        assert loaded.summary() == model.summary()


def test_new_process(tmp_path):
    for number, name in enumerate(CASES):
        folder = tmp_path / str(number)
        folder.mkdir()
        model, X = fitted(name)
        cb.save(model, folder / "model.safetensors")
        (folder / "name").write_text(name)
        np.savez(folder / "outputs.npz", **outputs(model, X))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READ_ALL, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "same\n", done.stderr


@pytest.mark.parametrize("name", ["GaussianNB counts", "NaiveBayes mixed", "TreeAugmentedNB mixed", "levels"])
def test_a_loaded_model_goes_on(name, tmp_path):
    """It can be trained further, merged, explained and sampled like the one that was saved."""
    case = CASES[name]
    model = case.estimator.__class__(**{**case.estimator.get_params(deep=False), "rule": "ml"})
    X, y = case.table()
    model.fit(X, y)
    cb.save(model, tmp_path / "model")
    loaded = cb.load(tmp_path / "model")
    for change in (
        lambda m: m.merge(m),
        lambda m: m.forget(X[:9], y[:9]),
        lambda m: m.with_priors([0.2, 0.3, 0.5]),
        lambda m: m.partial_fit(X, y),
    ):
        expected, found = change(model), change(loaded)
        assert found.predict_proba(X).tobytes() == expected.predict_proba(X).tobytes()
    assert str(loaded.sample(5, random_state=0)) == str(model.sample(5, random_state=0))
    assert np.array_equal(
        loaded.explain(X[:4], random_state=0).contributions,
        model.explain(X[:4], random_state=0).contributions,
    )

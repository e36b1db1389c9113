"""Random changes of a checkpoint: `fit` refuses the file, or trains to valid probabilities; a part of `check.py --fuzz-files`."""

import numpy as np
import pytest

from tests.files import checkpoint_fuzz as fuzz
from tests.seeds import SEED

CASES = 80


@pytest.mark.filterwarnings("ignore")  # of changed numbers
def test_random_changes_are_refused_or_train(tmp_path):
    path, outcomes = tmp_path / "run.safetensors", fuzz.Counter()
    for case in range(CASES):
        name, changes, content = fuzz.changed(SEED, case)
        path.write_bytes(content)
        problem = fuzz.problem(path, name, outcomes, changes[0].startswith(fuzz.WHOLE))
        assert not problem, f"case {case} of seed {SEED}, {name}, {changes}: {problem}"
        path.unlink(missing_ok=True)
    assert outcomes["refused"] > CASES / 3
    assert outcomes["trained"] > CASES / 10


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "other"), [("validation alone", "GDT"), ("GDT", "mini-batches"), ("GDT", "GaussianNB")]
)
def test_trainings_of_another_fit_under_its_fingerprints(name, other, tmp_path):
    """A run of mini-batches has no statistics for the next step, one without held-out rows no validation loss."""
    path, outcomes = tmp_path / "run.safetensors", fuzz.Counter()
    path.write_bytes(fuzz.with_trainings_of(name, other))
    assert fuzz.problem(path, name, outcomes) == ""
    assert outcomes["trained" if other == "GaussianNB" else "refused"] == 1


def test_a_case_follows_from_its_seed_and_number():
    assert fuzz.changed(1, 2) == fuzz.changed(1, 2)
    assert fuzz.changed(1, 2) != fuzz.changed(1, 3)


class Broken:
    """A model whose rows do not sum to one."""

    def predict_proba(self, rows):
        return np.full((len(rows), 2), 0.4)


@pytest.mark.parametrize(
    ("result", "found"),
    [
        (Broken(), "invalid probabilities"),
        (IndexError("x"), "IndexError"),
        (ValueError("x"), "ValueError: x"),
        (ValueError("it cannot be continued"), ""),
    ],
)
def test_what_is_wrong_is_found(result, found, tmp_path, monkeypatch):
    path = tmp_path / "run.safetensors"
    path.write_bytes(b"x")

    def fit(name, path):
        if isinstance(result, Exception):
            raise result
        path.unlink()
        return result

    monkeypatch.setattr(fuzz.checkpoint_cases, "fit", fit)
    problem = fuzz.problem(path, "GaussianNB", fuzz.Counter(), True)
    assert found in problem
    assert bool(found) == bool(problem)

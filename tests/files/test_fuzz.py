"""The search for files that `load` does not refuse finds what it should, and a small part of it runs with the tests."""

import numpy as np
import pytest

import calibayes
from tests.files import fuzz
from tests.files.forging import put_together, taken_apart
from tests.files.mutations import MUTATIONS
from tests.files.sample_models import sample, small_model
from tests.seeds import SEED

CASES = 300


@pytest.mark.filterwarnings("ignore")  # of models with changed numbers that predict
def test_random_changes_are_refused_or_predict(tmp_path):
    path, outcomes = tmp_path / "model.safetensors", fuzz.Counter()
    for case in range(CASES):
        name, mutations, content = fuzz.changed(SEED, case)
        path.write_bytes(content)
        problem = fuzz.problem(path, sample(name).rows, outcomes)
        assert not problem, f"case {case} of seed {SEED}, {name}, {mutations}: {problem}"
    assert outcomes["refused"] > CASES / 2
    assert outcomes["predicted"] > CASES / 20


def test_a_case_follows_from_its_seed_and_number():
    assert fuzz.changed(1, 2) == fuzz.changed(1, 2)
    assert fuzz.changed(1, 2) != fuzz.changed(1, 3)
    assert fuzz.changed(1, 2) != fuzz.changed(2, 2)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_every_mutation_changes_files(mutation):
    content, rng = sample("TreeAugmentedNB mixed").content, np.random.default_rng(0)
    changed = 0
    for _ in range(10):
        parts = taken_apart(content)
        mutation(parts, rng)
        changed += put_together(parts) != content
    assert changed > 0


class Broken:
    """A model whose posterior is what it was given, or raises it."""

    def __init__(self, posterior):
        self.posterior = posterior

    def predict_proba(self, rows):
        if isinstance(self.posterior, Exception):
            raise self.posterior
        return np.array([self.posterior])


@pytest.mark.parametrize(
    ("posterior", "found"),
    [
        ([np.nan, 1.0], "NaN"),
        ([0.5, 0.4], "rows sum to"),
        (IndexError("x"), "IndexError"),
        (ValueError("x"), ""),
        ([0.5, 0.5], ""),
    ],
)
def test_invalid_predictions_are_found(posterior, found, monkeypatch):
    monkeypatch.setattr(calibayes, "load", lambda path: Broken(posterior))
    problem = fuzz.problem("path", None, fuzz.Counter())
    assert found in problem
    assert bool(found) == bool(problem)


@pytest.mark.parametrize("error", [KeyError("x"), ValueError("x"), MemoryError(), RecursionError()])
def test_other_errors_of_load_are_found(error, monkeypatch):
    def load(path):
        raise error

    monkeypatch.setattr(calibayes, "load", load)
    assert type(error).__name__ in fuzz.problem("path", None, fuzz.Counter())


def test_slow_files_are_found(monkeypatch, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(small_model().content)
    monkeypatch.setattr(fuzz, "MOST_SECONDS", 0.0)
    assert fuzz.problem(path, small_model().rows, fuzz.Counter()).startswith("took ")

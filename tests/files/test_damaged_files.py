"""A file with one flipped bit is refused, wherever the bit is."""

import contextlib

import numpy as np
import pytest

import calibayes
from calibayes.files import ModelFileError
from tests.files.sample_models import sample
from tests.seeds import generator

FLIPS = 10_000
NAMES = ("ComplementNB", "GaussianNB", "JointKernelClassifier mixed", "TreeAugmentedNB", "PosteriorMixture")


def flipped_places(size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Bits spread evenly over a file, one in each of ``count`` equal stretches."""
    edges = np.linspace(0, 8 * size, count + 1).astype(int)
    return rng.integers(edges[:-1], np.maximum(edges[1:], edges[:-1] + 1))


@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_bit_is_refused(name, tmp_path):
    content, path = sample(name).content, tmp_path / "model.safetensors"
    path.write_bytes(content)
    calibayes.load(path)
    accepted = []
    with open(path, "r+b", buffering=0) as file:
        for place in flipped_places(len(content), FLIPS // len(NAMES), generator(len(content))).tolist():
            byte = content[place // 8]
            _write_byte(file, place // 8, byte ^ (1 << place % 8))
            with contextlib.suppress(ModelFileError):
                calibayes.load(path)
                accepted.append(place)
            _write_byte(file, place // 8, byte)
    assert accepted == []
    assert path.read_bytes() == content


def _write_byte(file, place: int, byte: int) -> None:
    file.seek(place)
    file.write(bytes([byte]))

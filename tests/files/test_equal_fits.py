"""Equal fits write equal files: nothing in them depends on the clock, the process or the place."""

import os
import subprocess
import sys

import pytest

from tests.files.sample_models import NAMES, sample

SAMPLES = [name for name in NAMES if not name.endswith("mixed")]
ELSEWHERE = ("GaussianNB", "NaiveBayes mixed", "TreeAugmentedNB mixed", "BayesClassifier")
DIGESTS = """
import hashlib, sys
from tests.files.sample_models import sample
print(*(hashlib.sha256(sample(name).content).hexdigest() for name in sys.argv[1:]))
"""


@pytest.mark.parametrize("name", SAMPLES)
def test_equal_fits_write_equal_bytes(name):
    assert sample.__wrapped__(name).content == sample(name).content


def test_another_process_writes_the_same_bytes():
    runs = [
        subprocess.run(
            [sys.executable, "-c", DIGESTS, *ELSEWHERE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert len(set(runs[0].stdout.split())) == len(ELSEWHERE)

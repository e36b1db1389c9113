"""The golden files of all versions, and whether a file predicts what it predicted. Needs no pytest."""

import json
import re
from pathlib import Path

import numpy as np

import calibayes
from tests.golden.stored_tables import table_from_json

FOLDER = Path(__file__).parent
VERSIONS = sorted(folder.name for folder in FOLDER.iterdir() if re.fullmatch(r"\d+\.\d+\.\d+", folder.name))
PRECISION = {"float64": 1e-12, "float32": 1e-6}
"""Largest accepted difference, which is that of the rounding of other processors."""


def stored(version, name):
    return json.loads((FOLDER / version / name).read_text(encoding="utf-8"))


CASES = [(version, case) for version in VERSIONS for case in stored(version, "cases.json")]


def path_of(version, case):
    return FOLDER / version / f"{case['file']}.safetensors"


def assert_predicts_the_same(version, case):
    model = calibayes.load(path_of(version, case))
    assert type(model).__name__ == case["class"]
    X = table_from_json(stored(version, f"{case['table']}.json"))
    expected = np.load(path_of(version, case).with_suffix(".npy"), allow_pickle=False)
    predicted = np.asarray(getattr(model, case["method"])(X))
    assert predicted.dtype == expected.dtype
    precision = PRECISION[expected.dtype.name]
    np.testing.assert_allclose(predicted, expected, rtol=precision, atol=precision)

"""Files that earlier versions have written are loaded, and predict what they predicted then.

The files are written once for each version, by `python -m tests.golden.write VERSION`.
"""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import calibayes
from calibayes.cli import app
from calibayes.files import describe_file
from calibayes.files.registry import ESTIMATORS, FUNCTIONS, VALUES
from tests.files.headers import document_of
from tests.golden import write
from tests.golden.stored_tables import table_from_json, table_to_json

FOLDER = Path(write.__file__).parent
VERSIONS = sorted(folder.name for folder in FOLDER.iterdir() if re.fullmatch(r"\d+\.\d+\.\d+", folder.name))
CURRENT = re.match(r"\d+\.\d+\.\d+", calibayes.__version__)[0]
PRECISION = {"float64": 1e-12, "float32": 1e-6}
"""Largest accepted difference, which is that of the rounding of other processors."""
MOST_BYTES = 1_500_000


def stored(version, name):
    return json.loads((FOLDER / version / name).read_text(encoding="utf-8"))


CASES = [
    pytest.param(version, case, id=f"{version}-{case['file']}")
    for version in VERSIONS
    for case in (stored(version, "cases.json"))
]


def path_of(version, case):
    return FOLDER / version / f"{case['file']}.safetensors"


def names_in(node, tags=("$type", "$estimator", "$function")):
    """The names of classes and functions in a document."""
    if isinstance(node, dict):
        yield from (node[tag] for tag in tags if tag in node)
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for part in parts:
        yield from names_in(part, tags)


@pytest.mark.parametrize(("version", "case"), CASES)
def test_a_golden_file_predicts_what_it_predicted(version, case):
    model = calibayes.load(path_of(version, case))
    assert type(model).__name__ == case["class"]
    X = table_from_json(stored(version, f"{case['table']}.json"))
    expected = np.load(path_of(version, case).with_suffix(".npy"), allow_pickle=False)
    predicted = np.asarray(getattr(model, case["method"])(X))
    assert predicted.dtype == expected.dtype
    precision = PRECISION[expected.dtype.name]
    np.testing.assert_allclose(predicted, expected, rtol=precision, atol=precision)


@pytest.mark.parametrize(("version", "case"), CASES)
def test_inspect_reads_a_golden_file(version, case):
    path = path_of(version, case)
    result = CliRunner().invoke(app, ["inspect", str(path)])
    assert result.exit_code == 0, result.output
    description = describe_file(path)
    assert description.calibayes_version == version
    assert description.estimator == case["class"]


def test_the_current_version_has_golden_files():
    """Write them with `python -m tests.golden.write VERSION`, before the version is released."""
    assert CURRENT in VERSIONS


def test_every_class_of_the_registry_is_in_a_golden_file_of_the_current_version():
    found = set()
    for case in stored(CURRENT, "cases.json"):
        found.update(names_in(document_of(path_of(CURRENT, case))))
    assert {*ESTIMATORS, *VALUES, *FUNCTIONS} <= found


@pytest.mark.parametrize("version", VERSIONS)
def test_a_folder_is_small_and_complete(version):
    files = {file.name: file.stat().st_size for file in (FOLDER / version).iterdir()}
    assert sum(files.values()) < MOST_BYTES
    cases = stored(version, "cases.json")
    expected = {f"{case['file']}.{suffix}" for case in cases for suffix in ("safetensors", "npy")}
    assert set(files) == {"cases.json", *expected, *(f"{case['table']}.json" for case in cases)}


def test_an_existing_folder_is_never_changed():
    with pytest.raises(SystemExit, match="golden files are written once"):
        write.main(calibayes.__version__)


def test_files_of_another_version_cannot_be_written():
    with pytest.raises(SystemExit, match="it cannot write the golden files"):
        write.main("0.0.9")


@pytest.mark.parametrize("case", write.cases().values(), ids=write.cases())
def test_a_stored_table_is_the_table(case):
    X, _ = case.table()
    read = table_from_json(json.loads(json.dumps(table_to_json(X))))
    if isinstance(X, pd.DataFrame):
        pd.testing.assert_frame_equal(read, X)
    else:
        assert read.dtype == X.dtype
        dense = [part.toarray() if hasattr(part, "toarray") else part for part in (read, X)]
        np.testing.assert_array_equal(*dense)

"""Files that earlier versions have written are loaded, and predict what they predicted then.

The files of a version are written by `python -m tests.golden.write VERSION`, and never changed.
"""

import json
import re
import shutil

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
from tests.golden.stored_cases import CASES, FOLDER, VERSIONS, assert_predicts_the_same, path_of, stored
from tests.golden.stored_tables import table_from_json, table_to_json

CURRENT = re.match(r"\d+\.\d+\.\d+", calibayes.__version__)[0]
MOST_BYTES = 2_000_000
every_case = pytest.mark.parametrize(
    ("version", "case"), [pytest.param(*entry, id=f"{entry[0]}-{entry[1]['file']}") for entry in CASES]
)


def names_in(node, tags=("$type", "$estimator", "$function")):
    """The names of classes and functions in a document."""
    if isinstance(node, dict):
        yield from (node[tag] for tag in tags if tag in node)
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for part in parts:
        yield from names_in(part, tags)


@every_case
def test_a_golden_file_predicts_what_it_predicted(version, case):
    assert_predicts_the_same(version, case)


@every_case
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


@pytest.mark.filterwarnings("ignore")
def test_only_missing_cases_are_written(tmp_path):
    folder = tmp_path / CURRENT
    shutil.copytree(FOLDER / CURRENT, folder)
    cases = stored(CURRENT, "cases.json")
    lost = cases.pop(3)["file"]
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    (folder / f"{lost}.npy").unlink()
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert [write.file_name(name) for name in write.add_missing_cases(folder)] == [lost]
    assert write.add_missing_cases(folder) == []
    after = {file.name: file.read_bytes() for file in folder.iterdir()}
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed <= {"cases.json", f"{lost}.npy", f"{lost}.safetensors"}


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

"""`describe_file` tells what a model file contains, from its header alone."""

import os
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import calibayes
from calibayes import (
    BayesClassifier,
    GaussianNB,
    JointKernelClassifier,
    LogUnivariateClassifier,
    ModelFileError,
)
from calibayes.datasets import load_penguins
from calibayes.files import describe_file
from tests.files.headers import header_of, with_document, write_header


@pytest.fixture(scope="module")
def penguins():
    return load_penguins()


@pytest.fixture
def path(tmp_path):
    """A small model file."""
    path = tmp_path / "model.safetensors"
    calibayes.save(GaussianNB(rule="ml").fit([[0.0], [1.0], [1.5], [3.0]], ["no", "no", "yes", "yes"]), path)
    return path


def described(model, folder):
    calibayes.save(model, folder / "model.safetensors")
    return describe_file(folder / "model.safetensors")


def test_class_versions_classes_and_sizes(path):
    found, (header, rest) = describe_file(path), header_of(path)
    assert (found.estimator, found.format_version, found.calibayes_version) == (
        "GaussianNB",
        2,
        calibayes.__version__,
    )
    assert found.classes == ("no", "yes")
    assert found.file_size == path.stat().st_size
    assert found.tensor_size == len(rest)
    assert list(found.tensors) == [name for name in header if name != "__metadata__"]
    assert found.tensors["fitted_.parameters.columns.mean"] == ("F64", (2, 1), 16)
    assert found.kept_rows == 0
    assert found.kept_row_tensors == ()


def test_columns_of_the_training_table(penguins, tmp_path):
    found = described(calibayes.NaiveBayes(rule="ml").fit(penguins.data, penguins.target), tmp_path)
    assert found.rows == 344
    assert [column.name for column in found.columns] == list(penguins.data.columns)
    assert [column.missing for column in found.columns] == penguins.data.isna().sum().tolist()
    kinds = {column.name: column.kind for column in found.columns}
    assert kinds["bill_length_mm"] == "float64"
    assert kinds["island"] in ("string", "object")
    assert kinds["year"] == str(penguins.data["year"].dtype)
    assert "bill_length_mm     float64  2" in str(found)


def test_the_tensors_that_hold_training_rows_are_named(penguins, tmp_path):
    model = BayesClassifier().fit(penguins.data, penguins.target)
    found = described(model, tmp_path)
    assert found.kept_rows == model.kept_rows_ == 344
    assert 344 in {found.tensors[name].shape[0] for name in found.kept_row_tensors}
    assert all(name in str(found) for name in found.kept_row_tensors)


@pytest.mark.parametrize("model", [JointKernelClassifier(), LogUnivariateClassifier()], ids=repr)
def test_the_tensors_that_hold_training_rows_have_as_many_rows(model, penguins, tmp_path):
    X = penguins.data.select_dtypes("number").dropna()
    found = described(model.fit(X, penguins.target[X.index]), tmp_path)
    rows = [found.tensors[name].shape[0] for name in found.kept_row_tensors if "weight" in name]
    assert sum(rows) == found.kept_rows == model.kept_rows_ == len(X)
    assert found.kept_row_tensors[0] in str(found)


def test_a_model_without_rows_names_none(penguins, tmp_path):
    found = described(BayesClassifier(keep_rows=False).fit(penguins.data, penguins.target), tmp_path)
    assert (found.kept_rows, found.kept_row_tensors) == (0, ())


def test_no_tensor_is_read(path):
    """A file whose tensors have a terabyte, as a sparse file."""
    header, _ = header_of(path)
    end = max(entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")
    size = 2**40
    header["huge"] = {"dtype": "U8", "shape": [size], "data_offsets": [end, end + size]}
    write_header(path, header)
    try:
        os.truncate(path, path.stat().st_size + end + size)
    except OSError:
        pytest.skip("the file system has no sparse files of a terabyte")
    tracemalloc.start()
    found = describe_file(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.tensors["huge"].size == size
    assert "1.1 TB" in str(found)
    assert peak < 10_000_000
    with pytest.raises(ModelFileError, match="too large"):
        calibayes.load(path)


def test_a_damaged_tensor_is_not_noticed_and_it_says_so(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert "the checksum of the tensors was not checked" in str(describe_file(path))
    with pytest.raises(ModelFileError, match="checksum of its tensors"):
        calibayes.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda contents: contents.update(classes=3),
        lambda contents: contents.update(classes=[["no"], "yes"]),
        lambda contents: contents.update(rows="many"),
        lambda contents: contents.update(columns=["a", "b"]),
        lambda contents: contents.update(missing=[0.5]),
        lambda contents: contents.update(extra=1),
        lambda contents: contents.pop("kept_rows"),
        lambda contents: contents.update({"class": {"$type": "GaussianNB"}}),
        lambda contents: contents.update(classes={"$array": ["no"], "type": "|O"}),
    ],
)
def test_contents_of_another_form_are_refused(change, path):
    with_document(path, lambda document: change(document["contents"]))
    with pytest.raises(ModelFileError, match="contents"):
        describe_file(path)


def test_a_damaged_header_is_refused(path):
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="checksum of its header"):
        describe_file(path)


def test_text_of_the_file_cannot_change_the_terminal(path):
    def change(document):
        document["calibayes_version"] = "1\x1b[2J\n\u202eevil"
        document["contents"].update(
            {
                "class": "A\x1b]0;title\x07\x9b\r\nB" + "C" * 500,
                "classes": ["[red]no[/red]\ud800", "yes\t\x7f"],
            }
        )

    text = str(describe_file(with_document(path, change)))
    assert all(character.isprintable() or character == "\n" for character in text)
    assert len(text.splitlines()) == len(str(describe_file(path)).splitlines())
    assert max(map(len, text.splitlines())) < 400


def test_wide_tables_are_printed_shortened(tmp_path):
    X = pd.DataFrame(
        np.random.default_rng(0).normal(size=(6, 10_000)), columns=[f"column {j}" for j in range(10_000)]
    )
    found = described(GaussianNB(rule="ml").fit(X, [0, 1] * 3), tmp_path)
    assert len(found.columns) == 10_000
    assert "... and 9980 more" in str(found)
    assert len(str(found)) < 3000


def test_it_prints_well(path):
    lines = str(describe_file(path)).splitlines()
    assert lines[0] == f"{path}: GaussianNB"
    assert lines[1] == f"format 2, written by calibayes {calibayes.__version__}"
    assert lines[2] == "2 classes: no, yes"
    assert lines[-2].endswith(f"file {path.stat().st_size / 1000:.1f} kB")

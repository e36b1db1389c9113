"""The bytes of a file: other readers of the format agree, and tensors are aligned."""

import json

import numpy as np
import pytest
import safetensors
import safetensors.numpy

import calibayes as cb
from calibayes.files import container
from tests.files.cases import counts

X, y = counts()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    cb.save(cb.QuadraticDiscriminantAnalysis(rule="ml").fit(X, y), path)
    return path


def read(path):
    with container.open_file(path, 2**30) as file:
        header = container.read_header(file)
        return header, container.read_tensors(file, header)


def test_the_safetensors_package_reads_the_same_tensors(path):
    theirs, (header, ours) = safetensors.numpy.load_file(path), read(path)
    assert theirs.keys() == ours.keys()
    for name, tensor in ours.items():
        assert theirs[name].dtype == tensor.dtype
        np.testing.assert_array_equal(theirs[name], tensor)
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata()["document"] == header.document


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"header_sha256": "0" * 64}])
def test_other_safetensors_files_are_refused(metadata, tmp_path):
    safetensors.numpy.save_file({"x": np.zeros(3)}, tmp_path / "other", metadata=metadata)
    with pytest.raises(cb.ModelFileError, match=r"not a model file|damaged"):
        cb.load(tmp_path / "other")


def test_tensors_are_aligned(path):
    header, _ = read(path)
    assert header.length % 8 == 0
    for tensor in header.tensors.values():
        assert tensor.first % tensor.dtype.itemsize == 0


def test_every_type_comes_back(tmp_path):
    tensors = {name: np.arange(-3, 3).astype(dtype) for name, dtype in container.TYPES.items()}
    container.write(tmp_path / "file", json.dumps({}), tensors)
    _, found = read(tmp_path / "file")
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        np.testing.assert_array_equal(found[name], tensor)


def test_the_same_model_gives_the_same_bytes(path, tmp_path):
    model = cb.load(path)
    cb.save(model, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()

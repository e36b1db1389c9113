"""Every hostile file is refused with one sentence that says why; nothing else happens."""

import os
import re

import pytest

import calibayes
from calibayes.files import ModelFileError
from tests.files.corpus.write_corpus import FOLDER as CORPUS
from tests.files.corpus.write_corpus import VALID
from tests.files.forging import put_together, taken_apart
from tests.files.hostile_containers import CONTAINERS
from tests.files.hostile_documents import DOCUMENTS
from tests.files.hostile_values import INVALID_VALUES
from tests.files.sample_models import NAMES, sample, small_model

HOSTILE = {**CONTAINERS, **DOCUMENTS}
LONGEST_MESSAGE = 600


def refusal(path) -> str:
    """The message with which a file is refused: one sentence without line breaks and addresses of objects."""
    with pytest.raises(ModelFileError) as raised:
        calibayes.load(path)
    message = str(raised.value)
    assert message.strip()
    assert message.isprintable(), message
    assert len(message) <= LONGEST_MESSAGE, message
    assert not re.search(r"\. [A-Z]| at 0x|Traceback", message), message
    return message.replace(str(path), "FILE")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(HOSTILE[name].make())
    message = refusal(path)
    assert re.search(HOSTILE[name].message, message), message


@pytest.mark.parametrize("name", INVALID_VALUES)
def test_invalid_values_are_refused(name, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(INVALID_VALUES[name]())
    refusal(path)


@pytest.mark.parametrize("name", NAMES)
def test_files_put_together_again_are_valid(name, tmp_path):
    """What refuses a forged file is its change, not the tool that made it."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(put_together(taken_apart(sample(name).content)))
    assert type(calibayes.load(path)).__name__ == name.removesuffix(" mixed")


def test_truncated_files_are_refused(tmp_path):
    content, path = small_model().content, tmp_path / "model.safetensors"
    for length in (*range(200), *range(1024, len(content), 1024), len(content) - 1):
        path.write_bytes(content[:length])
        refusal(path)


def test_a_folder_is_refused(tmp_path):
    assert "is not a file" in refusal(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path):
    os.mkfifo(tmp_path / "model.safetensors")
    assert "is not a file" in refusal(tmp_path / "model.safetensors")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="this system has no /dev/zero")
def test_a_device_is_refused():
    assert "is not a file" in refusal("/dev/zero")


def test_a_missing_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        calibayes.load(tmp_path / "model.safetensors")


def test_files_above_the_limit_are_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(small_model().content)
    with pytest.raises(ModelFileError, match=r"is too large: .* and most_bytes is 100"):
        calibayes.load(path, most_bytes=100)


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.rglob("*.safetensors")))
def test_the_corpus_is_refused(name):
    [path] = CORPUS.rglob(name)
    if name == VALID:
        assert calibayes.load(path).n_features_in_ == 2, "run tests/files/corpus/write_corpus.py again"
    else:
        refusal(path)

"""A model file that is no regular file is refused."""

import os

import pytest

import calibayes
from calibayes import ModelFileError


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="is not a file"):
        calibayes.load(tmp_path / "pipe")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match="is not a file"):
        calibayes.load(tmp_path)

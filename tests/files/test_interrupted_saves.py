"""Whatever interrupts `save`, the path holds the old file or the new one, complete."""

import errno
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import calibayes
from calibayes.core.replaced_file import replaced_file
from tests.faults.file_operations import Interrupted, failing
from tests.files.sample_models import sample
from tests.seeds import generator

KILLS = int(os.environ.get("CALIBAYES_KILLS", "40"))
"""`check.py --fuzz` kills more often."""
OLD, NEW = "PosteriorMixture", "GaussianNB"
MOST = 100
"""More operations than one call of save makes."""
LONGEST_DELAY = 0.08
"""Seconds in which a process saves several times, on a machine that does nothing else."""
MOST_ROUNDS = 6
"""Rounds of kills, each with delays twice as long as the last, until a process has saved both models."""


@pytest.fixture
def files(tmp_path):
    """The files of two models and a folder for another one."""
    for name in (OLD, NEW):
        (tmp_path / f"{name}.safetensors").write_bytes(sample(name).content)
    (tmp_path / "folder").mkdir()
    return tmp_path


def contents(files):
    return [(files / f"{name}.safetensors").read_bytes() for name in (OLD, NEW)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")
def test_a_process_killed_at_any_moment_leaves_a_complete_file(files):
    path, complete = files / "folder/model.safetensors", contents(files)
    command = [sys.executable, "-m", "tests.files.kill_save", path]
    command += [files / f"{name}.safetensors" for name in (OLD, NEW)]
    path.write_bytes(complete[0])
    last, unfinished = [], 0
    with subprocess.Popen(
        list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        for longest in LONGEST_DELAY * 2.0 ** np.arange(MOST_ROUNDS):
            for delay in generator(6).uniform(0.0, longest, KILLS):
                process.stdin.write(f"{delay}\n")
                process.stdin.flush()
                assert process.stdout.readline() == "killed\n"
                last.append(complete.index(path.read_bytes()))
                calibayes.load(path)
                left = len(list(path.parent.glob(".*.part")))
                assert left <= 1, "a save has not removed what a killed process left"
                unfinished += left
            if set(last) == {0, 1} and unfinished:
                break
    assert set(last) == {0, 1}
    assert unfinished > 0, "no process was killed while it wrote"
    calibayes.save(calibayes.load(path), path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def left_by_a_killed_process(path):
    """The part of a file that a process was writing when it ended."""
    before, child = set(path.parent.iterdir()), os.fork()
    if child == 0:
        with replaced_file(path) as file:
            file.write(b"the first half")
            file.flush()
            os._exit(9)
    os.waitpid(child, 0)
    (part,) = set(path.parent.iterdir()) - before
    return part


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")
def test_the_next_file_of_a_path_removes_what_a_killed_process_left(tmp_path):
    path, other = tmp_path / "model", tmp_path / "model-2"
    parts = [left_by_a_killed_process(path) for path in (path, path, other)]
    assert [part.exists() for part in parts] == [
        False,
        True,
        True,
    ]  # the second process has removed the first part
    with replaced_file(path) as first, replaced_file(path) as second:  # what is being written stays
        first.write(b"first")
        second.write(b"second")
    assert path.read_bytes() == b"first"
    assert set(tmp_path.iterdir()) == {path, parts[2]}
    with replaced_file(other):
        pass
    assert set(tmp_path.iterdir()) == {path, other}


def test_many_writers_of_one_path_do_not_disturb_each_other(tmp_path):
    path = tmp_path / "model"

    def write(number):
        with replaced_file(path) as file:
            file.write(bytes([number]) * 10_000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(200)))
    assert len(set(path.read_bytes())) == 1
    assert len(path.read_bytes()) == 10_000
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("interrupts", [False, True], ids=["error", "interruption"])
def test_every_failed_operation_leaves_the_old_file_and_no_part(files, interrupts):
    path, model = files / "folder/model.safetensors", calibayes.load(files / f"{NEW}.safetensors")
    old, new = contents(files)
    failed = []
    for number in range(1, MOST):
        path.write_bytes(old)
        with failing(path.parent, number, interrupts=interrupts) as operations:
            try:
                calibayes.save(model, path)
            except (OSError, Interrupted):
                assert operations.failed
        if not operations.failed:
            break
        failed.append(operations.failed)
        assert path.read_bytes() in (old, new)
        assert [file.name for file in path.parent.iterdir()] == [path.name], f"after {operations.failed}"
    assert path.read_bytes() == new
    assert {"open", "write", "replace"} <= set(failed)


def test_a_full_disk_at_fsync_leaves_the_old_file(files, monkeypatch):
    path, model = files / "folder/model.safetensors", calibayes.load(files / f"{NEW}.safetensors")
    path.write_bytes(contents(files)[0])

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        calibayes.save(model, path)
    assert path.read_bytes() == contents(files)[0]
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o027])
def test_permissions_follow_the_umask(files, mask):
    model, path = calibayes.load(files / f"{NEW}.safetensors"), files / "folder/model.safetensors"
    before = os.umask(mask)
    try:
        calibayes.save(model, path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


@pytest.mark.skipif(os.name != "posix", reason="symbolic links of POSIX")
def test_saving_through_a_symbolic_link_replaces_its_target(files):
    target, link = files / "folder/model.safetensors", files / "link.safetensors"
    target.write_bytes(contents(files)[0])
    link.symlink_to(target)
    calibayes.save(calibayes.load(files / f"{NEW}.safetensors"), link)
    assert link.is_symlink()
    assert target.read_bytes() == contents(files)[1]


def test_a_missing_folder_is_an_error_that_names_the_path(files):
    path = files / "missing/model.safetensors"
    with pytest.raises(FileNotFoundError, match="missing"):
        calibayes.save(calibayes.load(files / f"{NEW}.safetensors"), path)
    assert not path.parent.exists()


def test_a_folder_is_not_replaced_by_a_file(files):
    with pytest.raises(OSError, match="folder"):
        calibayes.save(calibayes.load(files / f"{NEW}.safetensors"), files / "folder")
    assert list((files / "folder").iterdir()) == []

"""Folders that are read-only, full disks, folders in the place of files, odd names: a clear error, nothing lost, no half file."""

import errno
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import calibayes as cb
from calibayes.cli import app
from calibayes.datasets import load
from calibayes.report import report_on_model
from tests.faults.test_files import server

resource = pytest.importorskip("resource", reason="limits of POSIX")
NOBODY = 65534
X = np.random.default_rng(0).normal(size=(60, 3)) + np.arange(60)[:, None] % 2
Y = np.arange(60) % 2
MODEL = cb.GaussianNB(rule="ml").fit(X, Y)
REPORT = report_on_model(MODEL, X, Y)


def run(*words):
    """Run a command; its error is raised."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exit_code:
        assert result.exit_code == 2, result.output
        assert "Traceback" not in result.output
        raise OSError(errno.EIO, result.stderr)


def fit_with_checkpoint(path):
    """A fit that is interrupted, so that the checkpoint stays."""

    def interrupt(progress):
        if progress.update >= 2:
            raise InterruptedError("by the test")

    with suppress(InterruptedError):
        cb.GaussianNB(training=cb.TrainingOptions(checkpoint=path, callbacks=[interrupt])).fit(X, Y)


def beside(path, name):
    """The file of this name beside the folder of the written files."""
    return next(folder / name for folder in path.parents if (folder / "t.csv").exists())


WRITERS = {
    "save": lambda path: cb.save(MODEL, path),
    "checkpoint": fit_with_checkpoint,
    "report": lambda path: REPORT.save(path),
    "calibayes fit": lambda path: run("fit", beside(path, "t.csv"), "--target=y", f"-o{path}", "--model=LDA"),
    "calibayes predict": lambda path: run(
        "predict", beside(path, "m"), beside(path, "t.csv"), f"-o{path}", "--format=csv"
    ),
    "calibayes datasets": lambda path: run("datasets", "penguins", f"-o{path}", "--format=csv"),
}
"""Name -> a call that writes to a path."""


@pytest.fixture
def folder():
    """A folder with a folder, which any user may read, for the files that are written; a table and a model beside it."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    (made / "out").mkdir()
    lines = [",".join(map(str, [*row, label])) for row, label in zip(X.tolist(), Y.tolist(), strict=True)]
    (made / "t.csv").write_text("\n".join(["a,b,c,y", *lines]) + "\n", encoding="utf-8")
    columns = cb.GaussianNB(rule="ml").fit(cb.datasets.load_file(made / "t.csv", "y").data, Y)
    cb.save(columns, made / "m")
    yield made / "out"
    (made / "out").chmod(0o755)
    shutil.rmtree(made)


@contextmanager
def read_only(path):
    """Nobody may write into the folder; for the superuser, permissions are those of another user meanwhile."""
    path.parent.chmod(0o555)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield path
    finally:
        if is_root:
            os.seteuid(0)
        path.parent.chmod(0o755)


@contextmanager
def full(path):
    """No file may become longer than 100 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield path
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def a_folder(path):
    (path.parent / "folder").mkdir()
    yield path.parent / "folder"


@contextmanager
def below_a_file(path):
    yield path / "below"


@contextmanager
def nowhere(path):
    yield path.parent / "missing" / "file"


@contextmanager
def too_long(path):
    yield path.with_name("x" * 300)


OBSTACLES = (read_only, full, a_folder, below_a_file, nowhere, too_long)


def files(folder):
    return {path.name: path.read_bytes() if path.is_file() else None for path in folder.iterdir()}


@pytest.mark.filterwarnings("ignore:the checkpoint .* could not be written:UserWarning")
@pytest.mark.parametrize("obstacle", OBSTACLES, ids=lambda obstacle: obstacle.__name__)
@pytest.mark.parametrize("name", WRITERS)
def test_what_cannot_be_written_is_a_clear_error(name, obstacle, folder):
    path = folder / "old"
    WRITERS[name](folder / "first")  # imports what it needs, which another user may not read
    path.write_bytes(b"old") if name != "checkpoint" else shutil.copy(folder / "first", path)
    with obstacle(path) as target:
        before = files(folder)
        if name == "checkpoint" and obstacle is full:
            WRITERS[name](target)  # goes on with a warning
        else:
            with pytest.raises((OSError, ValueError)) as raised:
                WRITERS[name](target)
            message = str(raised.value).replace("\n", "")
            assert target.name[:100] in message or f"{target.parent}" in message
            assert ".part" not in message
    assert files(folder) == before


ODD = (
    "two\nlines",
    "späß 🐧 中",
    " ",
    "-o",
    "--help",
    "'\"`$(x)",
    "%s{}",
    "..x",
    "x" * 255,
    os.fsdecode(b"\xff\xfe"),
)


@pytest.mark.parametrize("name", WRITERS)
def test_files_of_odd_names_are_as_others(name, folder):
    plain = folder / "plain"
    WRITERS[name](plain)
    expected = plain.read_bytes()
    plain.unlink()
    for odd in ODD:
        WRITERS[name](folder / odd)
        found = files(folder)
        assert list(found) == [odd]
        assert name == "checkpoint" or found[odd] == expected
        if name in ("save", "calibayes fit"):
            assert type(cb.load(folder / odd)).__name__
        (folder / odd).unlink()


@pytest.mark.parametrize("odd", [None, 3, b"\0", "a\0b", ""])
def test_paths_that_no_file_can_have(odd):
    for write in (lambda path: cb.save(MODEL, path), REPORT.save, cb.load):
        with pytest.raises((OSError, ValueError, TypeError)):
            write(odd)


def test_unreadable_files_are_refused(folder):
    path = folder / "model"
    cb.save(MODEL, path)
    path.chmod(0)
    with read_only(path), pytest.raises(PermissionError, match="model"):
        cb.load(path)
    with pytest.raises((OSError, ValueError), match="out"):
        cb.load(folder)


@pytest.mark.parametrize("obstacle", [read_only, full])
def test_a_cache_that_cannot_be_written(obstacle, folder, monkeypatch):
    monkeypatch.delenv("CALIBAYES_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    load("ecoli", opener=server)
    cache = folder / "calibayes"
    before = files(cache)
    with obstacle(cache / "vehicle"), pytest.raises((OSError, ValueError)) as raised:
        load("vehicle", opener=server)
    assert "cannot be reached" not in str(raised.value)
    now = {
        name: content
        for name, content in files(cache).items()
        if not name.endswith((".part", ".arff", ".new"))
    }
    assert now == before
    assert len(load("vehicle", opener=server).data) == 20

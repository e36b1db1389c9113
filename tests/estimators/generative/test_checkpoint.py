"""An interrupted fit is continued by another process to the same bits; what cannot be continued is refused."""

import errno
import itertools
import os
import pickle
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn

import calibayes
from calibayes import (
    CalibratedTrees,
    GaussianNB,
    GenerativeClassifier,
    MixtureDiscriminantAnalysis,
    NaiveBayes,
    PosteriorMixture,
    TradeOffCV,
    TrainingOptions,
)
from calibayes.families import Gaussian
from calibayes.files import checkpoint as checkpoint_file
from calibayes.files import container
from calibayes.learn import NoGain
from calibayes.rules import RC
from tests.estimators.generative.checkpoint_cases import CASES, fit, overlapping, penguins, result
from tests.faults.file_operations import failing
from tests.files.forging import put_together, taken_apart

ROOT = Path(__file__).parents[3]
MODULE = "tests.estimators.generative.checkpoint_cases"
MOST = 60
"""More passes than any case has, and more file operations than a write."""


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch):
    """What is written is read from memory here; that files are flushed is tested with the function that writes them."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


class Interrupted(BaseException):
    """The end of a process."""


def interrupted(path, passes, monkeypatch, call):
    """Whether a fit was ended right after it had written its checkpoint for the given number of passes."""
    written = []

    def write(snapshot, to):
        original(snapshot, to)
        written.append(to)
        if len(written) == passes:
            raise Interrupted

    original = checkpoint_file.write
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint_file, "write", write)
        try:
            call(path)
        except Interrupted:
            return True
    return False


def python(*arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-m", MODULE, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def assert_same(one, other):
    """Bit by bit."""
    assert plain(one) == plain(other)


def plain(found):
    if isinstance(found, dict):
        return {key: plain(value) for key, value in found.items()}
    if isinstance(found, tuple):
        return tuple(map(plain, found))
    return (found.shape, found.dtype.str, found.tobytes()) if isinstance(found, np.ndarray) else repr(found)


ORIGINAL_WRITE = checkpoint_file.write


def copying(folder, name):
    """Writes checkpoints, and keeps a copy of each: the file that a process leaves if it ends after that pass."""
    numbers = itertools.count()

    def write(snapshot, path):
        ORIGINAL_WRITE(snapshot, path)
        shutil.copy(path, folder / f"{name}-{next(numbers):02}.safetensors")

    return write


def continued(folder):
    """Name of a case -> the number of its checkpoints, and the results of a new process that continues from some of them.

    Those of every third pass, beginning with another one in each case, and of the last.
    """
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in CASES:
            monkeypatch.setattr(checkpoint_file, "write", copying(folder, name))
            fit(name, folder / "run")
    numbers = {}
    for start, name in enumerate(CASES):
        checkpoints = sorted(folder.glob(f"{name}-[0-9][0-9].safetensors"))
        numbers[name] = len(checkpoints)
        for skipped in {*checkpoints[:-1]} - {*checkpoints[start % 3 :: 3]}:
            skipped.unlink()
    process = python("continue", folder)
    assert process.returncode == 0, process.stderr
    assert list(folder.glob("*.safetensors")) == [], "a finished fit leaves its checkpoint"
    results = {name: folder.glob(f"{name}-[0-9][0-9].pickle") for name in CASES}
    return {
        name: (numbers[name], [pickle.loads(file.read_bytes()) for file in files])
        for name, files in results.items()
    }


def test_another_process_continues_to_the_same_bits(tmp_path):
    """One process for all cases: `test_after_each_pass` of tests/learn has every pass."""
    for name, (checkpoints, results) in continued(tmp_path).items():
        expected = result(fit(name))
        assert checkpoints >= len(expected["history"]["passes"]), name
        assert len(results) >= checkpoints // 3, name
        for found in results:
            assert_same(found, expected)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_killed_process_is_continued(tmp_path):
    path = tmp_path / "run.safetensors"
    assert python("killed", "GaussianNB", path).returncode == -signal.SIGKILL
    updates = []
    model = fit("GaussianNB", path, [lambda progress: updates.append(progress.update)])
    assert updates == [3, 4]
    assert_same(result(model), result(fit("GaussianNB")))


def stop_at(update, error=None):
    """A callback that ends training at an update, or raises an error there."""

    def call(progress):
        if progress.update == update and error is not None:
            raise error
        return progress.update == update

    return call


def begun(path, update=3, **parameters):
    """Leave the checkpoint of an interrupted fit."""
    with pytest.raises(KeyboardInterrupt):
        fitted(path, callbacks=[stop_at(update, KeyboardInterrupt)], **parameters)
    assert path.exists()


def fitted(path, callbacks=None, data=None, start=None, **parameters):
    training = TrainingOptions(checkpoint=path, callbacks=callbacks, start=start)
    model = GaussianNB(**{"max_iter": 6, "stop": None, **parameters}, training=training)
    return model.fit(*(overlapping() if data is None else data))


@pytest.mark.parametrize("update", range(7))
def test_an_interruption_by_the_user(update, tmp_path):
    path = tmp_path / "run.safetensors"
    begun(path, update)
    assert_same(result(fitted(path)), result(fitted(None)))
    assert not path.exists()


def test_a_training_that_a_callback_has_stopped_stays_stopped(tmp_path, monkeypatch):
    """Also if the process ends before the fit does."""
    path = tmp_path / "run.safetensors"
    expected = result(fitted(None, callbacks=[stop_at(2)]))
    assert interrupted(path, 4, monkeypatch, lambda path: fitted(path, callbacks=[stop_at(2)]))
    assert_same(result(fitted(path)), expected)


def test_what_may_differ(tmp_path):
    path = tmp_path / "run.safetensors"
    begun(path, 3)
    options = {"verbose": 0, "n_jobs": 2, "costs": 1 - np.eye(3), "random_state": 5, "max_iter": 9}
    assert_same(result(fitted(path, **options)), result(fitted(None, max_iter=9)))


def changed_rows(change):
    x, y = overlapping()
    return change(x.copy(), y.copy())


def with_one_cell(x, y):
    x[7, 1] = np.nextafter(x[7, 1], 9.0)
    return x, y


@pytest.mark.parametrize(
    ("what", "parameters"),
    [
        ("rule", {"rule": RC(step=0.1)}),
        ("stop", {"stop": NoGain()}),
        ("start", {"start": "likelihood"}),
        ("classes", {"data": changed_rows(lambda x, y: (x, y + 1))}),
        ("columns", {"data": changed_rows(lambda x, y: (pd.DataFrame(x, columns=list("abc")), y))}),
        ("columns and families and rows", {"data": changed_rows(lambda x, y: (x[:, :2], y))}),
        ("families", {"var_smoothing": 0.1}),
        ("rows", {"data": changed_rows(with_one_cell)}),
        ("rows", {"data": changed_rows(lambda x, y: (x, y, np.arange(len(y)) % 2 + 1.0))}),
        ("rows", {"data": changed_rows(lambda x, y: (x[::-1], y[::-1]))}),
        ("rows", {"data": changed_rows(lambda x, y: (x[:-1], y[:-1]))}),
    ],
)
def test_the_checkpoint_of_another_training_is_refused(what, parameters, tmp_path):
    path = tmp_path / "run.safetensors"
    begun(path)
    content = path.read_bytes()
    with pytest.raises(
        ValueError, match=r"run\.safetensors cannot be continued: .*; delete the file"
    ) as error:
        fitted(path, **parameters)
    differ = str(error.value).partition("with different ")[2].partition(";")[0].split(" and ")
    assert set(what.split(" and ")) & set(differ)
    assert path.read_bytes() == content, "a file that is refused stays"


def test_another_number_of_updates_that_cannot_be_continued(tmp_path):
    path = tmp_path / "run.safetensors"
    begun(path, 6)
    with pytest.raises(
        ValueError, match=r"\(max_iter\) was 6 and is now 9, after 6 updates; delete the file"
    ):
        fitted(path, max_iter=9)
    assert fitted(path).n_iter_ == 6


def truncated(content):
    return content[:-20]


def damaged(content):
    return content[:-8] + bytes(8)


def of_another_version(content):
    parts = taken_apart(content)
    parts.document["calibayes_version"] = "0.0.9"
    return put_together(parts)


def of_a_newer_format(content):
    parts = taken_apart(content)
    parts.document["format_version"] = container.FORMAT_VERSION + 1
    return put_together(parts)


def with_an_unknown_class(content):
    parts = taken_apart(content)
    parts.document["checkpoint"]["$type"] = "Fitted"
    return put_together(parts)


def without_a_state(content):
    parts = taken_apart(content)
    run = parts.document["checkpoint"]["trainings"]["training"]["runs"]["training"]
    del run["candidate"]["value"]["columns"]
    return put_together(parts)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (truncated, "it is truncated"),
        (damaged, "it is damaged"),
        (lambda content: b"", "it is truncated, or not a model file|it is not a model file"),
        (lambda content: b"a,b\n1,2\n" * 40, "it is not a model file"),
        (of_another_version, "it was written by calibayes 0.0.9, and this is"),
        (of_a_newer_format, "it has the newer format"),
        (with_an_unknown_class, "unknown class or function 'Fitted'"),
        (without_a_state, "different names|not the state of a fit"),
    ],
)
def test_a_file_that_is_not_a_complete_checkpoint_is_refused(change, problem, tmp_path):
    path = tmp_path / "run.safetensors"
    begun(path)
    path.write_bytes(change(path.read_bytes()))
    content = path.read_bytes()
    with pytest.raises(
        ValueError, match=rf"cannot be continued: .*({problem}).*; delete the file, or choose"
    ):
        fitted(path)
    assert path.read_bytes() == content


def test_a_model_is_not_a_checkpoint_nor_a_checkpoint_a_model(tmp_path):
    model, run = tmp_path / "model.safetensors", tmp_path / "run.safetensors"
    calibayes.save(fitted(None), model)
    with pytest.raises(ValueError, match="it is a saved model, not the checkpoint of a training; delete"):
        fitted(model)
    begun(run)
    with pytest.raises(calibayes.ModelFileError, match="is the checkpoint of a training, not a saved model"):
        calibayes.load(run)


@pytest.mark.parametrize("name", ["missing/run.safetensors", "folder", "file/run.safetensors"])
def test_a_path_that_cannot_be_written_is_refused_before_training(name, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    seen = []
    with pytest.raises(ValueError, match=r"cannot be read and written: .*; choose a path"):
        fitted(tmp_path / name, callbacks=[seen.append])
    assert seen == []


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everywhere"
)
def test_a_folder_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="Permission denied"):
        fitted(tmp_path / "run.safetensors")


def test_an_invalid_option():
    with pytest.raises(ValueError, match="checkpoint must be the path of a file or None, got 3"):
        fitted(3)


@pytest.mark.parametrize(
    "options", [{"batch_size": 10}, {"validation_fraction": 0.2}, {"start": "random"}, {"start": "bootstrap"}]
)
def test_random_numbers_need_a_random_state(options, tmp_path):
    training = TrainingOptions(checkpoint=tmp_path / "run.safetensors", **options)
    with pytest.raises(ValueError, match="needs a random_state, such as random_state=0"):
        GaussianNB(training=training).fit(*overlapping())


def test_another_random_state_is_another_training(tmp_path):
    path = tmp_path / "run.safetensors"
    training = TrainingOptions(checkpoint=path, batch_size=25, callbacks=[stop_at(2, KeyboardInterrupt)])
    with pytest.raises(KeyboardInterrupt):
        GaussianNB(training=training, random_state=3).fit(*overlapping())
    with pytest.raises(ValueError, match="with different random_state; delete"):
        GaussianNB(training=training, random_state=4).fit(*overlapping())


def test_estimators_of_several_trainings_refuse_a_checkpoint(tmp_path):
    x, y = overlapping()
    base = GaussianNB(training=TrainingOptions(checkpoint=tmp_path / "run.safetensors"))
    for model in (TradeOffCV(base), PosteriorMixture(models=[("nb", base), ("other", GaussianNB())])):
        with pytest.raises(ValueError, match="cannot have a checkpoint, which is of one fit"):
            model.fit(x, y)
    with pytest.raises(ValueError, match="partial_fit cannot have a checkpoint"):
        base.partial_fit(x, y, classes=np.unique(y))
    with pytest.raises(ValueError, match="has no training options"):
        CalibratedTrees(training=base.training).fit(x, y)
    assert list(tmp_path.iterdir()) == []


def test_the_folds_that_choose_components_write_no_checkpoint(tmp_path):
    options = TrainingOptions(checkpoint=tmp_path / "run.safetensors")
    model = MixtureDiscriminantAnalysis(n_components="cv", max_components=2, max_iter=3, stop=None)
    expected = result(model.fit(*overlapping()))
    assert_same(result(model.set_params(training=options).fit(*overlapping())), expected)
    assert list(tmp_path.iterdir()) == []


def test_a_closed_form_reads_and_leaves_no_file(tmp_path):
    path = tmp_path / "run.safetensors"
    fitted(path, rule="ml")
    assert list(tmp_path.iterdir()) == []
    path.write_text("not a checkpoint", encoding="utf-8")
    with pytest.raises(ValueError, match="not a model file"):
        fitted(path, rule="ml")


def fitted_or_refused(path):
    """A fit, or None if it was refused because of an operation that failed."""
    try:
        return fitted(path, max_iter=3)
    except ValueError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        return None


@pytest.mark.filterwarnings("always::UserWarning")
def test_every_failed_file_operation(tmp_path):
    """The fit ends with the same result and a warning, or does not begin; no file is incomplete, and none stays."""
    folder, before = tmp_path / "folder", tmp_path / "before"
    folder.mkdir()
    path, expected = folder / "run.safetensors", result(fitted(None, max_iter=3))
    begun(path, 1, max_iter=3)
    shutil.copytree(folder, before)
    seen = set()
    for number in range(1, MOST):
        shutil.rmtree(folder)
        shutil.copytree(before, folder)
        with (
            failing(folder, number, interrupts=False) as operations,
            warnings.catch_warnings(record=True) as given,
        ):
            found = fitted_or_refused(path)
        if not operations.failed:
            break
        seen.add(operations.failed)
        if found is not None:
            assert_same(result(found), expected)
            assert sum("checkpoint" in str(one.message) for one in given) == 1, operations.failed
        if path.exists():  # it could not be read, or not be removed
            assert_same(result(fitted(path, max_iter=3)), expected)
        assert list(folder.iterdir()) == []
    assert not operations.failed
    assert {"open", "read", "write", "replace", "unlink"} <= seen


def test_a_full_disk_keeps_the_earlier_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.safetensors"
    begun(path, 1)
    earlier, found = path.read_bytes(), []

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    callbacks = [lambda progress: found.append(path.read_bytes())]
    with pytest.warns(UserWarning, match="could not be written .*No space left.* training goes on"):
        model = fitted(path, callbacks=callbacks)
    assert found == [earlier] * 5
    assert_same(result(model), result(fitted(None)))


def test_a_saved_model_does_not_hold_the_path(tmp_path):
    model, path = fitted(tmp_path / "run.safetensors"), tmp_path / "model.safetensors"
    calibayes.save(model, path)
    assert b"run.safetensors" not in path.read_bytes()
    assert calibayes.load(path).training.checkpoint is None
    parts = taken_apart(path.read_bytes())
    parts.model["parameters"]["training"]["parameters"]["checkpoint"] = "/tmp/file"
    path.write_bytes(put_together(parts))
    with pytest.raises(calibayes.ModelFileError, match="has no parameter 'checkpoint'"):
        calibayes.load(path)


def test_models_with_and_without_a_checkpoint_can_be_merged(tmp_path):
    x, y = overlapping()
    one = fitted(tmp_path / "run", data=(x[::2], y[::2]), rule="ml")
    other = fitted(None, data=(x[1::2], y[1::2]), rule="ml")
    assert one.merge(other).n_iter_ == 2


def test_several_families(tmp_path):
    path = tmp_path / "run.safetensors"
    families = [("a", Gaussian(), [0]), ("b", Gaussian(), [1, 2])]

    def call(update=None):
        callbacks = [stop_at(update, KeyboardInterrupt)] if update else None
        training = TrainingOptions(checkpoint=path, callbacks=callbacks)
        return GenerativeClassifier(families=families, max_iter=5, stop=None, training=training).fit(
            *overlapping()
        )

    with pytest.raises(KeyboardInterrupt):
        call(3)
    found = call()
    expected = GenerativeClassifier(families=families, max_iter=5, stop=None).fit(*overlapping())
    assert_same(result(found), result(expected))


@pytest.mark.parametrize("options", [{}, {"validation_fraction": 0.3}], ids=["all rows", "validation"])
def test_a_fit_from_a_file_is_continued(options, tmp_path):
    """In blocks of any size, also by a fit of the same rows in memory."""
    path = tmp_path / "run.safetensors"
    table, target = penguins()
    frame = table.assign(target=target)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    frame.to_parquet(tmp_path / "other.parquet", row_group_size=37)

    def model(update=None):
        callbacks = [stop_at(update, KeyboardInterrupt)] if update else None
        training = TrainingOptions(checkpoint=path, callbacks=callbacks, **options)
        return NaiveBayes(max_iter=4, stop=None, random_state=0, training=training)

    expected = result(model().fit(table, target))
    for source in (
        {"X": tmp_path / "rows.parquet", "y": "target"},
        {"X": tmp_path / "other.parquet", "y": "target"},
        {"X": table, "y": target},
    ):
        with pytest.raises(KeyboardInterrupt):
            model(2).fit(tmp_path / "rows.parquet", y="target")
        assert_same(result(model().fit(**source)), expected)


def test_arrays_on_a_device_are_refused(tmp_path):
    strict = pytest.importorskip("array_api_strict")
    x, y = overlapping()
    training = TrainingOptions(checkpoint=tmp_path / "run.safetensors")
    with (
        sklearn.config_context(array_api_dispatch=True),
        pytest.raises(TypeError, match=r"checkpoint .* cannot be trained with an X on a device"),
    ):
        GaussianNB(training=training).fit(strict.asarray(x), strict.asarray(y))

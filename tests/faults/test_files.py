"""Each file operation fails in turn: no file is lost or incomplete, the error is clear, and the next call succeeds."""

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

import matplotlib.font_manager  # noqa: F401  writes its own cache when it is first loaded
import pytest
from matplotlib.figure import Figure as Drawing

from calibayes.datasets import load, load_file
from calibayes.reproduction.experiment import ResultCache
from calibayes.reproduction.pages import write_page, write_report
from calibayes.reproduction.result_tables import ExperimentReport, Figure, NumberPair, TableRow
from tests.faults.file_operations import Interrupted, failing

MOST = 200
"""More file operations than any call makes."""
ROWS = "".join(f"{number},{'ab'[number % 2]}\n" for number in range(20))
ARFF = "@relation r\n@attribute x numeric\n@attribute class {a,b}\n@data\n" + ROWS


class Response:
    """An answer of a server, in several blocks."""

    status = 200

    def __init__(self, content: bytes) -> None:
        self.blocks = [content[:40], content[40:]]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def read(self, size=None):
        if size is None:
            return b"".join(self.blocks)
        return self.blocks.pop(0) if self.blocks else b""


def server(request):
    """Serves one table under the names of all data sets; it cannot resume downloads."""
    if request.full_url.endswith(".arff"):
        return Response(ARFF.encode())
    md5 = hashlib.md5(ARFF.encode()).hexdigest()
    description = {"url": "https://x.org/r.arff", "md5_checksum": md5, "default_target_attribute": "class"}
    return Response(json.dumps({"data_set_description": description}).encode())


def report(value: float) -> ExperimentReport:
    row = TableRow("one", {"error": NumberPair(value, 0.25, digits=3)})

    def draw():
        drawing = Drawing(figsize=(1, 1))
        drawing.subplots().plot([0, value])
        return drawing

    return ExperimentReport(
        "gdt-2004", "1", "A table", rows=(row,), figures=(Figure("gdt-2004-figure-1", draw),)
    )


class Scenario(NamedTuple):
    """A call whose file operations fail."""

    prepare: Callable[[Any], Any]
    """Writes the files that exist before the call, into a folder."""
    call: Callable[[Any], Any]
    """The call; returns a value that can be compared."""


def content(data):
    return data.data.iloc[:, 0].tolist(), data.target.tolist()


def written(paths):
    return [path.read_bytes() for path in paths]


def csv_file(folder):
    (folder / "t.csv").write_text("x,target\n" + ROWS, encoding="utf-8")
    (folder / "t.csv.gz").write_bytes(gzip.compress(("x,target\n" + ROWS).encode()))


def earlier_downloads(folder):
    load("ecoli", opener=server)
    load("vehicle", opener=server)
    checksums = json.loads((folder / "calibayes/checksums.json").read_text(encoding="utf-8"))
    checksums["vehicle"] = "0" * 64  # of an older version of the data set, which was deleted
    (folder / "calibayes/checksums.json").write_text(json.dumps(checksums), encoding="utf-8")
    (folder / "calibayes/vehicle.csv.gz").unlink()


SCENARIOS = {
    "read a CSV file": Scenario(csv_file, lambda folder: content(load_file(folder / "t.csv", "target"))),
    "read a compressed file": Scenario(
        csv_file, lambda folder: content(load_file(folder / "t.csv.gz", "target"))
    ),
    "first download": Scenario(lambda folder: None, lambda folder: content(load("vehicle", opener=server))),
    "later download": Scenario(earlier_downloads, lambda folder: content(load("vehicle", opener=server))),
    "earlier download": Scenario(
        lambda folder: load("vehicle", opener=server), lambda folder: content(load("vehicle", opener=None))
    ),
    "write a result": Scenario(
        lambda folder: ResultCache(folder / "cache").put("key", {"old": 1}),
        lambda folder: ResultCache(folder / "cache").put("key", {"new": 2}),
    ),
    "read a result": Scenario(
        lambda folder: ResultCache(folder / "cache").put("key", {"old": 1}),
        lambda folder: ResultCache(folder / "cache").get("key"),
    ),
    "write a report": Scenario(
        lambda folder: write_report(report(0.5), folder / "out"),
        lambda folder: written(write_report(report(0.25), folder / "out")),
    ),
    "write a page": Scenario(
        lambda folder: write_page([report(0.5)], folder / "page.md", "command"),
        lambda folder: written([write_page([report(0.25)], folder / "page.md", "command")]),
    ),
}


def files(folder):
    """All files but parts, which no code takes for complete files, by name."""
    parts = (".part", ".new", ".arff")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in parts
    }


def restore(folder, before):
    """Make a folder a copy of another."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(before, folder)


def assert_clear(error):
    """An OSError, or a ValueError about the file whose cause is an OSError, that names the operation."""
    assert isinstance(error, OSError) or (
        isinstance(error, ValueError) and isinstance(error.__cause__, OSError)
    )
    assert "failed" in str(error)
    assert "cannot be reached" not in str(error), (
        f"an error of the disk is taken for one of the network: {error}"
    )


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("interrupts", [False, True], ids=["error", "interruption"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_failed_file_operation(name, interrupts, tmp_path, monkeypatch):
    scenario, folder, before = SCENARIOS[name], tmp_path / "files", tmp_path / "before"
    monkeypatch.delenv("CALIBAYES_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    folder.mkdir()
    scenario.prepare(folder)
    old = files(folder)
    shutil.copytree(folder, before)
    expected = scenario.call(folder)
    complete = files(folder)
    for number in range(1, MOST):
        restore(folder, before)
        with failing(folder, number, interrupts=interrupts) as operations:
            try:
                scenario.call(folder)
            except (OSError, ValueError) as error:
                assert_clear(error)
            except Interrupted:
                pass
            else:
                assert not operations.failed, f"the failed {operations.failed} was not reported"
        now = files(folder)
        where = f"operation {number}, {operations.failed}"
        assert old.keys() <= now.keys(), f"a file is lost after {where}"
        damaged = [file for file, bytes in now.items() if bytes not in (old.get(file), complete.get(file))]
        damaged = [file for file in damaged if not file.endswith("checksums.json")]
        assert damaged == [], f"incomplete files after {where}"
        assert scenario.call(folder) == expected, f"the next call differs after {where}"
        assert files(folder) == complete, f"other files after the next call, {where}"
        if not operations.failed:
            break
    assert 2 <= number < MOST

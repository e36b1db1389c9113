"""The command reproduce on bundled data sets and, where available, on the data sets of the papers."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from calibayes.cli import app
from calibayes.reproduction.author_files import FOLDER_VARIABLE
from calibayes.reproduction.catalog import reproduce, select_experiments
from calibayes.reproduction.experiment import ResultCache, Settings, task_key
from calibayes.reproduction.papers.rc_probabilistic_2024 import UNEXPLAINED
from calibayes.reproduction.result_tables import published_table

INTERRUPTIBLE = """
import signal
from calibayes.cli import app
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore SIGINT
app()
"""


def call(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)], env={"COLUMNS": "160"})


def test_a_table_is_compared_with_the_published_one(tmp_path):
    page = tmp_path / "page.md"
    result = call(
        "rc-probabilistic-2024", "VI", "--datasets", "iris", "--jobs", 1, "--out", tmp_path, "--page", page
    )
    assert result.exit_code == 0, result.output
    assert "1 of 1 data sets agree" in result.output
    assert "| 0.033 / 0.033 | 7 / 7 |" in page.read_text(encoding="utf-8")
    assert (tmp_path / "rc-probabilistic-2024-VI.csv").exists()
    assert "calibayes reproduce rc-probabilistic-2024 VI --datasets iris --page page.md" in page.read_text(
        encoding="utf-8"
    )
    again = call("rc-probabilistic-2024", "VI", "--datasets", "iris", "--out", tmp_path)
    assert again.output == result.output


def test_all_papers_on_one_small_data_set(tmp_path):
    result = call("--quick", "--datasets", "iris", "--trials", 1, "--jobs", 1, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "rc-generative-2025 5: QDA, ML" in result.output
    assert "gdt-2004 1: not run" in result.output


@pytest.mark.parametrize(
    ("paper", "figure", "row"),
    [
        ("rc-generative-2025", "figure-1", "after one update"),
        ("gdt-2004", "figure-1", "uniform chain, 200 rows, priors 1/K"),
        ("slb-2020", "figure-4", "200 rows, upper quartile"),
    ],
)
def test_a_figure_of_a_paper_by_one_command(paper, figure, row, tmp_path):
    result = call(paper, figure, "--quick", "--trials", 1, "--jobs", 1, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert row in result.output
    assert (tmp_path / f"{paper}-{figure}.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-paper"], "unknown paper"),
        (["gdt-2004", "99"], "has no table '99'"),
        (["--datasets", "no-such-set"], "unknown data sets: no-such-set"),
    ],
)
def test_invalid_arguments_are_errors(arguments, message, tmp_path):
    result = call(*arguments, "--out", tmp_path)
    assert result.exit_code == 2
    assert message in result.output


def test_an_interrupted_run_is_resumed(tmp_path, monkeypatch):
    monkeypatch.delenv("CALIBAYES_DATA", raising=False)
    words = ["rc-probabilistic-2024", "--datasets", "iris", "--jobs", "1", "--out"]
    cache, table = tmp_path / "a" / "cache", "rc-probabilistic-2024-IX.csv"
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "reproduce", *words, tmp_path / "a"],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 120
    while not list(cache.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, output = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert b"run the same command again to resume" in output
    finished = {path: path.stat().st_mtime_ns for path in cache.glob("*.json")}
    assert 1 <= len(finished) < 17
    assert not (tmp_path / "a" / table).exists()
    for folder in ("a", "b"):
        assert call(*words, tmp_path / folder).exit_code == 0
    assert (tmp_path / "a" / table).read_bytes() == (tmp_path / "b" / table).read_bytes()
    assert {path: path.stat().st_mtime_ns for path in finished} == finished


def test_most_rows_of_the_papers_tables_agree(data_file, tmp_path, monkeypatch):
    """Tables II, IV and VI on data sets of up to 2,000 rows; every row that does not agree has a reason."""
    data_file("vehicle")
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    experiments = [
        pair for name in ("II", "IV", "VI") for pair in select_experiments("rc-probabilistic-2024", name)
    ]
    reports = reproduce(experiments, Settings(quick=True), ResultCache(tmp_path), jobs=1)
    labels = published_table("rc-probabilistic-2024", "II")
    rows = [row for report in reports for row in report.rows if row.label in labels]
    agreeing = [row for row in rows if not row.reason]
    assert len(rows) == 39
    assert len(agreeing) >= 0.75 * len(rows)  # the larger data sets all agree: 42 of all 51 rows
    assert all(row.reason != UNEXPLAINED for row in rows)


def test_longer_training_is_a_row_of_its_own(data_file):
    """It is compared with the published row of lam 0, counted apart, and has a reason."""
    data_file("vehicle")
    ((_, experiment),) = select_experiments("gdt-2004", "1")
    experiment = replace(experiment, models={"LDA": experiment.models["LDA"]})
    settings = Settings(datasets=("vehicle",), trials=1)
    results = {task_key(task): task.run() for task in experiment.tasks(settings)}
    rows = {row.label: row.pairs["vehicle"] for row in experiment.report(results, settings).rows}
    assert rows["LDA DISC, further"].published == rows["LDA DISC"].published
    assert [label for label, pair in rows.items() if pair.apart] == ["LDA DISC, further"]
    assert rows["LDA CV"].published is None

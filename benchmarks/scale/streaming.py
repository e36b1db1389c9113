"""Training on a Parquet file larger than the memory allowed for it, beside pyarrow's reading and LightGBM in memory.

python -m benchmarks.scale.streaming --rows 30_000_000 --jobs 2

Each measurement runs in its own process. Memory is the peak of resident memory above that of a process that has only
imported what it needs. The rates of passes are printed in the order in which an engine ran them.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[2]
TEST_GROUP = 10_000
"""Number of the first row group of the test rows, which no training table contains."""
UPDATES = 10


def peak_mib() -> float:
    """Peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# -- in processes of their own ---------------------------------------------------------------------------------------


def read_with_pyarrow(path: str, jobs: int) -> dict[str, Any]:
    """Seconds that pyarrow alone takes to read all columns, best of two."""
    import pyarrow as pa
    from pyarrow import parquet

    pa.set_cpu_count(jobs)
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        file = parquet.ParquetFile(path)
        for group in range(file.num_row_groups):
            file.read_row_group(group, use_threads=jobs > 1)
        seconds.append(time.perf_counter() - began)
    return {"seconds": min(seconds), "rows": file.metadata.num_rows}


@dataclass
class Stopwatch:
    """An engine that notes how long each pass of another engine takes."""

    engine: Any
    reading: list[float] = field(default_factory=list)
    training: list[float] = field(default_factory=list)

    def _timed(self, run: Callable[..., Any], function: Any, source: Any) -> Any:
        from calibayes.tables.row_blocks import ArraySource

        began = time.perf_counter()
        result = run(function, source)
        seconds = self.training if isinstance(source, ArraySource) else self.reading
        seconds.append(time.perf_counter() - began)
        return result

    def total(self, function: Any, source: Any) -> Any:
        return self._timed(self.engine.total, function, source)

    def each(self, function: Any, source: Any) -> Any:
        return self._timed(self.engine.each, function, source)


def fit_calibayes(path: str, jobs: int) -> dict[str, Any]:
    """Naive Bayes by ten passes of risk-based calibration, from the file."""
    from calibayes import NaiveBayes
    from calibayes.engines.serial_and_threads import engine_for

    before = peak_mib()
    engine = Stopwatch(engine_for(jobs))
    model = NaiveBayes(rule="rc", max_iter=UPDATES, stop=None, engine=engine, n_jobs=jobs)
    began = time.perf_counter()
    model.fit(path, y="target")
    seconds = time.perf_counter() - began
    memory = peak_mib() - before
    return {
        "seconds": seconds,
        "memory": memory,
        "reading": engine.reading,
        "training": [*engine.training],
        "error": _test_error(lambda table: model.predict(table.drop(["target"]))),
    }


def fit_trees(path: str, jobs: int) -> dict[str, Any]:
    """A hundred calibrated trees, from the file."""
    from calibayes import CalibratedTrees

    return _fitted(CalibratedTrees(max_trees=100, patience=100, n_jobs=jobs), path)


def fit_default(path: str, jobs: int) -> dict[str, Any]:
    """The default classifier, from the file."""
    from calibayes import BayesClassifier

    return _fitted(BayesClassifier(n_jobs=jobs), path)


def _fitted(model: Any, path: str) -> dict[str, Any]:
    before, began = peak_mib(), time.perf_counter()
    model.fit(path, y="target")
    seconds = time.perf_counter() - began
    memory = peak_mib() - before
    error = _test_error(lambda table: model.predict(table.drop(["target"])))
    return {"seconds": seconds, "memory": memory, "error": error}


def fit_lightgbm(path: str, jobs: int) -> dict[str, Any]:
    """LightGBM with its defaults, on the whole table in memory."""
    import lightgbm
    from pyarrow import parquet

    before = peak_mib()
    began = time.perf_counter()
    frame = _categorical(parquet.read_table(path))
    labels = frame.pop("target")
    model = lightgbm.LGBMClassifier(n_jobs=jobs, verbose=-1).fit(frame, labels)
    seconds = time.perf_counter() - began
    memory = peak_mib() - before
    error = _test_error(lambda table: model.predict(_categorical(table).drop(columns="target")))
    return {"seconds": seconds, "memory": memory, "error": error}


def _categorical(table: Any) -> Any:
    """The table as a data frame whose texts are categories, in the same order for every table."""
    import pandas as pd

    from benchmarks.scale.table import LETTERS

    frame = table.to_pandas(strings_to_categorical=True)
    for name in frame.columns[frame.columns.str.startswith("text")]:
        frame[name] = frame[name].cat.set_categories(pd.Index(LETTERS))
    return frame


def _test_error(predict: Callable[[Any], Any]) -> float:
    """Share of test rows that are classified wrongly."""
    from benchmarks.scale.table import some_rows

    table = some_rows(TEST_GROUP, 500_000)
    return float((predict(table) != table["target"].to_numpy(zero_copy_only=False)).mean())


TASKS = {
    "pyarrow": read_with_pyarrow,
    "calibayes": fit_calibayes,
    "trees": fit_trees,
    "default": fit_default,
    "lightgbm": fit_lightgbm,
}


# -- all of them -----------------------------------------------------------------------------------------------------


def in_process(task: str, path: Path, jobs: int) -> dict[str, Any]:
    """The result of a task in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.scale.streaming",
        "--task",
        task,
        str(path),
        "--jobs",
        str(jobs),
    ]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    return result


def named_passes(found: dict[str, Any]) -> list[tuple[str, float]]:
    """What was done in each pass, and its seconds: of the passes over encoded rows the median."""
    if "reading" not in found:
        return []
    labels, sample, columns, *further, encoding = found["reading"]
    passes = [("labels", labels), ("a sample of text", sample), ("columns are counted", columns)]
    passes += [("columns of many numbers, again", seconds) for seconds in further]
    passes.append(("rows are read and encoded", encoding))
    training = found["training"]
    return [*passes, (f"training, median of {len(training)} passes", median(training))]


def report(path: Path, jobs: int, tasks: list[str]) -> None:
    """Run the tasks and print what they measured."""
    reading = in_process("pyarrow", path, jobs)
    rate = reading["rows"] / reading["seconds"]
    print(f"pyarrow alone reads {rate / 1e6:.1f} million rows per second ({jobs} threads)")
    for task in tasks:
        found = in_process(task, path, jobs)
        print(
            f"{task}: {found['seconds']:.0f} s, {found['memory']:,.0f} MiB above a bare import, "
            f"test error {found['error']:.2%}"
        )
        for name, seconds in named_passes(found):
            share = reading["rows"] / seconds / rate
            print(f"  {name:34} {seconds:6.2f} s, {share:5.2f} of pyarrow's rate")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, nargs="?", default=Path("build/scale/table.parquet"))
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--with", dest="peers", default="lightgbm", help="tasks beside calibayes; empty for none"
    )
    parser.add_argument(
        "--quick", action="store_true", help="20,000 rows, trees and the default, without LightGBM"
    )
    parser.add_argument("--task", choices=TASKS, help="run one task here and print its result as JSON")
    options = parser.parse_args()
    if options.task:
        print(json.dumps(TASKS[options.task](str(options.path), options.jobs)))
        return
    from benchmarks.scale.table import write_table

    path, rows = options.path, options.rows
    if options.quick:
        path, rows = path.with_name("quick.parquet"), 20_000
    if not path.exists():
        write_table(path, rows)
    peers = ["trees", "default"] if options.quick else [name for name in options.peers.split(",") if name]
    report(path, options.jobs, ["calibayes", *peers])


if __name__ == "__main__":
    main()

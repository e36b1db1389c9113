"""Rows per second and memory of ``cat table.csv | calibayes predict model.safetensors - > out.csv``.

python -m benchmarks.front.predict_stream            100,000 and 1,000,000 rows of 15 columns
python -m benchmarks.front.predict_stream --quick    2,000 and 10,000 rows

Naive Bayes on seven numbers, three small integers and five texts, two classes. The time of the command includes its start
(imports and the model), which is also measured by a table of one row. The parts are measured in one thread.
"""

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import calibayes
from calibayes.cli.options import expected_of
from calibayes.cli.outputs import TextWriter
from calibayes.cli.predicting import Predictor
from calibayes.streams.text_input import open_table

LEVELS = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta"], dtype=object)
TRAINING_ROWS = 20_000


def rows(n: int, seed: int) -> pd.DataFrame:
    """A table of 15 columns and the target y."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    numbers = {f"number{j}": (rng.normal(size=n) + 0.3 * y).round(3) for j in range(7)}
    counts = {f"count{j}": rng.integers(0, 90, n) + y for j in range(3)}
    moved = [y * (rng.random(n) < 0.3) for _ in range(5)]
    texts = {f"text{j}": LEVELS[rng.integers(0, 5, n) + moved[j]] for j in range(5)}
    return pd.DataFrame({**numbers, **counts, **texts, "y": np.where(y, "yes", "no")})


def write_rows(n: int, path: Path) -> None:
    """Write a table without its target."""
    rows(n, 1).drop(columns="y").to_csv(path, index=False)


def in_another_process(function: Any, *arguments: Any) -> None:
    """Call a function in a process of its own: the memory of a process counts as that of those that it starts."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        pool.submit(function, *arguments).result()


class Run(NamedTuple):
    """Seconds, seconds of all processors and largest memory of a command."""

    seconds: float
    processor_seconds: float
    mebibytes: float


def piped(table: Path, model: Path, output: Path, jobs: int) -> Run:
    """Run the command on standard input, as ``cat table | command > output`` does."""
    words = [sys.executable, "-m", "calibayes", "predict", str(model), "-", "-j", str(jobs)]
    start = time.perf_counter()
    with output.open("wb") as out, subprocess.Popen(["cat", str(table)], stdout=subprocess.PIPE) as source:
        process = subprocess.Popen(words, stdin=source.stdout, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"the command ended with {process.returncode}")
    seconds = time.perf_counter() - start
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def parts(table: Path, model: Path) -> dict[str, float]:
    """Seconds of each part of the work, one after another, in one thread."""
    fitted: Any = calibayes.load(model).set_params(n_jobs=1)
    clock = [time.perf_counter()]
    loaders = list(open_table(str(table), expected_of(fitted)).blocks)
    clock.append(time.perf_counter())
    pieces = [load() for load in loaders]
    clock.append(time.perf_counter())
    predictor = Predictor(fitted, None, None)
    columns = [predictor.columns(piece) for piece in pieces]
    clock.append(time.perf_counter())
    with open(os.devnull, "wb") as nowhere:
        writer = TextWriter(nowhere, tuple(columns[0]), as_json=False)
        for block in columns:
            writer.write(writer.encoded(block))
    clock.append(time.perf_counter())
    names = (
        "reading bytes and cutting them at ends of rows",
        "parsing and coding cells",
        "predicting",
        "writing text",
    )
    return dict(zip(names, np.diff(clock).tolist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    sizes = (1, 2_000, 10_000) if arguments.quick else (1, 100_000, 1_000_000)
    with TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "model.safetensors"
        frame = rows(TRAINING_ROWS // 10 if arguments.quick else TRAINING_ROWS, 0)
        calibayes.save(calibayes.NaiveBayes(rule="ml").fit(frame.drop(columns="y"), frame["y"]), model)
        print("| rows | seconds | rows a second after the start | processor seconds | peak memory |")
        print("| ---: | ---: | ---: | ---: | ---: |")
        start = None
        for n in sizes:
            table = folder / f"{n}.csv"
            in_another_process(write_rows, n, table)
            run = piped(table, model, folder / "out.csv", arguments.jobs)
            start = run if start is None else start
            rate = (
                f"{n / (run.seconds - start.seconds):,.0f}" if run.seconds > start.seconds and n > 1 else ""
            )
            print(
                f"| {n:,} | {run.seconds:.2f} | {rate} | {run.processor_seconds:.2f} | {run.mebibytes:.0f} MiB |"
            )
        for part, seconds in parts(folder / f"{sizes[-1]}.csv", model).items():
            print(f"{part}: {seconds:.2f} s")


if __name__ == "__main__":
    main()

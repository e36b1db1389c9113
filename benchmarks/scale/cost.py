"""A cost model of the passes of a training: checked on files of three sizes, then applied to larger tables.

python -m benchmarks.scale.cost build/scale --rows 1_000_000 5_000_000 30_000_000

A pass over n rows by w workers of one core takes

    n * (bytes read per row / bytes per second + seconds of computing per row) / w        on the workers
    + tasks * seconds per task                                                            in the scheduler
    + (levels of the reduction tree) * (bytes of the sums) / (bytes per second)           in the network

The seconds of computing per row are those of the smallest file. The seconds per task and the rate of the network are
assumptions, which the page states.
"""

import argparse
import math
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.scale.streaming import UPDATES, in_process
from benchmarks.scale.table import write_table

TASK_SECONDS = 5e-4
"""Time of Dask's scheduler for a task; its documentation says 200 microseconds to one millisecond."""
NETWORK = 1.25e9
"""Bytes per second between two workers: ten gigabits."""
STORAGE = 2.5e8
"""Bytes per second and worker from an object store."""
PARTITION_ROWS = 4_000_000
SPLIT_EVERY = 16
FILE_BYTES, ENCODED_BYTES, SUM_BYTES = 88, 20, 2 * 800 * 8
"""Bytes per row in the file and encoded; bytes of the sums: two classes, about 800 bins and levels."""


class Costs(NamedTuple):
    """Seconds of one core per row, in a pass that reads the file and in one over encoded rows."""

    reading: float
    training: float


def measured(folder: Path, rows: int) -> tuple[Costs, dict[str, Any]]:
    """Costs of a file of so many rows, and what was measured."""
    path = folder / f"table-{rows}.parquet"
    if not path.exists():
        write_table(path, rows)
    found = in_process("calibayes", path, 1)
    return Costs(sum(found["reading"]) / rows, median(found["training"]) / rows), found


def pass_seconds(rows: float, workers: int, computing: float, row_bytes: float, rate: float) -> float:
    """Seconds of a pass of a table on workers of one core each."""
    tasks = math.ceil(rows / PARTITION_ROWS) * (1 + 1 / (SPLIT_EVERY - 1))
    levels = math.ceil(math.log(max(tasks, 2), SPLIT_EVERY))
    busy = min(workers, math.ceil(rows / PARTITION_ROWS))
    on_workers = rows * (row_bytes / rate + computing) / busy
    return on_workers + tasks * TASK_SECONDS + levels * SPLIT_EVERY * SUM_BYTES / NETWORK


def report(folder: Path, sizes: list[int]) -> None:
    """Print the check of the model and its predictions as Markdown tables."""
    costs, _ = measured(folder, sizes[0])
    print("| rows | reading passes, predicted | measured | a training pass, predicted | measured |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for rows in sizes:
        found, _ = measured(folder, rows)
        cells = [costs.reading * rows, found.reading * rows, costs.training * rows, found.training * rows]
        print(f"| {rows:,} | " + " | ".join(f"{cell:.2f} s" for cell in cells) + " |")
    print("\n| rows | workers | all reading passes | a training pass | 10 updates in all |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for rows in (1e9, 1e12):
        for workers in (10, 100, 1000):
            reading = pass_seconds(rows, workers, costs.reading, 4 * FILE_BYTES, STORAGE)
            training = pass_seconds(rows, workers, costs.training, ENCODED_BYTES, math.inf)
            total = reading + (UPDATES + 2) * training
            print(f"| {rows:.0e} | {workers} | {_time(reading)} | {_time(training)} | {_time(total)} |")


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/scale"))
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 5_000_000, 30_000_000])
    options = parser.parse_args()
    report(options.folder, options.rows)


if __name__ == "__main__":
    main()

"""Time of a pass of quadratic discriminant analysis: one process, and one and two worker processes of Dask.

    python -m benchmarks.scale.dask_speed [--quick]

Prints the time of the fit, of its first pass (which sends the rows) and of later passes, and whether the statistics are
equal. Passes are those of risk-based calibration. BLAS uses one thread everywhere.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import distributed
import numpy as np

from calibayes import QuadraticDiscriminantAnalysis, TrainingOptions
from calibayes.engines import Dask, Serial, Threads

CLASSES = 10


def rows(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian classes with different means and covariances."""
    random = np.random.default_rng(0)
    y = random.integers(0, CLASSES, n)
    X = random.normal(size=(n, d))
    for label in range(CLASSES):
        mixing = np.eye(d) + random.normal(size=(d, d)) / d
        X[y == label] = X[y == label] @ mixing + random.normal(size=d) / 4
    return X, y


def timed_fit(engine: Any, X: np.ndarray, y: np.ndarray, passes: int) -> tuple[float, list[float], Any]:
    """Seconds of a fit, seconds between its updates, and the fitted model."""
    moments: list[float] = []
    training = TrainingOptions(callbacks=[lambda progress: moments.append(time.perf_counter()) or False])
    model = QuadraticDiscriminantAnalysis(
        rule="rc", max_iter=passes, stop=None, engine=engine, training=training
    )
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start, np.diff([start, *moments]).tolist(), model


@contextmanager
def cluster(processes: int, threads: int) -> Iterator[Dask]:
    """The engine of a cluster of worker processes on this machine."""
    local = distributed.LocalCluster(
        n_workers=processes, threads_per_worker=threads, dashboard_address=":0", memory_limit=0
    )
    with local, distributed.Client(local) as client:
        client.run(_import)  # the time to start workers is not that of a fit
        yield Dask(client)


def _import() -> None:
    import calibayes  # noqa: F401


def report(name: str, result: tuple[float, list[float], Any], reference: Any) -> None:
    seconds, passes, model = result
    difference = max(
        np.max(np.abs(ours - theirs) / (1e-300 + np.abs(theirs).max()))
        for ours, theirs in zip(arrays(model.statistics_), arrays(reference.statistics_), strict=True)
    )
    print(
        f"{name:34} fit {seconds:7.2f} s, before the first update {passes[0]:6.2f} s, later passes "
        f"{np.median(passes[1:]):6.2f} s; largest difference {difference:.1e}",
        flush=True,
    )


def arrays(tree: Any) -> list[np.ndarray]:
    """All arrays of nested mappings."""
    if hasattr(tree, "keys"):
        return [array for name in tree for array in arrays(tree[name])]
    return [np.asarray(tree)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rows and columns: seconds")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--passes", type=int, default=5)
    options = parser.parse_args()
    n, d, passes = (20_000, 32, 3) if options.quick else (options.rows, options.columns, options.passes)
    X, y = rows(n, d)
    print(f"{n} rows x {d} columns x {CLASSES} classes, {passes} updates")
    serial = timed_fit(Serial(), X, y, passes)
    reference = serial[2]
    report("one thread", serial, reference)
    report("two threads", timed_fit(Threads(2), X, y, passes), reference)
    for processes, threads in ((1, 1), (1, 2), (2, 1)):
        with cluster(processes, threads) as engine:
            name = f"Dask, processes {processes}, threads {threads}"
            report(name, timed_fit(engine, X, y, passes), reference)


if __name__ == "__main__":
    main()

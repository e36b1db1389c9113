"""Kill the scheduler, nannies or workers of a Dask cluster during fit, predict and score: an error or the right answer.

    python -m tests.engines.killed_cluster

Each case is a process of its own with a cluster of its own on the loopback interface, whose processes it ends. It must end
within a bounded time: by the same numbers as without Dask, or by an error that names the cluster. Prints a line for each
case; the status is 1 if one is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

ROWS, PARTITIONS, COLUMNS = 2000, 10, 3
WORKERS = 2
SECONDS_PER_BLOCK = 0.15
"""What a block takes at least, so that a pass lasts longer than the delay of the kill."""
CONNECT = "3s"
"""Timeout of connections, 30 s by default."""
WORKER_TIMEOUT = 10.0
"""How long a pass, or the scheduler, waits for workers if there are none."""
MOST_SECONDS = 90
VICTIMS = ("scheduler", "worker", "nanny", "all workers", "all nannies")
ACTIONS = ("fit", "fit lazily", "predict", "score")
RIGHT = {"worker": "answer", "nanny": "answer"}
"""What must happen if not everything is lost: the other worker takes over."""
NAMED = ("Dask", "scheduler", "worker", "cluster", "cancelled")
"""Words of which an error has one; the last is Dask's own, for lazy predictions."""


# -- The cluster: a scheduler, and nannies with a worker each, as processes that can be killed


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]]


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, dict[str, list[subprocess.Popen[bytes]]]]]:
    """Address of a scheduler, and the processes by role; all are gone afterwards."""
    file = folder / "scheduler.json"
    environment = {
        **os.environ,
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": CONNECT,
        # Lazy predictions are computed by Dask, which waits for workers for ever by default.
        "DASK_DISTRIBUTED__SCHEDULER__NO_WORKERS_TIMEOUT": f"{2 * WORKER_TIMEOUT:g}s",
    }
    quiet: dict[str, Any] = {"env": environment, "stderr": subprocess.DEVNULL, "start_new_session": True}
    flags = ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = subprocess.Popen(
        [*_command("scheduler"), *flags, "--port", "0", "--scheduler-file", str(file)], **quiet
    )
    processes = {"scheduler": [scheduler], "nanny": []}
    try:
        while not file.exists() or not file.read_text():
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        options = [*flags, "--nthreads", "1", "--death-timeout", "20", "--local-directory", str(folder)]
        for _ in range(WORKERS):
            processes["nanny"].append(subprocess.Popen([*_command("worker"), address, *options], **quiet))
        yield address, processes
    finally:
        for process in [*processes["nanny"], scheduler]:
            _end_session(process)


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and those that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


# -- A case, in a process of its own


def _slowly(function: Callable[[Any], Any], block: Any) -> Any:
    time.sleep(SECONDS_PER_BLOCK)
    return function(block)


class SlowFunction:
    """A function of blocks that takes a while."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, block: Any) -> Any:
        time.sleep(SECONDS_PER_BLOCK)
        return self.function(block)


class SlowEngine:
    """The Dask engine with slow functions; ``begin`` is called at the second pass."""

    is_distributed = True

    def __init__(self, engine: Any, begin: Callable[[], None]) -> None:
        self.engine, self.begin, self.passes = engine, begin, 0

    def total(self, function: Callable[[Any], Any], source: Any) -> Any:
        self.passes += 1
        if self.passes == 2:
            self.begin()
        return self.engine.total(SlowFunction(function), source)

    def each(self, function: Callable[[Any], Any], source: Any) -> list[Any]:
        return self.engine.each(function, source)


def slow_partition(frame: Any) -> Any:
    time.sleep(SECONDS_PER_BLOCK)
    return frame


def killer(client: Any, processes: dict[str, list[Any]], victim: str) -> Callable[[], None]:
    """A function that kills the victims a moment after it is called."""
    workers = [info["pid"] for info in client.run(_process).values()]
    pids = {
        "scheduler": [process.pid for process in processes["scheduler"]],
        "worker": workers[:1],
        "all workers": workers,
        "nanny": [process.pid for process in processes["nanny"][:1]],
        "all nannies": [process.pid for process in processes["nanny"]],
    }[victim]

    def kill() -> None:
        time.sleep(2 * SECONDS_PER_BLOCK)
        for pid in pids:
            (os.killpg if "nann" in victim else os.kill)(pid, signal.SIGKILL)

    return lambda: Thread(target=kill, daemon=True).start()


def _process() -> dict[str, int]:
    return {"pid": os.getpid()}


def table() -> tuple[Any, Any]:
    import pandas as pd

    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, ROWS)
    columns = rng.normal(size=(ROWS, COLUMNS)) + labels[:, None]
    return pd.DataFrame(columns, columns=[f"x{j}" for j in range(COLUMNS)]), labels


def expected_and_found(action: str, client: Any, begin: Callable[[], None]) -> tuple[Any, Any]:
    """The result of an action without Dask, and with it."""
    import dask.dataframe as dd

    from calibayes import GaussianNB
    from calibayes.backends.dask import engine as dask_engine
    from calibayes.engines import Dask
    from calibayes.tables import row_blocks

    dask_engine.NO_WORKER = WORKER_TIMEOUT
    row_blocks.ArraySource._rows = property(lambda source: ROWS // PARTITIONS)
    X, y = table()
    options = {"max_iter": 3, "stop": None}
    here = GaussianNB(**options).fit(X, y)
    lazy = dd.from_pandas(X.assign(label=y), npartitions=PARTITIONS)
    slow = lazy.map_partitions(slow_partition, meta=lazy._meta)
    if action.startswith("fit"):
        there = GaussianNB(**options, engine=SlowEngine(Dask(client, worker_timeout=WORKER_TIMEOUT), begin))
        there.fit(*((lazy, "label") if action == "fit lazily" else (X, y)))
        return here.predict_proba(X), there.predict_proba(X)
    begin()
    if action == "predict":
        return here.predict_proba(X), here.predict_proba(slow.drop(columns="label")).compute()
    return here.score(X, y), here.score(slow, "label")


def run_case(victim: str, action: str) -> dict[str, Any]:
    """How an action ends while processes are killed."""
    import dask
    import distributed

    dask.config.set({"distributed.comm.timeouts.connect": CONNECT})
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder)) as (address, processes):
        client = distributed.Client(address)
        client.wait_for_workers(WORKERS, timeout=60)
        begin = killer(client, processes, victim)
        start = time.monotonic()
        try:
            expected, found = expected_and_found(action, client, begin)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
            result = {"outcome": "answer"}
        except Exception as error:  # noqa: BLE001 - a report of what happened
            text = f"{type(error).__name__}: {error}"
            result = {"outcome": "error", "text": text[:400]}
        return {**result, "seconds": round(time.monotonic() - start, 1)}


# -- All cases


def tried(victim: str, action: str, most_seconds: float = MOST_SECONDS) -> dict[str, Any]:
    """How a case ended, in a process that is killed if it takes too long."""
    command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, "--case", victim, action]
    begin = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=most_seconds)
    except subprocess.TimeoutExpired:
        _end_session(process)
        return {"outcome": "HANG", "seconds": round(time.monotonic() - begin, 1)}
    lines = output.decode().splitlines()
    return json.loads(lines[-1]) if lines else {"outcome": f"status {process.returncode}"}


def is_right(victim: str, result: dict[str, Any]) -> bool:
    """Whether the answer is right, or an error names the cluster where nothing else was possible."""
    if result["outcome"] == "answer":
        return True
    is_named = any(word in result.get("text", "") for word in NAMED)
    return result["outcome"] == "error" and is_named and RIGHT.get(victim) != "answer"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", nargs=2, metavar=("VICTIM", "ACTION"), help="run one case in this process")
    given = parser.parse_args(arguments)
    if given.case:
        print(json.dumps(run_case(*given.case)), flush=True)
        return 0
    wrong = 0
    for victim in VICTIMS:
        for action in ACTIONS:
            result = tried(victim, action)
            right = is_right(victim, result)
            wrong += not right
            print(f"{'right' if right else 'WRONG'}: {victim}, {action}: {result}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""The interface of an experiment, and a paper as a list of experiments."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol

import joblib
from threadpoolctl import threadpool_limits

import calibayes
from calibayes.core.replaced_file import replaced_file
from calibayes.datasets import find_file, is_local
from calibayes.datasets.download import SOURCES, cached_file, file_checksum
from calibayes.datasets.loading import BUNDLED, cache_folder
from calibayes.reproduction.author_files import author_file
from calibayes.reproduction.procedures import DataEntry
from calibayes.reproduction.result_tables import ExperimentReport, Published, TableRow, published_table

# -- Which data sets to run and how many repetitions ---------------------------------------------------------

QUICK_ROWS = 2000
"""A quick run omits data sets with more rows."""


@dataclass(frozen=True)
class Settings:
    """The extent of a run.

    Parameters
    ----------
    datasets : names, optional
        Run only these data sets, by their names in `calibayes.datasets`.
    trials : int, optional
        Number of repetitions; by default as in the paper.
    quick : bool
        Run only small data sets and few repetitions.
    download : bool
        Download data sets that are not on this computer; by default they are omitted.

    Examples
    --------
    >>> Settings(trials=3).repetitions(100, 2)
    3
    """

    datasets: tuple[str, ...] | None = None
    trials: int | None = None
    quick: bool = False
    download: bool = False

    def select(self, entries: Iterable[DataEntry], rows: dict[str, float]) -> list[DataEntry]:
        """The entries to run; ``rows`` are the published numbers of rows by label."""
        included = [entry for entry in entries if self.includes(entry.name, entry.has_author_file)]
        return [entry for entry in included if not self.quick or rows[entry.row] <= QUICK_ROWS]

    def includes(self, name: str, has_file: bool = False) -> bool:
        """Whether a data set is to be run, and is on this computer (``has_file``: as a file of its own) or may be downloaded."""
        is_selected = self.datasets is None or name in self.datasets
        return is_selected and (has_file or is_local(name) or (self.download and name in SOURCES))

    def repetitions(self, published: int, quick: int) -> int:
        """Number of repetitions, given that of the paper and that of a quick run."""
        return self.trials or (quick if self.quick else published)

    def blocks(self, published: int, quick: int, size: int) -> list[tuple[int, ...]]:
        """The numbers of the repetitions, in blocks of ``size``, each of which is one task."""
        numbers = range(self.repetitions(published, quick))
        return [tuple(numbers[first : first + size]) for first in numbers[::size]]


# -- The unit of computation: a task with a result that is cached under a key --------------------------------

WITHOUT_EFFECT = ("cli", "compare.py", "plots", "testing")
"""Parts of the package that do not affect results."""
COMPUTATIONS = ("author_files.py", "procedures.py", "published_updates.py", "simulations.py")
"""The modules of this folder that affect results."""


class Task(Protocol):
    """A computation; a frozen dataclass, so that equal tasks of several tables are computed once."""

    def inputs(self) -> tuple[str, ...]:
        """Names of the data sets, or of files in the data folder, that the task reads."""

    def run(self) -> dict[str, Any]:
        """The result, in types that JSON can represent."""


def task_key(task: Task) -> str:
    """Key of the cached result: a hash of the task, the data it reads and the code that computes."""
    data = tuple(map(_data_checksum, task.inputs()))
    return str(joblib.hash((type(task).__name__, task, data, code_checksum()), hash_name="sha1"))


def _data_checksum(name: str) -> str:
    """Checksum of the file of a data set; those in the package have none."""
    path = author_file(name)
    if path is not None:
        return _checksum_of(path, path.stat().st_mtime_ns)
    path = find_file(name) or find_file(name, ending="")
    if path is None and name not in BUNDLED:
        path = cached_file(name, cache_folder())
    return "bundled" if path is None else _checksum_of(path, path.stat().st_mtime_ns)


@cache
def _checksum_of(path: Path, modified: int) -> str:
    """Cached by the time of modification, so that each file is read once."""
    return file_checksum(path)


@cache
def code_checksum() -> str:
    """Checksum of the source code that results depend on."""
    root = Path(calibayes.__file__).parent
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
    checksum = hashlib.sha256()
    for name in names:
        top, _, below = name.partition("/")
        if top in WITHOUT_EFFECT or (top == "reproduction" and below not in COMPUTATIONS):
            continue
        checksum.update(name.encode() + (root / name).read_bytes())
    return checksum.hexdigest()


# -- A folder with the results of finished tasks, one JSON file each -----------------------------------------


@dataclass(frozen=True)
class ResultCache:
    """Results by key, in a folder. A file contains ``{"key": key, "result": {...}}``."""

    folder: Path

    def get(self, key: str) -> dict[str, Any] | None:
        """The result of this key, or None if there is none or its file is incomplete or damaged."""
        try:
            content = json.loads(self._path(key).read_bytes())
        except (FileNotFoundError, ValueError, RecursionError):  # ValueError: no JSON, or not in UTF-8
            return None
        return content["result"] if _is_valid(content, key) else None

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Write a result; an interruption leaves no incomplete one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with replaced_file(self._path(key)) as file:
            file.write(json.dumps({"key": key, "result": result}).encode())

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


def _is_valid(content: Any, key: str) -> bool:
    """Whether the content of a file is the result of this key: an object with at least one entry."""
    if not isinstance(content, dict) or content.keys() != {"key", "result"} or content["key"] != key:
        return False
    return isinstance(content["result"], dict) and bool(content["result"])


# -- Compute tasks in several processes and cache each result as soon as it is finished ----------------------

Results = dict[str, dict[str, Any]]
"""Key of a task -> its result."""

SECONDS = "processor seconds"
"""Entry of each result: processor time of the task."""
CHECK_SECONDS = 2.0
"""Time between two checks that no worker process has ended."""


def run_tasks(
    tasks: Sequence[Task], cache: ResultCache, jobs: int, on_finished: Callable[[int], None]
) -> Results:
    """Results of all tasks, from the cache or computed.

    ``on_finished`` is called with the number of tasks finished since the last call. An interruption loses only the
    tasks in progress. A task that raises ValueError has the result ``{"failed": message}``, which is not cached. Raises
    ChildProcessError if a process was killed; the results of finished tasks are cached.
    """
    by_key = {task_key(task): task for task in tasks}
    cached = {key: cache.get(key) for key in by_key}
    results: Results = {key: result for key, result in cached.items() if result is not None}
    on_finished(len(results))
    missing = [(key, task) for key, task in by_key.items() if key not in results]
    if not missing:
        return results
    others = set(multiprocessing.active_children())
    with _worker_pool(min(jobs, len(missing)), others) as pool:
        futures = [pool.submit(_run_task, entry) for entry in missing]
        for key, result in _finished(futures, set(multiprocessing.active_children()) - others):
            if "failed" not in result:
                cache.put(key, result)
            results[key] = result
            on_finished(1)
    return results


@contextmanager
def _worker_pool(jobs: int, others: set[BaseProcess]) -> Iterator[ProcessPoolExecutor]:
    """Worker processes, which are ended without waiting for their tasks if the block is left by an exception."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, _prepare_worker, (dict(os.environ),))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    pool.shutdown()


def _finished(
    futures: Sequence[Future[tuple[str, dict[str, Any]]]], workers: set[BaseProcess]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Keys and results as tasks finish. If a process was killed, finished tasks come first, then the error.

    The pool of Python 3.11 does not notice the end of a process that it started last: the processes are checked, too.
    """
    pending, is_broken = set(futures), False
    while pending and not is_broken:
        done, pending = wait(pending, CHECK_SECONDS, FIRST_COMPLETED)
        for future in done:
            try:
                yield future.result()
            except BrokenProcessPool:
                is_broken = True
        is_broken |= bool(pending) and not done and not all(process.is_alive() for process in workers)
    for future in pending:  # finished between the last check and the end of the pool
        if future.done() and future.exception() is None:
            yield future.result()
    if is_broken:
        raise ChildProcessError(
            "a worker process of the computation ended unexpectedly: it was killed, perhaps for lack of memory. "
            "Finished results are cached: run the same command again to resume, with fewer processes (--jobs) if "
            "memory is short"
        )


def _prepare_worker(environment: dict[str, str]) -> None:
    """One BLAS thread per process; keyboard interrupts are left to the parent process."""
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(1)


def _run_task(key_and_task: tuple[str, Task]) -> tuple[str, dict[str, Any]]:
    key, task = key_and_task
    start = time.process_time()
    try:
        return key, {**task.run(), SECONDS: time.process_time() - start}
    except ValueError as error:
        return key, {"failed": str(error)}


# -- The interface of an experiment, and a paper as a list of experiments ------------------------------------


@dataclass(frozen=True)
class Experiment(ABC):
    """A table or figure of a paper: the tasks to compute, and the report made of their results.

    Examples
    --------
    >>> from calibayes.reproduction import select_experiments
    >>> paper, experiment = select_experiments("gdt-2004", "1")[0]
    >>> experiment.title
    'Test error of LDA, QDA, Balls1 and Balls2 for several lam, mean over trials'
    """

    paper: str
    """Name of the paper."""
    name: str
    """Number of the table or figure in the paper."""
    title: str

    def tasks(self, settings: Settings) -> Sequence[Task]:
        """The tasks whose results the report needs; none if its data are missing or not selected."""
        return [task for group in self.task_groups(settings).values() for task in group]

    @abstractmethod
    def task_groups(self, settings: Settings) -> Mapping[Any, Sequence[Task]]:
        """Part of the report, such as a cell of its table -> the tasks whose results it needs."""

    def results_by_group(self, results: Results, settings: Settings) -> dict[Any, list[dict[str, Any]]]:
        """Part of the report -> the results of its tasks."""
        groups = self.task_groups(settings).items()
        return {part: [results[task_key(task)] for task in group] for part, group in groups}

    @abstractmethod
    def report(self, results: Results, settings: Settings) -> ExperimentReport:
        """The table or figure, compared with the published one."""

    def published(self) -> Published:
        """The published table of the same number."""
        return published_table(self.paper, self.name)

    def report_of(self, rows: Sequence[TableRow], *notes: str, **more: Any) -> ExperimentReport:
        """The report of these rows and notes; ``more`` has its reason and figures."""
        return ExperimentReport(
            self.paper, self.name, self.title, tuple(rows), tuple(filter(None, notes)), **more
        )


@dataclass(frozen=True)
class Paper:
    """A paper and its experiments.

    Examples
    --------
    >>> from calibayes.reproduction import PAPERS
    >>> "gdt-2004" in [paper.name for paper in PAPERS]
    True
    """

    name: str
    title: str
    experiments: tuple[Experiment, ...]
    preface: str = ""
    """Explanation printed before the tables of the paper."""

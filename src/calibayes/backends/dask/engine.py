"""The distributed engine: sums over blocks on the workers of a Dask cluster.

A pass is one graph. The function (model and parameters) is a task whose result is sent to each worker once; blocks are tasks
that are computed once and stay on the workers; the sums are added in a tree that depends on the numbers of the blocks
alone. Everything is recomputable from the graph, so that the loss of a worker changes no bit of the result.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from itertools import chain
from threading import RLock
from typing import Any, ClassVar, Self
from uuid import uuid4

from calibayes.backends.dask.collections import (
    OnWorkers,
    Unhashed,
    client_of,
    is_in_task,
    naming_lost_scheduler,
    unwrapped,
)
from calibayes.core.named_arrays import total
from calibayes.core.protocols import Block, Source
from calibayes.engines.serial_and_threads import Serial, one_thread
from calibayes.kernels.dispatch import as_aligned
from calibayes.kernels.event_counts import is_sparse

# -- Blocks of rows on the workers, which are kept between the passes of a training --------------------------


Graph = dict[Any, Any]
"""Key -> task: a tuple of a function and its arguments, in which keys and futures stand for their results."""

_kept: dict[tuple[int, int], Blocks] = {}
"""(id of a source, id of a client) -> its blocks; an entry is removed with its source."""
_lock = RLock()  # a source may ask for the blocks of another one


@dataclass
class Blocks:
    """The blocks of a source, in the order of the rows. The scheduler can compute each again."""

    futures: Sequence[Any] = ()
    """Blocks on the workers; if there is a graph, keys of tasks in it."""
    graph: Graph = field(default_factory=dict)
    """The tasks of blocks that are dropped after use; empty if they are kept."""
    workers: Sequence[str | None] = ()
    """The worker that each block was given to, None if to no one in particular; empty if Dask has chosen."""

    def release(self) -> None:
        """Remove the blocks from the cluster."""
        if not self.graph:
            for future in self.futures:
                future.release()
        self.futures = ()

    @property
    def are_usable(self) -> bool:
        """Whether there are blocks, none of which has failed or was dropped by the scheduler."""
        has_failed = any(future.status in ("cancelled", "error") for future in self.futures)
        return bool(self.futures) and not has_failed


@contextmanager
def blocks_of(client: Any, source: Source, retries: int) -> Iterator[Blocks]:
    """The blocks of a source. Those on the workers are released with the source, and if an error leaves the context."""
    if isinstance(source, OnWorkers) and source.is_read_once and (parts := source.lazy_parts()) is not None:
        yield Blocks(parts.keys, parts.graph)
        return
    blocks = _kept_blocks(client, source, retries)
    try:
        yield blocks
    except BaseException:
        blocks.release()
        raise


def _kept_blocks(client: Any, source: Source, retries: int) -> Blocks:
    """The blocks that are on the workers already, or new ones."""
    key = id(source), id(client)
    with _lock:
        known = _kept.get(key)
        if known is None:
            known = _kept[key] = Blocks()
            weakref.finalize(source, _forget, key)
        if not known.are_usable:
            known.release()
            _send(client, source, known, retries)
        elif not known.workers and all(future.status == "finished" for future in known.futures):
            # What a function keeps beside a block is lost if another worker gets a copy of the block.
            holders = client.who_has(known.futures)
            known.workers = [next(iter(holders.get(future.key, ())), None) for future in known.futures]
        return known


def _forget(key: tuple[int, int]) -> None:
    if blocks := _kept.pop(key, None):
        blocks.release()


def kept_futures(source: Any) -> Sequence[Any]:
    """The blocks of a source that are on workers already; none if there are none, or some were lost."""
    with _lock:
        found = [blocks for (known, _), blocks in _kept.items() if known == id(source)]
    return found[0].futures if found and found[0].are_usable else ()


def _send(client: Any, source: Source, blocks: Blocks, retries: int) -> None:
    """Compute the blocks: the tasks of the source, or its loaders, which contain the rows if they are in memory."""
    import dask

    if isinstance(source, OnWorkers) and (parts := source.lazy_parts()) is not None:
        blocks.workers, graph, keys = (), parts.graph, list(parts.keys)
    else:
        name, loaders = f"calibayes-block-{uuid4().hex}", list(source.parts())
        blocks.workers = dealt(len(loaders), client.nthreads())
        tasks = {(name, i): (_load, Unhashed(loader, f"{name}-{i}")) for i, loader in enumerate(loaders)}
        graph, keys = layered({}, tasks, {}, blocks.workers), list(tasks)
    # Dask advises against rows in a graph; here they are meant to be there, so that a lost block can be made again.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):
        blocks.futures = client.get(graph, keys, sync=False, retries=retries)


def dealt(number: int, threads: Mapping[str, int]) -> list[str | None]:
    """The worker of each block: consecutive blocks in proportion to the threads of the workers, if there are any yet."""
    turns: list[str | None] = [worker for worker in sorted(threads) for _ in range(threads[worker])]
    return [turns[i * len(turns) // number] if turns else None for i in range(number)]


def layered(before: Graph, parts: Graph, after: Graph, workers: Sequence[str | None]) -> Any:
    """A graph whose tasks for parts of the rows prefer the given workers, one for each; others take over if they are lost.

    Dask alone would not keep the work even: a function that lies on one worker draws tasks there, blocks that are there or
    not. The tasks ``before`` must not depend on parts, and those of parts not on tasks ``after`` them.
    """
    from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

    if not workers:
        return {**before, **parts, **after}
    shares: dict[str | None, Graph] = {}
    for worker, (key, task) in zip(workers, parts.items(), strict=True):
        shares.setdefault(worker, {})[key] = task
    layers = {"before": MaterializedLayer(before), "after": MaterializedLayer(after)}
    for i, (worker, share) in enumerate(shares.items()):
        preference = {"workers": [worker], "allow_other_workers": True} if worker else None
        layers[f"parts-{i}"] = MaterializedLayer(share, annotations=preference)
    names = set(layers) - {"before", "after"}
    return HighLevelGraph(layers, {"before": set(), "after": names} | {name: {"before"} for name in names})


def _load(loader: Unhashed) -> Block:
    return aligned(loader.value())


def aligned(part: Any) -> Any:
    """A block whose numbers are aligned in memory, without a copy if they are; anything else as it is.

    Arrays that come over the network begin at any address, with which products of matrices take much longer.
    """
    if not isinstance(part, Block):
        return part
    columns = {name: _aligned_columns(array) for name, array in part.columns.items()}
    labels, weight, held_out = map(as_aligned, (part.labels, part.weight, part.held_out))
    return Block(columns, labels, weight, held_out, part.first)


def _aligned_columns(columns: Any) -> Any:
    if not is_sparse(columns):
        return as_aligned(columns)
    arrays = columns.data, columns.indices, columns.indptr
    if all(array.flags.aligned for array in arrays):
        return columns
    return type(columns)(tuple(map(as_aligned, arrays)), shape=columns.shape)


# -- Waiting for tasks of a Dask cluster that prefer some workers, whichever workers are lost meanwhile ------
#
# If the last worker of a cluster is lost, the scheduler sets tasks aside that are ready. When another worker arrives, it resumes
# only those that the new worker is preferred for, or that prefer none: the others would wait for ever, although any worker
# may take them (distributed 2026.8, `bulk_schedule_unrunnable_after_adding_worker`).

PATIENCE = 2.0
"""Seconds between two looks at the cluster."""
LOOKS = 2
"""Number of consecutive looks that must find that nothing is computed."""
NO_WORKER = 300.0
"""Seconds without any worker after which waiting ends in an error."""
PREFIX = "calibayes-"
"""Beginning of the names of all tasks of the engine."""


class WaitsForLostWorker(Exception):
    """Tasks wait for a worker that is lost, and no other one computes them."""


def wait_for(client: Any, futures: Any, preferred: set[str], worker_timeout: float) -> None:
    """Return when all futures are finished or one has failed.

    Raises WaitsForLostWorker if nothing is computed and one of the preferred workers is lost, CancelledError if the
    scheduler has dropped the tasks, RuntimeError if there has been no worker for ``worker_timeout`` seconds.
    """
    distributed: Any = import_module("distributed")
    waited, looks, seen = futures if isinstance(futures, list) else [futures], 0, time.monotonic()
    while not any(future.status == "error" for future in waited):
        try:
            with client.as_current():
                distributed.wait(waited, timeout=PATIENCE)
            return
        except TimeoutError:
            workers = client.nthreads()
        seen = time.monotonic() if workers else seen
        if time.monotonic() - seen > worker_timeout:
            raise RuntimeError(
                f"the Dask cluster has had no worker for {worker_timeout:g} s: start workers and call again, or raise "
                "`worker_timeout` of calibayes.engines.Dask"
            )
        looks = looks + 1 if _waits_for_lost_worker(client, workers, preferred) else 0
        if looks == LOOKS:
            raise WaitsForLostWorker


def _waits_for_lost_worker(client: Any, workers: Mapping[str, int], preferred: set[str]) -> bool:
    """Whether a preferred worker is lost and other workers, if there are any, compute no task of the engine."""
    if not workers or preferred <= workers.keys():
        return False
    computed = [key for keys in client.processing().values() for key in keys]
    return not any(PREFIX in str(key) for key in computed)


# -- Memory of Dask workers: temporary arrays of a pass are allocated in memory that was freed before --------

TRIM_VARIABLE = "MALLOC_TRIM_THRESHOLD_"
"""Environment variable of the C library, which Dask sets for its workers."""
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Numbers of the parameters in `mallopt`."""
LARGEST_REUSED = 2**25
"""Arrays of up to so many bytes are allocated in freed memory: the largest value that the C library chooses itself."""


@cache
def reuse_freed_memory() -> None:
    """Let a worker reuse freed memory, as other processes do, at most 64 MB of it; once in a process.

    Dask tells workers to return freed memory to the system at once. Each temporary array of a pass then is a new mapping,
    whose pages are cleared by the system, which can take longer than to compute the array.
    """
    if sys.platform != "linux" or TRIM_VARIABLE not in os.environ:
        return
    set_parameter = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_parameter is not None:  # C libraries other than glibc have none
        set_parameter(MMAP_THRESHOLD, LARGEST_REUSED)
        set_parameter(TRIM_THRESHOLD, 2 * LARGEST_REUSED)


# -- The distributed engine: sums over blocks on the workers of a Dask cluster -------------------------------
#
# A pass is one graph. The function (model and parameters) is a task whose result is sent to each worker once; blocks are tasks
# that are computed once and stay on the workers; the sums are added in a tree that depends on the numbers of the blocks
# alone. Everything is recomputable from the graph, so that the loss of a worker changes no bit of the result.

Plan = Callable[[list[Any]], tuple[Graph, Any]]
"""Keys of the results of all parts -> further tasks, and the key or keys of what is wanted."""


@dataclass(frozen=True)
class Dask:
    """Sums over blocks on the workers of a Dask cluster. Needs the extra ``calibayes[dask]``.

    Rows in memory are sent to the cluster once, in the first pass. Blocks stay on the workers until the training ends. A
    block whose worker is lost is computed again on another one. Sums are added in the order of the blocks, ``split_every``
    at a time: the result is the same, bit for bit, for any number of workers of one kind of processor, and equal to that of
    the other engines up to rounding. Inside a task of a worker, everything is computed there, in the same order.

    Parameters
    ----------
    client : distributed.Client or str, optional
        The client, or the address of a scheduler; by default the current client.
    split_every : int, default=16
        Number of sums that are added in one task.
    retries : int, default=2
        How often the reading of a block is repeated after an error, and a pass after the scheduler was restarted. Lost
        workers do not count: how many of them a task may lose before the pass fails is a setting of the scheduler
        (``distributed.scheduler.allowed-failures``, 3 by default).
    worker_timeout : float, default=300
        Seconds that a pass waits while the cluster has no worker at all; then it fails.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from calibayes.engines import Dask
    >>> model = GaussianNB(engine=Dask())  # fit(X, y) runs on the workers of the current client
    """

    client: Any = None
    split_every: int = 16
    retries: int = 2
    worker_timeout: float = NO_WORKER

    is_distributed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, least in (("split_every", 2), ("retries", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}")
        timeout = vars(self)["worker_timeout"]
        if not isinstance(timeout, int | float) or not timeout > 0:
            raise ValueError(f"worker_timeout must be a positive number of seconds, got {timeout!r}")

    def total(self, function: Callable[[Block], Mapping[str, Any]], source: Source) -> Any:
        """The sum of ``function(block)`` over all blocks, added in a tree of consecutive blocks."""
        if is_in_task():
            return summed_here(Serial().each(function, source), self.split_every)
        return self._computed(_sum_of_part, function, source, lambda keys: summed(keys, self.split_every))

    def each(self, function: Callable[[Block], Any], source: Source) -> list[Any]:
        """``function(block)`` of every block, in the order of the rows."""
        if is_in_task():
            return Serial().each(function, source)
        results = self._computed(_each_of_part, function, source, lambda keys: ({}, keys))
        return list(chain.from_iterable(results))

    def _computed(self, apply: Any, function: Callable[[Block], Any], source: Source, plan: Plan) -> Any:
        """What the plan makes of the function's results; again if the scheduler was restarted or lost all workers."""
        client, problem, restarts = client_of(self.client), None, 0
        from distributed import CancelledError

        while restarts <= self.retries:
            with naming_lost_scheduler(client), blocks_of(client, source, self.retries) as blocks:
                graph, keys = pass_graph(apply, function, blocks, plan)
                try:
                    futures = client.get(graph, keys, sync=False, retries=self.retries if blocks.graph else 0)
                    return gathered(client, futures, blocks.workers, self.worker_timeout)
                except WaitsForLostWorker:
                    blocks.release()
                except CancelledError as error:
                    problem, restarts = error, restarts + 1
                    blocks.release()
        raise RuntimeError(
            f"the Dask scheduler dropped the tasks of a pass {self.retries + 1} times, because it was restarted or closed: "
            "check the cluster and fit again, or raise `retries`"
        ) from problem

    def __deepcopy__(self, memo: Any) -> Self:
        """Itself: engines are immutable, and a client cannot be copied (`sklearn.base.clone` copies parameters)."""
        return self

    def __reduce__(self) -> Any:
        """A pickled engine names the scheduler by its address."""
        client = self.client if isinstance(self.client, str | None) else self.client.scheduler.address
        return type(self), (client, self.split_every, self.retries, self.worker_timeout)


def pass_graph(apply: Any, function: Callable[[Block], Any], blocks: Blocks, plan: Plan) -> tuple[Any, Any]:
    """A graph that applies a function to each part of the rows by ``apply``, then the plan; and the keys of the results."""
    token = uuid4().hex
    name, model = f"calibayes-pass-{token}", f"calibayes-model-{token}"
    parts: Graph = {(name, i): (apply, model, part) for i, part in enumerate(blocks.futures)}
    sent = PackedFunction(import_module("cloudpickle").dumps(function))
    further, keys = plan(list(parts))
    before = {model: (unwrapped, Unhashed(sent, model)), **blocks.graph}
    return layered(before, parts, further, blocks.workers), keys


@dataclass(frozen=True)
class PackedFunction:
    """A function as a pickle, which is unpacked where it is called, once in a process.

    Its arrays are part of the pickle, not sent beside it as Dask would do, so that they are aligned in memory.
    """

    pickled: bytes

    def __call__(self, block: Any) -> Any:
        return self._function(block)

    @cached_property
    def _function(self) -> Callable[[Any], Any]:
        return pickle.loads(self.pickled)

    def __getstate__(self) -> dict[str, Any]:
        return {"pickled": self.pickled}


def summed(keys: Sequence[Any], split_every: int) -> tuple[Graph, Any]:
    """A tree of sums of consecutive results, and the key of the root."""
    name, level = f"calibayes-sum-{uuid4().hex}", 0
    graph: Graph = {}
    while len(keys) > 1:
        groups = enumerate(consecutive(keys, split_every))
        sums = {(name, level, i): (_sum, *group) for i, group in groups}
        graph, keys, level = {**graph, **sums}, list(sums), level + 1
    return graph, keys[0]


def summed_here(trees: Sequence[Mapping[str, Any]], split_every: int) -> Any:
    """The same sum, in this process."""
    while len(trees) > 1:
        trees = [total(group) for group in consecutive(trees, split_every)]
    return trees[0]


def consecutive(items: Sequence[Any], number: int) -> list[Sequence[Any]]:
    """Groups of so many consecutive items; the last may have fewer."""
    return [items[start : start + number] for start in range(0, len(items), number)]


def _results(function: Callable[[Block], Any], part: Block | list[Block]) -> Iterator[Any]:
    """``function(block)`` of each block of a part."""
    reuse_freed_memory()
    with one_thread():
        for block in part if isinstance(part, list) else [part]:
            yield function(aligned(block))


def _sum_of_part(function: Callable[[Block], Any], part: Block | list[Block]) -> Any:
    return total(_results(function, part))


def _each_of_part(function: Callable[[Block], Any], part: Block | list[Block]) -> list[Any]:
    return list(_results(function, part))


def _sum(*trees: Mapping[str, Any]) -> Any:
    return total(trees)


def gathered(
    client: Any, futures: Any, preferred: Sequence[str | None] = (), worker_timeout: float | None = None
) -> Any:
    """The results of futures. Tasks that are not finished are dropped on errors, on Ctrl-C too.

    Raises what `wait_for` does.
    """
    try:
        wait_for(client, futures, {worker for worker in preferred if worker}, worker_timeout or NO_WORKER)
        return client.gather(futures)
    finally:  # the scheduler forgets the tasks of released futures
        for future in futures if isinstance(futures, list) else [futures]:
            future.release()

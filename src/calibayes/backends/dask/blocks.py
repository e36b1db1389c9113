"""Blocks of rows that stay on the workers of a Dask cluster as long as their source lives."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from uuid import uuid4

from calibayes.backends.dask.collections import OnWorkers, Unhashed
from calibayes.core.protocols import Block, Source
from calibayes.kernels.dispatch import as_aligned
from calibayes.kernels.event_counts import is_sparse

Graph = dict[Any, Any]
"""Key -> task: a tuple of a function and its arguments, in which keys and futures stand for their results."""

_kept: dict[tuple[int, int], Blocks] = {}
"""(id of a source, id of a client) -> its blocks; an entry is removed with its source."""
_lock = Lock()


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
        return bool(self.futures) and all(
            future.status not in ("cancelled", "error") for future in self.futures
        )


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
        return known


def _forget(key: tuple[int, int]) -> None:
    blocks = _kept.pop(key, None)
    if blocks is not None:
        blocks.release()


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
    block: Block = aligned(loader.value())
    return block


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


def cancelled() -> type[BaseException]:
    """The error of a future whose task was dropped by the scheduler."""
    from distributed import CancelledError

    error: type[BaseException] = CancelledError
    return error

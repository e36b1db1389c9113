"""Blocks of rows that stay on the workers of a Dask cluster as long as their source lives."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from uuid import uuid4

from calibayes.core.block import Block
from calibayes.core.protocols import Source
from calibayes.kernels.dispatch import as_aligned
from calibayes.kernels.numbers.sparse import is_sparse
from calibayes.tables.dask_collections import LazyParts, OnWorkers, Unhashed

_kept: dict[tuple[int, int], Blocks] = {}
"""(id of a source, id of a client) -> its blocks; an entry is removed with its source."""
_lock = Lock()


@dataclass
class Blocks:
    """The blocks of a source, in the order of the rows. The scheduler can compute each again."""

    futures: Sequence[Any] = ()
    """Blocks on the workers; if there is a graph, keys of tasks in it."""
    graph: dict[Any, Any] = field(default_factory=dict)
    """The tasks of blocks that are dropped after use; empty if they are kept."""

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
            known.futures = _sent(client, _lazy_parts(source), retries)
        return known


def _forget(key: tuple[int, int]) -> None:
    blocks = _kept.pop(key, None)
    if blocks is not None:
        blocks.release()


def _lazy_parts(source: Source) -> LazyParts:
    """Tasks that make the blocks of a source: its own, or its loaders, which contain the rows if they are in memory."""
    if isinstance(source, OnWorkers) and (parts := source.lazy_parts()) is not None:
        return parts
    name = f"calibayes-block-{uuid4().hex}"
    loaders = enumerate(source.parts())
    graph = {(name, i): (_load, Unhashed(loader, f"{name}-{i}")) for i, loader in loaders}
    return LazyParts(graph, list(graph))


def _sent(client: Any, parts: LazyParts, retries: int) -> list[Any]:
    """Futures of the blocks. Rows in memory are sent here, once."""
    import dask

    # Dask advises against rows in a graph; here they are meant to be there, so that a lost block can be made again.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):
        futures: list[Any] = client.get(parts.graph, list(parts.keys), sync=False, retries=retries)
    return futures


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

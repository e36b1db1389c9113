"""Blocks of rows that stay on the workers of a Dask cluster as long as their source lives."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any
from uuid import uuid4

from calibayes.core.block import Block
from calibayes.core.protocols import Source

_kept: dict[tuple[int, int], Blocks] = {}
"""(id of a source, id of a client) -> its blocks; an entry is removed with its source."""
_lock = Lock()


@dataclass(frozen=True)
class Unhashed:
    """A value in a graph that Dask identifies by a name, since hashing its contents takes longer than sending them."""

    value: Any
    name: str

    def __dask_tokenize__(self) -> str:
        return self.name


@dataclass
class Blocks:
    """Futures of the blocks of a source, in the order of the rows. The scheduler can compute each again."""

    futures: list[Any]

    def release(self) -> None:
        """Remove the blocks from the cluster."""
        for future in self.futures:
            future.release()
        self.futures = []

    @property
    def are_usable(self) -> bool:
        """Whether no block has failed or was dropped by the scheduler."""
        return bool(self.futures) and all(
            future.status not in ("cancelled", "error") for future in self.futures
        )


@contextmanager
def kept_blocks(client: Any, source: Source, retries: int) -> Iterator[Blocks]:
    """The blocks of a source on the workers. They are released with the source, and if an error leaves the context."""
    blocks = _blocks_of(client, source, retries)
    try:
        yield blocks
    except BaseException:
        blocks.release()
        raise


def _blocks_of(client: Any, source: Source, retries: int) -> Blocks:
    """The blocks that are kept already, or new ones."""
    key = id(source), id(client)
    with _lock:
        known = _kept.get(key)
        if known is None:
            known = _kept[key] = Blocks([])
            weakref.finalize(source, _forget, key)
        if not known.are_usable:
            known.release()
            known.futures = _sent(client, source, retries)
        return known


def _forget(key: tuple[int, int]) -> None:
    blocks = _kept.pop(key, None)
    if blocks is not None:
        blocks.release()


def _sent(client: Any, source: Source, retries: int) -> list[Any]:
    """Tasks that load the blocks of a source. Loaders travel in the graph: rows in memory are sent here, once."""
    import dask

    name = f"calibayes-block-{uuid4().hex}"
    loaders = enumerate(source.parts())
    graph = {(name, i): (_load, Unhashed(loader, f"{name}-{i}")) for i, loader in loaders}
    # Dask advises against rows in a graph; here they are meant to be there, so that a lost block can be made again.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):
        futures: list[Any] = client.get(graph, list(graph), sync=False, retries=retries)
    return futures


def _load(loader: Unhashed) -> Block:
    block: Block = loader.value()
    return block


def cancelled() -> type[BaseException]:
    """The error of a future whose task was dropped by the scheduler."""
    from distributed import CancelledError

    error: type[BaseException] = CancelledError
    return error

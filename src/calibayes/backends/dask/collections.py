"""Dask data frames and arrays, recognized without an import of Dask, and tasks of Dask that make blocks of rows."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable


class LazyParts(NamedTuple):
    """Tasks that make the parts of a source, in the order of the rows."""

    graph: dict[Any, Any]
    """Key -> task: a tuple of a function and its arguments, or a task as Dask makes them."""
    keys: Sequence[Hashable]
    """The keys of the parts; a part is a block or a list of blocks."""
    places: Sequence[tuple[int, int]] = ()
    """First row and number of rows of each part, where they are known."""


@runtime_checkable
class OnWorkers(Protocol):
    """Optional ability of a source: its parts can be made by tasks of Dask, on the workers."""

    def lazy_parts(self) -> LazyParts | None:
        """The tasks; None if the parts of this source are made in this process."""

    @property
    def is_read_once(self) -> bool:
        """Whether parts are dropped as soon as they were used; otherwise they stay on the workers between passes."""


@dataclass(frozen=True)
class Unhashed:
    """A value in a graph that Dask identifies by a name, since hashing its contents takes longer than sending them."""

    value: Any
    name: str

    def __dask_tokenize__(self) -> str:
        return self.name


def unwrapped(wrapped: Unhashed) -> Any:
    """The value."""
    return wrapped.value


# -- The client of a Dask cluster, from what the user gave ---------------------------------------------------

_opened: dict[str, Any] = {}
"""Clients opened for an address, until the process ends."""


def is_in_task() -> bool:
    """Whether this code is run by a task of a Dask worker."""
    if (distributed := sys.modules.get("distributed")) is None:
        return False
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True


def has_current_client() -> bool:
    """Whether this process has opened a client of a Dask cluster, and is none of its workers."""
    client = None if is_in_task() else _current()
    return client is not None and client.status == "running"


def _current() -> Any:
    """The client of this process, None if there is none."""
    if (distributed := sys.modules.get("distributed")) is None:
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None


def client_of(given: Any) -> Any:
    """The client given, that of an address, or the current one.

    Raises ImportError without the package, ValueError without a client and RuntimeError if it is closed.
    """
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            "the Dask engine needs the packages dask and distributed: pip install 'dask[dataframe,distributed]'"
        ) from error
    if given is None:
        client = _current()
    elif isinstance(given, str):
        client = _at_address(distributed, given)
    elif isinstance(given, distributed.Client):
        client = given
    else:
        raise ValueError(
            f"client must be a distributed.Client, the address of a scheduler or None, got {given!r}"
        )
    if client is None:
        raise ValueError(
            "there is no Dask client: open one, for example distributed.Client() for this machine, or pass Dask(client) or "
            "Dask('tcp://address-of-the-scheduler:8786')"
        )
    if client.status not in ("running", "connecting"):
        raise RuntimeError(
            f"the Dask client is {client.status}: open a new one, distributed.Client(address), and pass it"
        )
    return client


@contextmanager
def naming_lost_scheduler(client: Any) -> Iterator[None]:
    """Raises RuntimeError for an error inside if the connection of the client to its scheduler is lost."""
    address = client.scheduler.address
    try:
        yield
    except Exception as error:
        connection = client.scheduler_comm
        if client.status == "running" and connection is not None and not connection.comm.closed():
            raise
        raise RuntimeError(
            f"the connection to the Dask scheduler at {address} was lost, because it was closed or killed or cannot be "
            "reached: check the cluster, open a new client and call again"
        ) from error


def client_of_collections() -> Any:
    """The client that computes Dask collections here; None if threads or this thread do, or if this is a task."""
    get = importlib.import_module("dask.base").get_scheduler()
    client = getattr(get, "__self__", None)
    return None if is_in_task() or not hasattr(client, "scheduler_comm") else client


def _at_address(distributed: Any, address: str) -> Any:
    """A client of a scheduler: the current one if it has this address, else one that is opened once."""
    current = _current()
    if current is not None and current.scheduler.address == address:
        return current
    known = _opened.get(address)
    if known is None or known.status != "running":
        known = _opened[address] = distributed.Client(address, set_as_default=False)
    return known

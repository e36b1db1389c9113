"""Dask data frames and arrays, recognized without an import of Dask, and tasks of Dask that make blocks of rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
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


def dask_kind(data: Any) -> str | None:
    """ "frame", "series" or "array" for a Dask collection, None for anything else."""
    module, name = type(data).__module__, type(data).__name__
    if not module.startswith("dask."):
        return None
    if module.startswith("dask.array"):
        return "array"
    return {"DataFrame": "frame", "Series": "series"}.get(name)

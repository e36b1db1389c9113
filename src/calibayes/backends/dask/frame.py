"""Dask data frames and arrays as streams: a chunk is a partition, which workers can read, encode and keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from itertools import accumulate
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np

from calibayes.backends.dask.collections import (
    LazyParts,
    Unhashed,
    client_of_collections,
    naming_lost_scheduler,
    unwrapped,
)
from calibayes.backends.dask.engine import gathered
from calibayes.core.notices import counted, listed
from calibayes.core.protocols import Array, Block
from calibayes.streams.chunks import Chunk, read_twice
from calibayes.streams.streamed_rows import Encoding, SelectedChunks, SelectedRows, compact
from calibayes.tables.origin import FROM_ARRAY, Origin
from calibayes.tables.read import (
    array_names,
    dask_kind,
    names_beyond,
    read_array,
    read_frame,
    refuse_duplicate_names,
)
from calibayes.tables.row_blocks import ArraySource
from calibayes.tables.table import Table


@dataclass(frozen=True, eq=False)
class DaskStream:
    """`RowStream` of a Dask data frame or array.

    Parameters
    ----------
    data : dask.dataframe.DataFrame or dask.array.Array of shape (n, d)
    target, weight : str, Dask series or array, NumPy array or None
        The name of a column, or the values of all rows. Dask collections must have the partitions of the data.
    """

    data: Any
    target: Any
    weight: Any

    def __post_init__(self) -> None:
        if self.data.ndim != 2:
            given = f"a Dask {type(self.data).__name__} of {counted(self.data.ndim, 'dimension')}"
            raise ValueError(f"X must have rows and columns, got {given}")
        refuse_duplicate_names(tuple(map(str, self._labels)))
        for role in ("target", "weight"):
            self._check_role(role, getattr(self, role))
        if not self.names:
            raise ValueError("the data frame has no columns besides labels and weights")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self._features))

    @cached_property
    def types(self) -> tuple[np.dtype[Any], ...]:
        return self._example.types() if self._is_frame else (self.data.dtype,) * len(self.names)

    @cached_property
    def origin(self) -> Origin:
        return self._example.origin if self._is_frame else FROM_ARRAY

    @cached_property
    def _example(self) -> Table:
        """Some rows of the columns and types of a data frame."""
        dispatch: Any = import_module("dask.dataframe.dispatch")
        return read_frame(dispatch.meta_nonempty(dispatch.make_meta(self.data))[self._features])

    @property
    def rows(self) -> int:
        return sum(self.lengths)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Number of rows of each partition; they are computed, unless the chunks of an array are known."""
        if not self._is_frame and not np.isnan(self.data.shape[0]):
            return tuple(map(int, self.data.chunks[0]))
        narrow = self.target if isinstance(self.target, str) else self._labels[0]
        graph, keys = _tasks(self.data[[narrow]] if self._is_frame else self.data[:, :1])
        lengths = [("calibayes-length", i) for i in range(len(keys))]
        graph |= {name: (len, key) for name, key in zip(lengths, keys, strict=True)}
        return tuple(map(int, read_twice(partial(_computed, graph, lengths), self._where)))

    def parts(self, columns: Sequence[str] | None = None) -> Iterator[Callable[[], Chunk]]:
        """Loaders that compute a partition each, by the current client, or in threads without one."""
        lazy = self.lazy_parts(columns)
        return iter(
            [
                partial(
                    read_twice,
                    partial(_computed, lazy.graph, key),
                    f"the partition from row {first} on of {self._where}",
                )
                for key, (first, _) in zip(lazy.keys, lazy.places, strict=True)
            ]
        )

    def lazy_parts(self, columns: Sequence[str] | None = None) -> LazyParts:
        """Tasks that make the chunks of the partitions that have rows."""
        names, token = self._checked(columns), uuid4().hex
        labels = [label for label in self._features if str(label) in names]
        graph, keys = _tasks(self._selected(labels))
        roles = [self._role_tasks(role, graph) for role in (self.target, self.weight)]
        target, weight = (role if isinstance(role, str) else None for role in (self.target, self.weight))
        reader = _Reader(self._is_frame, tuple(labels), names, target, weight, self.origin)
        shared, chunk = f"calibayes-reader-{token}", f"calibayes-chunk-{token}"
        graph[shared] = (unwrapped, Unhashed(reader, shared))
        starts = accumulate(self.lengths, initial=0)
        chunks, places = [], []
        for i, (key, n, first) in enumerate(zip(keys, self.lengths, starts, strict=False)):
            if n:
                graph[chunk, i] = (_read, shared, key, *(role(i, first, n) for role in roles), first, n)
                chunks.append((chunk, i))
                places.append((first, n))
        return LazyParts(graph, chunks, places)

    @property
    def _where(self) -> str:
        """What is read, for messages."""
        return f"the Dask {type(self.data).__name__}"

    @property
    def _is_frame(self) -> bool:
        return dask_kind(self.data) == "frame"

    @property
    def _labels(self) -> list[Any]:
        """Labels of all columns, which need not be strings."""
        return list(self.data.columns) if self._is_frame else list(array_names(self.data.shape[1]))

    @cached_property
    def _features(self) -> list[Any]:
        """Labels of the columns besides labels and weights."""
        roles = [role for role in (self.target, self.weight) if isinstance(role, str)]
        return [label for label in self._labels if label not in roles]

    def _selected(self, labels: Sequence[Any]) -> Any:
        """The data with these columns and those of labels and weights; with at least one."""
        if not self._is_frame:
            return self.data.rechunk({1: -1})
        roles = [role for role in (self.target, self.weight) if isinstance(role, str)]
        return self.data[list(dict.fromkeys([*labels, *roles])) or self._labels[:1]]

    def _checked(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        if columns is None:
            return self.names
        if unknown := names_beyond(columns, self.names):
            raise ValueError(f"there is no column {unknown[0]!r}; the columns are {listed(self.names)}")
        return tuple(columns)

    def _check_role(self, role: str, values: Any) -> None:
        """Raises ValueError unless there are values for all rows, partition by partition."""
        if isinstance(values, str):
            if not self._is_frame or values not in self._labels:
                columns = listed(self._labels) if self._is_frame else "without names"
                raise ValueError(f"there is no column {values!r} for the {role}; the columns are {columns}")
        elif dask_kind(values) is not None:
            ours, theirs = self.data.npartitions, values.npartitions
            if values.ndim != 1 or (dask_kind(values) == "series" and ours != theirs):
                raise ValueError(
                    f"the {role} must have one value for each row and the partitions of the table, of which there are "
                    f"{ours}; it has {theirs}"
                )
        elif values is not None and len(values) != self.rows:
            raise ValueError(f"{counted(len(values), 'value')} in the {role} of {counted(self.rows, 'row')}")

    def _role_tasks(self, role: Any, graph: dict[Any, Any]) -> Callable[[int, int, int], Any]:
        """Function of the number, first row and length of a partition: the key of its labels or weights, or their values."""
        if role is None or isinstance(role, str):
            return lambda i, first, n: None
        if dask_kind(role) is None:
            values = np.asarray(role)
            return lambda i, first, n: Unhashed(values[first : first + n], uuid4().hex)
        is_known = dask_kind(role) == "array" and not np.isnan(role.shape[0])
        tasks, keys = _tasks(role.rechunk((self.lengths,)) if is_known else role)
        if len(keys) != len(self.lengths):
            raise ValueError(
                f"labels and weights must have the partitions of the table, of which there are {len(self.lengths)}, "
                f"got {len(keys)}"
            )
        graph.update(tasks)
        return lambda i, first, n: keys[i]


@dataclass(frozen=True)
class _Reader:
    """How chunks are made from partitions."""

    is_frame: bool
    labels: tuple[Any, ...]
    names: tuple[str, ...]
    target: str | None
    weight: str | None
    """Columns of labels and weights; None if there are none, or if they are tasks of their own."""
    origin: Origin

    def table(self, rows: Any) -> Table:
        """The columns of a partition."""
        if not self.is_frame:
            places = [int(name.removeprefix("x")) for name in self.names]
            return read_array(np.asarray(rows)[:, places], self.names)
        if not self.names:
            return Table((), (), origin=self.origin)
        return read_frame(rows[list(self.labels)])

    def values(self, role: Any, given: Any, rows: Any) -> Array | None:
        """Labels or weights of a partition: a column of it, or those given."""
        if given is not None:
            return np.asarray(given.value if isinstance(given, Unhashed) else given)
        return None if role is None else np.asarray(rows[role])


def _read(reader: _Reader, rows: Any, labels: Any, weight: Any, first: int, n: int) -> Chunk:
    """The chunk of a partition. Raises ValueError if it has another number of rows than when they were counted."""
    target, weights = reader.values(reader.target, labels, rows), reader.values(reader.weight, weight, rows)
    for values in (rows, target, weights):
        if values is not None and len(values) != n:
            raise ValueError(
                f"the partition from row {first} on has {counted(n, 'row')}, but {counted(len(values), 'value')} now: "
                "labels and weights need the partitions of the table, and a table must be the same in each pass"
            )
    return Chunk(reader.table(rows), target, weights, first)


def _tasks(collection: Any) -> tuple[dict[Any, Any], list[Any]]:
    """The graph of a collection and the keys of its partitions, in order."""
    dask: Any = import_module("dask")
    # Data frames are optimized as expressions, so that readers of files skip columns; arrays as graphs.
    is_array = dask_kind(collection) == "array"
    optimized = dask.optimize(collection)[0] if is_array else collection.optimize()
    return dict(optimized.__dask_graph__()), list(dask.core.flatten(optimized.__dask_keys__()))


def _computed(graph: dict[Any, Any], keys: Any) -> Any:
    """The results of some keys, computed by the current client, or in threads without one."""
    base: Any = import_module("dask.base")
    cull: Any = import_module("dask.optimization").cull
    needed, _ = cull(graph, keys if isinstance(keys, list) else [keys])
    if (client := client_of_collections()) is None:
        get = base.get_scheduler() or import_module("dask.threaded").get
        return get(needed, keys)
    with naming_lost_scheduler(client):
        return gathered(client, client.get(needed, keys, sync=False))


# -- Rows of a stream that are selected and encoded on the workers --------------------------------------------


def selected_parts(rows: SelectedChunks, chunks: LazyParts) -> LazyParts:
    """Tasks that make the rows of each chunk that take part in a training, from those that make the chunks."""
    name = f"calibayes-rows-{uuid4().hex}"
    graph = {
        (name, i): (_selected_rows, Unhashed(rows.selected(*place), f"{name}-{i}"), key)
        for i, (key, place) in enumerate(zip(chunks.keys, chunks.places, strict=True))
    }
    return LazyParts({**chunks.graph, **graph}, list(graph), chunks.places)


def _selected_rows(selected: Unhashed, chunk: Chunk) -> SelectedRows:
    return selected.value.of(chunk)


@dataclass(frozen=True, eq=False)
class EncodedOnWorkers:
    """A source of blocks that are encoded on the workers, from the partitions there, and stay on them."""

    chunks: SelectedChunks
    encoding: Encoding
    held_out: Array
    sizes: Mapping[str, int]
    """Number of classes and least number of cells of a block: see `ArraySource`."""

    is_read_once: ClassVar[bool] = False

    def parts(self) -> Iterator[Callable[[], Block]]:
        """Loaders of blocks of a partition each, encoded in this process."""
        for load in self.chunks.parts():
            yield partial(self._block, load)

    def _block(self, load: Callable[[], SelectedRows]) -> Block:
        rows = load()
        held_out = self.held_out[rows.start : rows.start + len(rows.codes)]
        return Block(self.encoding.columns(rows), rows.codes, rows.weight, held_out, rows.start)

    def lazy_parts(self) -> LazyParts:
        """Tasks that make the blocks of each partition."""
        rows = self.chunks.lazy_parts()
        if rows is None:
            raise ValueError("the stream is read in this process: its rows cannot be encoded on workers")
        name, shared = f"calibayes-block-{uuid4().hex}", f"calibayes-encoders-{uuid4().hex}"
        graph: dict[Any, Any] = {shared: (unwrapped, Unhashed(self.encoding, shared))}
        keys = []
        for i, (key, place) in enumerate(zip(rows.keys, rows.places, strict=True)):
            part = self.chunks.selected(*place)
            held_out = compact(self.held_out[part.start : part.start + len(part.codes)])
            if len(part.codes):
                keys.append((name, i))
                graph[name, i] = (_blocks, shared, key, Unhashed((held_out, self.sizes), f"{name}-{i}"))
        return LazyParts({**rows.graph, **graph}, keys)

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Block]:
        """Raises ValueError: random batches of rows would have to be gathered from all workers."""
        raise ValueError(
            "batch_size needs rows in the memory of this process: leave it out for a Dask collection that is trained on by "
            "the Dask engine, or use another engine"
        )


def _blocks(encoding: Encoding, rows: SelectedRows, wrapped: Unhashed) -> list[Block]:
    """The encoded rows of a partition, in blocks of the usual size."""
    held_out, sizes = wrapped.value
    every = np.broadcast_to(held_out, len(rows.codes))
    source = ArraySource(encoding.columns(rows), rows.codes, rows.weight, every, **sizes)
    blocks = (load() for load in source.parts())
    return [replace(block, first=rows.start + block.first) for block in blocks]

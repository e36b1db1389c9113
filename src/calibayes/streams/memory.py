"""Tables of Arrow in memory, and memory-mapped arrays, as streams."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from calibayes.core.notices import counted
from calibayes.core.protocols import AnyArray, Array
from calibayes.streams.arrow import ArrowRows
from calibayes.streams.chunks import Chunk, chunk_rows
from calibayes.tables.origin import FROM_ARRAY, Origin
from calibayes.tables.read import array_names, read_array


@dataclass(frozen=True)
class TableSource:
    """`ArrowSource` of a table of Arrow."""

    table: Any
    size: int

    repetition: ClassVar[None] = None

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def tables(self, columns: Sequence[str]) -> Iterator[ArrowRows]:
        table = self.table.select(list(columns))
        for first in range(0, self.rows, self.size):
            yield ArrowRows(
                first, min(self.size, self.rows - first), "the table", partial(table.slice, first, self.size)
            )


@dataclass(frozen=True)
class ArrayStream:
    """`RowStream` of an array (n, d), memory-mapped or in memory."""

    array: Array
    labels: Array | None
    weight: Array | None

    def __post_init__(self) -> None:
        if self.array.ndim != 2 or 0 in self.array.shape:
            raise ValueError(f"the array must have the shape (rows, columns), got {self.array.shape}")
        for role, values in (("labels", self.labels), ("weights", self.weight)):
            if isinstance(values, str):
                raise ValueError(
                    f"the columns of an array have no names: give an array of {role} instead of {values!r}"
                )
            if values is not None and len(values) != len(self.array):
                raise ValueError(
                    f"{counted(len(values), 'value')} in the {role} of {counted(self.rows, 'row')}"
                )

    @property
    def names(self) -> tuple[str, ...]:
        return array_names(self.array.shape[1])

    @property
    def types(self) -> tuple[np.dtype[Any], ...]:
        return read_array(self.array[:0], self.names).types()

    @property
    def origin(self) -> Origin:
        return FROM_ARRAY

    @property
    def rows(self) -> int:
        return len(self.array)

    def parts(self, columns: Sequence[str] | None = None) -> Iterator[Callable[[], Chunk]]:
        names = self.names if columns is None else tuple(columns)
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise ValueError(f"there is no column {unknown[0]!r}; the columns are x0 to {self.names[-1]}")
        size = chunk_rows(self.array.shape[1])
        for first in range(0, self.rows, size):
            yield partial(self._chunk, names, first, min(first + size, self.rows))

    def _chunk(self, names: tuple[str, ...], first: int, stop: int) -> Chunk:
        places = [self.names.index(name) for name in names] if names != self.names else slice(None)
        cells = array_rows(self.array, first, stop)[:, places] if names else np.empty((stop - first, 0))
        labels, weight = (
            None if values is None else array_rows(values, first, stop)
            for values in (self.labels, self.weight)
        )
        return Chunk(read_array(cells, names), labels, weight, first)


def array_rows(array: AnyArray, start: int, stop: int) -> Array:
    """Consecutive rows of an array as a copy; those of a memory-mapped file are read, so that no page stays mapped."""
    if not _is_plain_file(array):
        return np.array(array[start:stop])
    row = array.dtype.itemsize * int(np.prod(array.shape[1:]))
    count = (stop - start) * int(np.prod(array.shape[1:]))
    cells = np.fromfile(array.filename, array.dtype, count, offset=array.offset + start * row)
    return cells.reshape(stop - start, *array.shape[1:])


def _is_plain_file(array: Array) -> bool:
    """Whether an array is a memory-mapped file as a whole, row after row, without changes that only memory has."""
    if not isinstance(array, np.memmap) or array.filename is None:
        return False
    base: Any = array.base
    return isinstance(base, mmap.mmap) and array.mode in ("r", "r+", "w+") and array.flags.c_contiguous

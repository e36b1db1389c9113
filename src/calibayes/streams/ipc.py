"""Files in the format of Arrow IPC, also known as Feather."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from calibayes.streams.chunks import place_named, read_twice
from calibayes.streams.found_files import with_partition
from calibayes.tables.arrow_text import module_of_pyarrow

LARGE_BATCH = 2**20
"""A local file that has batches of more rows is mapped into memory, so that no batch is read as a whole."""
MAGIC = b"ARROW1"
"""First bytes of a file that can be read at any place; others hold a stream."""


@dataclass(frozen=True)
class IpcFile:
    """`GroupedFile` of record batches."""

    path: str
    filesystem: Any
    schema: Any
    group_rows: tuple[int, ...]
    partition: Mapping[str, Any]

    group_name: ClassVar[str] = "batch"
    stages: ClassVar[int] = 1

    def batches(self, numbers: Sequence[int], columns: Sequence[str], size: int) -> Iterator[Any]:
        fields = [self.schema.names.index(name) for name in columns]
        with self._opened(fields) as file:
            for number in numbers:
                batch = file.get_batch(number).select(list(columns))
                for start in range(0, batch.num_rows, size):
                    yield valid(batch.slice(start, size))

    def _opened(self, fields: Sequence[int]) -> Any:
        """The open file. One with large batches is mapped; pyarrow then copies nothing if all of its fields are read."""
        fs = module_of_pyarrow("fs")
        if max(self.group_rows) > LARGE_BATCH and isinstance(self.filesystem, fs.LocalFileSystem):
            return _opened(self.path, fs.LocalFileSystem(use_mmap=True), None)
        return _opened(self.path, self.filesystem, fields)


def opened_ipc(path: str, filesystem: Any, partition: Mapping[str, Any]) -> IpcFile:
    """The description of a file; its own columns take precedence over those of its partition."""

    def read() -> IpcFile:
        with _opened(path, filesystem, None) as file:
            schema = file.schema
            names = schema.names  # raises UnicodeDecodeError if a name is damaged
        with _opened(path, filesystem, [0]) as file:
            sizes = tuple(file.get_batch(i).num_rows for i in range(file.num_record_batches))
        further = {name: value for name, value in partition.items() if name not in names}
        return IpcFile(path, filesystem, schema, sizes, further)

    return read_twice(read, path)


def valid(batch: Any) -> Any:
    """The batch. Raises ValueError if it is damaged: places of text outside of it would be read otherwise."""
    batch.validate(full=True)
    return batch


def _opened(path: str, filesystem: Any, fields: Sequence[int] | None) -> Any:
    """An open file of which only some fields are read."""
    ipc = module_of_pyarrow("ipc")
    options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    return ipc.open_file(filesystem.open_input_file(path), options=options)


def is_ipc_stream(path: str, filesystem: Any) -> bool:
    """Whether a file holds a stream, which is read from its beginning."""

    def read() -> bool:
        with filesystem.open_input_file(path) as file:
            return bool(file.read(len(MAGIC)) != MAGIC)

    return read_twice(read, path)


@dataclass(frozen=True)
class IpcStreamFile:
    """A file that holds a stream."""

    path: str
    filesystem: Any
    schema: Any
    partition: Mapping[str, Any]

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """All batches, with the columns of the partition."""
        with place_named(self.path), _stream(self.path, self.filesystem) as reader:
            for batch in reader:
                yield with_partition(valid(batch), columns, self.partition)


def opened_ipc_stream(path: str, filesystem: Any, partition: Mapping[str, Any]) -> IpcStreamFile:
    """The description of a file that holds a stream."""

    def read() -> IpcStreamFile:
        with _stream(path, filesystem) as reader:
            return IpcStreamFile(path, filesystem, reader.schema, partition)

    return read_twice(read, path)


def _stream(path: str, filesystem: Any) -> Any:
    ipc = module_of_pyarrow("ipc")
    options = ipc.IpcReadOptions(use_threads=False)
    return ipc.open_stream(filesystem.open_input_stream(path, compression=None), options=options)

"""Files of tables: found by their names, Parquet and Arrow IPC in groups of rows, CSV from beginning to end."""

from __future__ import annotations

import glob
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, takewhile
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any, ClassVar, Self
from urllib.parse import unquote

from calibayes.core.notices import listed
from calibayes.streams.arrow import ArrowRows, Readable, read_scanned, sequential, tables_of
from calibayes.streams.chunks import chunk_rows, place_named, read_twice
from calibayes.streams.csv_blocks import opened_csv_files
from calibayes.tables.read import is_text, module_of_pyarrow, pyarrow

# -- Columns whose values are in the names of folders (year=2024/month=1/part.parquet), as Hive writes them

MISSING = "__HIVE_DEFAULT_PARTITION__"
"""The name that Hive gives a missing value."""


def partition_texts(path: str, folder: str) -> dict[str, str | None]:
    """Column -> value as text, from the folders between a folder and a file in it."""
    between = PurePosixPath(path).parts[len(PurePosixPath(folder).parts) : -1]
    pairs = [part.partition("=") for part in between if "=" in part]
    return {unquote(name): None if text == MISSING else unquote(text) for name, _, text in pairs}


def partition_types(partitions: Sequence[Mapping[str, str | None]], folder: str) -> dict[str, Any]:
    """Column -> type of Arrow: integers if all values are, else text. Raises ValueError if files have other columns."""
    names = partitions[0].keys()
    if any(partition.keys() != names for partition in partitions):
        raise ValueError(f"the files in {folder} lie in folders of different columns (name=value)")
    return {name: _type([partition[name] for partition in partitions]) for name in names}


def _type(texts: Sequence[str | None]) -> Any:
    pa = pyarrow()
    known = [text for text in texts if text is not None]
    are_integers = bool(known) and all(text.lstrip("-").isdecimal() and text.isascii() for text in known)
    return pa.int32() if are_integers and all(abs(int(text)) < 2**31 for text in known) else pa.string()


def with_partition(
    read: Callable[[list[str]], Iterator[Any]],
    columns: Sequence[str],
    names: Sequence[str],
    values: Mapping[str, Any],
) -> Iterator[Any]:
    """Batches of a file that has columns of these ``names``, with constant columns for the values of its partition."""
    pa = pyarrow()
    for batch in read([name for name in columns if name not in values] or list(names[:1])):
        n = batch.num_rows
        arrays = [pa.repeat(values[name], n) if name in values else batch.column(name) for name in columns]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def with_partition_fields(schema: Any, types: Mapping[str, Any]) -> Any:
    """The schema of files with those columns of their partition that they do not have themselves."""
    for name, kind in types.items():
        schema = schema if name in schema.names else schema.append(pyarrow().field(name, kind))
    return schema


# -- Paths, globs and folders as files of one kind -----------------------------------------------------------

ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "ipc": (".arrow", ".feather", ".ipc"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
}
"""Kind of file -> endings of its name."""


@dataclass(frozen=True)
class FoundFile:
    """A file, and the values and types of its partition."""

    path: str
    filesystem: Any
    kind: str
    partition: dict[str, Any] = field(default_factory=dict)
    partition_types: dict[str, Any] = field(default_factory=dict)

    def further(self, names: Sequence[str]) -> dict[str, Any]:
        """The columns of its partition other than those of its own, with their ``names``."""
        return {name: value for name, value in self.partition.items() if name not in names}


def found_files(source: Any) -> list[FoundFile]:
    """The files of a path, glob or folder, or of several. Raises ValueError if there are none, or of several kinds."""
    paths = source if isinstance(source, list | tuple) else [source]
    files = [file for path in paths for file in _files_of(os.fspath(path))]
    kinds = sorted({file.kind for file in files})
    if len(kinds) > 1:
        raise ValueError(
            f"{source!r} has files of several kinds ({', '.join(kinds)}): give files of one kind"
        )
    return files


def _files_of(path: str) -> list[FoundFile]:
    fs = module_of_pyarrow("fs")
    if "://" in path:
        return _expanded(*fs.FileSystem.from_uri(path))
    local = fs.LocalFileSystem()
    if os.path.exists(path):
        return _expanded(local, Path(path).absolute().as_posix())
    matches = sorted(glob.glob(path, recursive=True))
    if not matches:
        raise ValueError(f"there is no file {path!r}, and none that it matches as a pattern")
    paths = [file.path for match in matches for file in _expanded(local, Path(match).absolute().as_posix())]
    return _with_partitions(_fixed_part(path), paths, local)


def _fixed_part(pattern: str) -> str:
    """The folder of a pattern whose name has no wildcards, nor those of the folders that it lies in."""
    return Path(*takewhile(lambda part: not glob.has_magic(part), Path(pattern).absolute().parts)).as_posix()


def _expanded(filesystem: Any, path: str) -> list[FoundFile]:
    """A file, or the files of a folder in the order of their names."""
    fs = module_of_pyarrow("fs")
    info = filesystem.get_file_info(path)
    if info.type == fs.FileType.NotFound:
        raise ValueError(f"there is no file {path!r}")
    if info.type != fs.FileType.Directory:
        return [FoundFile(path, filesystem, kind_of(path))]
    inside = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
    paths = sorted(one.path for one in inside if one.is_file and not _is_hidden(one.path, path))
    if not paths:
        raise ValueError(f"the folder {path} has no files")
    return _with_partitions(path, paths, filesystem)


def _is_hidden(path: str, folder: str) -> bool:
    """Whether a file, or a folder on the way to it, begins with a dot or an underscore, as marks of success do."""
    parts = PurePosixPath(path).parts[len(PurePosixPath(folder).parts) :]
    return any(part.startswith((".", "_")) and "=" not in part for part in parts)


def kind_of(path: str) -> str:
    """The kind of a file, from its name. Raises ValueError for an unknown one."""
    name = PurePosixPath(path).name.lower()
    for kind, endings in ENDINGS.items():
        if name.endswith(endings):
            return kind
    known = list(chain.from_iterable(ENDINGS.values()))
    raise ValueError(f"the kind of {path} is unknown: its name must end in {listed(known, most=99)}")


def _with_partitions(folder: str, paths: Sequence[str], filesystem: Any) -> list[FoundFile]:
    """Files with the values in the names of their folders."""
    texts = [partition_texts(path, folder) for path in paths]
    types = partition_types(texts, folder)
    pa, files = pyarrow(), []
    for path, own in zip(paths, texts, strict=True):
        values = {name: pa.scalar(text, pa.string()).cast(types[name]) for name, text in own.items()}
        files.append(FoundFile(path, filesystem, kind_of(path), values, types))
    return files


# -- Parquet and Arrow IPC (also known as Feather): files of groups of rows, which can be read in any order, by several threads

BUFFER = 2**18
"""Bytes of a column of a local file that are read at a time, so that no column of a large row group is held compressed."""
LARGE_BATCH = 2**20
"""A local file that has batches of more rows is mapped into memory, so that no batch is read as a whole."""
MAGIC = b"ARROW1"
"""First bytes of an Arrow IPC file that can be read at any place; others hold a stream."""


def open_parquet(file: Any, text: Sequence[str] = (), *, is_remote: bool = False) -> Any:
    """An open Parquet file; the columns of ``text`` are read as dictionaries."""
    # few large requests over a network
    buffers = {"buffer_size": 0 if is_remote else BUFFER, "pre_buffer": is_remote}
    parquet = module_of_pyarrow("parquet")
    return parquet.ParquetFile(file, read_dictionary=list(text), page_checksum_verification=True, **buffers)


def open_ipc(file: Any, fields: Sequence[int] | None = None) -> Any:
    """An open Arrow IPC file, of which only some fields are read."""
    ipc = module_of_pyarrow("ipc")
    return ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=fields, use_threads=False))


def open_ipc_stream(file: Any) -> Any:
    """A reader of the batches of an Arrow IPC stream."""
    ipc = module_of_pyarrow("ipc")
    return ipc.open_stream(file, options=ipc.IpcReadOptions(use_threads=False))


def sliced(batches: Iterable[Any], columns: Sequence[str], size: int) -> Iterator[Any]:
    """The named columns of batches, in parts of at most ``size`` rows.

    Raises ValueError if a batch is damaged: places of text outside of it would be read otherwise.
    """
    for batch in batches:
        chosen = batch.select(list(columns))
        for start in range(0, chosen.num_rows, size):
            part = chosen.slice(start, size)
            part.validate(full=True)
            yield part


@dataclass(frozen=True)
class GroupedFile(ABC):
    """A file of groups of rows."""

    path: str
    filesystem: Any
    schema: Any
    """Schema of Arrow, without the columns of a partition."""
    group_rows: tuple[int, ...]
    """Number of rows of each group."""
    partition: Mapping[str, Any]
    """Columns that have one value in the whole file -> scalar of Arrow."""

    group_name: ClassVar[str]
    """What a group is called."""
    stages: ClassVar[int]
    """In how many parts the columns of a group are read that is cut into several chunks.

    Its chunks must be decoded one after another. With several parts, a thread can decode the first part of a chunk
    while another one decodes the second part of the chunk before.
    """

    @classmethod
    def of(cls, file: FoundFile) -> Self:
        """The description of a file; its own columns take precedence over those of its partition."""
        schema, sizes = read_twice(partial(cls._described, file), file.path)
        return cls(file.path, file.filesystem, schema, sizes, file.further(schema.names))

    @staticmethod
    @abstractmethod
    def _described(file: FoundFile) -> tuple[Any, tuple[int, ...]]:
        """The schema and the number of rows of each group."""

    @abstractmethod
    def batches(self, numbers: Sequence[int], columns: Sequence[str], size: int) -> Iterator[Any]:
        """Batches of the named columns of some groups, of about ``size`` rows."""


@dataclass(frozen=True)
class ParquetFile(GroupedFile):
    """A Parquet file, in row groups."""

    group_name: ClassVar[str] = "row group"
    stages: ClassVar[int] = 4

    @staticmethod
    def _described(file: FoundFile) -> tuple[Any, tuple[int, ...]]:
        with _opened_parquet(file, ()) as opened:
            metadata = opened.metadata
            sizes = tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
            return opened.schema_arrow, sizes

    def batches(self, numbers: Sequence[int], columns: Sequence[str], size: int) -> Iterator[Any]:
        text = [name for name in columns if is_text(self.schema.field(name).type)]
        with _opened_parquet(self, text) as file:
            groups, names = list(numbers), list(columns)
            yield from file.iter_batches(size, row_groups=groups, columns=names, use_threads=False)


def _opened_parquet(file: FoundFile | ParquetFile, text: Sequence[str]) -> Any:
    is_remote = not isinstance(file.filesystem, module_of_pyarrow("fs").LocalFileSystem)
    return open_parquet(file.filesystem.open_input_file(file.path), text, is_remote=is_remote)


@dataclass(frozen=True)
class IpcFile(GroupedFile):
    """An Arrow IPC file, in record batches."""

    group_name: ClassVar[str] = "batch"
    stages: ClassVar[int] = 1

    @staticmethod
    def _described(file: FoundFile) -> tuple[Any, tuple[int, ...]]:
        opened = file.filesystem.open_input_file
        with open_ipc(opened(file.path)) as whole:
            schema = whole.schema
            _ = schema.names  # raises UnicodeDecodeError if a name is damaged
        with open_ipc(opened(file.path), [0]) as first:
            return schema, tuple(first.get_batch(i).num_rows for i in range(first.num_record_batches))

    def batches(self, numbers: Sequence[int], columns: Sequence[str], size: int) -> Iterator[Any]:
        fields: list[int] | None = list(map(self.schema.get_field_index, columns))
        filesystem, fs = self.filesystem, module_of_pyarrow("fs")
        if max(self.group_rows) > LARGE_BATCH and isinstance(filesystem, fs.LocalFileSystem):
            # pyarrow copies nothing of a mapped file if all of its fields are read
            filesystem, fields = fs.LocalFileSystem(use_mmap=True), None
        with open_ipc(filesystem.open_input_file(self.path), fields) as file:
            yield from sliced((file.get_batch(number) for number in numbers), columns, size)


# -- Chunks of a row group that is too large for one chunk: read one after another, each decoded once --------


class RowGroup:
    """Consecutive rows that can only be read from their beginning.

    Threads that load neighboring chunks share one reading position. A chunk that lies before it is read by beginning
    again.
    """

    def __init__(self, read: Callable[[int], Iterator[Any]], rows: int, size: int) -> None:
        """``read(size)`` gives batches of about ``size`` of the ``rows``, from the first one on."""
        self._read, self.rows, self.size = read, rows, size
        self._lock, self._next = Lock(), 0
        self._tables: Iterator[Any] = iter(())

    def __reduce__(self) -> Any:
        return RowGroup, (self._read, self.rows, self.size)

    def chunk(self, number: int) -> Any:
        """A chunk as a table of Arrow."""
        with self._lock:
            try:
                return self._advanced_to(number)
            except BaseException:
                self._restart()
                raise

    def _advanced_to(self, number: int) -> Any:
        if number < self._next or self._next == 0:
            self._restart()
            self._tables = tables_of(self._read(self.size), self.size)
        while True:
            table = next(self._tables, None)
            if table is None:
                raise ValueError(f"fewer than the {self.rows} rows that its metadata promise")
            self._next += 1
            if self._next > number:
                break
        if self._next * self.size >= self.rows:
            self._restart()
        return table

    def _restart(self) -> None:
        """Let go of what was read."""
        self._tables, self._next = iter(()), 0


def tables_of_groups(files: Sequence[GroupedFile], size: int, columns: Sequence[str]) -> Iterator[ArrowRows]:
    """The named columns of files that have the same columns, in chunks of at most ``size`` rows."""
    first = 0
    for file in files:
        for numbers in neighbors(file.group_rows, size):
            rows = sum(file.group_rows[i] for i in numbers)
            stages = min(file.stages, len(columns)) if rows > size else 1
            parts = [tuple(columns[start::stages]) for start in range(stages)]
            read = [RowGroup(partial(_batches, file, numbers, part), rows, size) for part in parts]
            several = f"one of the {file.group_name}s {numbers[0]} to {numbers[-1]}"
            name = several if len(numbers) > 1 else f"{file.group_name} {numbers[0]}"
            place = f"{name} of {file.path}"
            for number, before in enumerate(range(0, rows, size)):
                load = partial(_read_chunk, read, number, tuple(columns), place)
                yield ArrowRows(first + before, min(size, rows - before), place, load)
            first += rows


def neighbors(group_rows: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """Numbers of groups that are read together: neighbors that have no more than ``size`` rows in all.

    >>> list(neighbors([3, 3, 9, 2], size=6))
    [(0, 1), (2,), (3,)]
    """
    start = rows = 0
    for number, more in enumerate(group_rows):
        if number > start and rows + more > size:
            yield tuple(range(start, number))
            start, rows = number, 0
        rows += more
    if group_rows:
        yield tuple(range(start, len(group_rows)))


def _read_chunk(groups: Sequence[RowGroup], number: int, columns: Sequence[str], place: str) -> Any:
    """A chunk, from the parts of its columns."""
    tables = [read_twice(partial(group.chunk, number), place) for group in groups]
    if len(tables) == 1:
        return tables[0]
    arrays = {name: table.column(name) for table in tables for name in table.column_names}
    return pyarrow().table({name: arrays[name] for name in columns})


def _batches(file: GroupedFile, numbers: Sequence[int], columns: Sequence[str], size: int) -> Iterator[Any]:
    """Batches of some groups, with the columns of the file's partition."""
    read = lambda stored: file.batches(numbers, stored, size)
    return with_partition(read, columns, file.schema.names, file.partition)


def same_columns(files: Sequence[FoundFile], schemas: Sequence[Any]) -> None:
    """Raises ValueError unless all files have columns of the same names and types."""
    expected, *others = (_column_types(schema) for schema in schemas)
    for file, found in zip(files[1:], others, strict=True):
        if found != expected:
            difference = _difference(found, expected)
            raise ValueError(f"{file.path} has other columns than {files[0].path}: {difference}")


def _column_types(schema: Any) -> dict[str, Any]:
    return dict(zip(schema.names, schema.types, strict=True))


def _difference(found: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """The first column that differs."""
    name = next(name for name in (*found, *expected) if found.get(name) != expected.get(name))
    if name not in expected:
        return f"{name!r} is only in the former"
    if name not in found:
        return f"{name!r} is only in the latter"
    return f"{name!r} holds {found[name]} in the former and {expected[name]} in the latter"


# -- Files and datasets of pyarrow as sources of Arrow tables ------------------------------------------------


def read_parquet_files(files: Sequence[FoundFile], where: str) -> Readable:
    """Parquet files that have the same columns."""
    return _grouped([ParquetFile.of(file) for file in files], files, where)


def read_ipc_files(files: Sequence[FoundFile], where: str) -> Readable:
    """Files of Arrow IPC that have the same columns; files that hold streams are read from beginning to end."""
    if not any(read_twice(partial(_is_ipc_stream, file), file.path) for file in files):
        return _grouped([IpcFile.of(file) for file in files], files, where)
    schemas = [read_twice(partial(_stream_schema, file), file.path) for file in files]
    pairs = zip(files, schemas, strict=True)
    streams = [SequentialFile(file, schema, partial(_stream_batches, file)) for file, schema in pairs]
    same_columns(files, schemas)
    return _joined(streams, where)


def read_csv_files(files: Sequence[FoundFile], where: str) -> Readable:
    """CSV files that have the same columns; what a column holds is found in the first file that has a value of it."""
    pairs = zip(files, opened_csv_files([(file.path, file.filesystem) for file in files]), strict=True)
    return _joined([SequentialFile(file, csv.schema, csv.batches) for file, csv in pairs], where)


def _is_ipc_stream(file: FoundFile) -> bool:
    with file.filesystem.open_input_file(file.path) as opened:
        return bool(opened.read(len(MAGIC)) != MAGIC)


def _stream_schema(file: FoundFile) -> Any:
    with _opened_stream(file) as reader:
        return reader.schema


def _stream_batches(file: FoundFile, columns: Sequence[str]) -> Iterator[Any]:
    with _opened_stream(file) as reader:
        for batch in reader:
            batch.validate(full=True)
            yield batch


def _opened_stream(file: FoundFile) -> Any:
    return open_ipc_stream(file.filesystem.open_input_stream(file.path, compression=None))


@dataclass(frozen=True)
class SequentialFile:
    """A file that is read from beginning to end; ``read(columns)`` gives batches of these columns, perhaps among others."""

    file: FoundFile
    schema: Any
    read: Callable[[Sequence[str]], Iterator[Any]]

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Batches of the named columns, with those of the file's partition."""
        with place_named(self.file.path):
            names = self.schema.names
            yield from with_partition(self.read, columns, names, self.file.further(names))


def _joined(files: Sequence[SequentialFile], where: str) -> Readable:
    schema = with_partition_fields(files[0].schema, files[0].file.partition_types)
    read = lambda columns, size: chain.from_iterable(file.batches(columns) for file in files)
    return sequential(schema, read, where)


def _grouped(opened: Sequence[GroupedFile], files: Sequence[FoundFile], where: str) -> Readable:
    same_columns(files, [file.schema for file in opened])
    return _in_groups(opened, with_partition_fields(opened[0].schema, files[0].partition_types), where)


def _in_groups(files: Sequence[GroupedFile], schema: Any, where: str) -> Readable:
    rows = sum(sum(file.group_rows) for file in files)
    if rows == 0:
        raise ValueError(f"{where} has no rows")
    tables = partial(tables_of_groups, tuple(files), chunk_rows(len(schema.names)))
    return Readable(schema, schema.empty_table(), tables, where, rows)


def read_dataset(dataset: Any) -> Readable:
    """A dataset of pyarrow: Parquet files by row groups, others from beginning to end."""
    ds = module_of_pyarrow("dataset")
    if not isinstance(dataset, ds.FileSystemDataset) or not isinstance(dataset.format, ds.ParquetFileFormat):
        return read_scanned(dataset)
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # that of a dataset with a filter
        return read_scanned(dataset)
    files = [_parquet_of(fragment, dataset.schema) for fragment in fragments]
    plain = [file for file in files if file is not None]
    if len(plain) < len(files):
        return read_scanned(dataset)
    return _in_groups(plain, dataset.schema, "the dataset")


def _parquet_of(fragment: Any, schema: Any) -> ParquetFile | None:
    """A file of a dataset; None if it has not all its columns in the types of the dataset, or not all row groups."""
    ds, pa = module_of_pyarrow("dataset"), pyarrow()
    keys = ds.get_partition_keys(fragment.partition_expression)
    types = {name: schema.field(name).type for name in schema.names}
    partition = {name: pa.scalar(value, types[name]) for name, value in keys.items() if name in types}
    file = ParquetFile.of(FoundFile(fragment.path, fragment.filesystem, "parquet", partition))
    own = _column_types(file.schema)
    is_plain = all(name in partition or own.get(name) == kind for name, kind in types.items())
    return file if is_plain and fragment.num_row_groups == len(file.group_rows) else None

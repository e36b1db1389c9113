"""Paths, globs and folders as files of one kind."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from calibayes.tables.arrow_text import module_of_pyarrow, pyarrow
from calibayes.tables.text import listed

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


def partition_values(texts: Mapping[str, str | None], types: Mapping[str, Any]) -> dict[str, Any]:
    """Column -> value as a scalar of Arrow."""
    pa = pyarrow()
    return {name: pa.scalar(text, pa.string()).cast(types[name]) for name, text in texts.items()}


def with_partition(batch: Any, columns: Sequence[str], values: Mapping[str, Any]) -> Any:
    """The columns in their order, with constant ones for the values of a partition."""
    pa = pyarrow()
    arrays = [
        pa.repeat(values[name], batch.num_rows) if name in values else batch.column(name) for name in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def with_partition_fields(schema: Any, types: Mapping[str, Any]) -> Any:
    """The schema of files with those columns of their partition that they do not have themselves."""
    for name, kind in types.items():
        schema = schema if name in schema.names else schema.append(pyarrow().field(name, kind))
    return schema


# -- Paths, globs and folders as files of one kind -----------------------------------------------------------

KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".csv": "csv",
    ".tsv": "csv",
    ".csv.gz": "csv",
    ".tsv.gz": "csv",
}
"""Ending of a file's name -> kind of file."""


@dataclass(frozen=True)
class FoundFile:
    """A file, and the values and types of its partition."""

    path: str
    filesystem: Any
    kind: str
    partition: dict[str, Any] = field(default_factory=dict)
    partition_types: dict[str, Any] = field(default_factory=dict)


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
        filesystem, inner = fs.FileSystem.from_uri(path)
        return _expanded(inner, filesystem)
    local = fs.LocalFileSystem()
    if os.path.exists(path):
        return _expanded(Path(path).absolute().as_posix(), local)
    matches = sorted(glob.glob(path, recursive=True))
    if not matches:
        raise ValueError(f"there is no file {path!r}, and none that it matches as a pattern")
    paths = [file.path for match in matches for file in _expanded(Path(match).absolute().as_posix(), local)]
    return _with_partitions(_fixed_part(path), paths, local)


def _fixed_part(pattern: str) -> str:
    """The folder of a pattern whose name has no wildcards, nor those of the folders that it lies in."""
    parts = Path(pattern).absolute().parts
    return Path(*takewhile(lambda part: not glob.has_magic(part), parts)).as_posix()


def _expanded(path: str, filesystem: Any) -> list[FoundFile]:
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
    for ending, kind in KINDS.items():
        if name.endswith(ending):
            return kind
    raise ValueError(f"the kind of {path} is unknown: its name must end in {listed(list(KINDS), most=99)}")


def _with_partitions(folder: str, paths: Sequence[str], filesystem: Any) -> list[FoundFile]:
    """Files with the values in the names of their folders."""
    texts = [partition_texts(path, folder) for path in paths]
    types = partition_types(texts, folder)
    return [
        FoundFile(path, filesystem, kind_of(path), partition_values(text, types), types)
        for path, text in zip(paths, texts, strict=True)
    ]

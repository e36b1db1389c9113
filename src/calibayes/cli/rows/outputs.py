"""Output files that replace an older file only when they are complete."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from calibayes.cli.interruption import raise_noted_interruption
from calibayes.core.replaced_file import replaced_file
from calibayes.tables.streams.arrow.modules import pyarrow

FORMATS: Mapping[str, str] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
"""Ending of a file -> format."""
COMPRESSED = (".gz", ".zst")


def format_of(path: Path | None, given: str | None, as_json: bool = False) -> str:
    """The format of an output: as given, else by the ending of its file, else CSV. Raises ValueError if it is unknown."""
    names = list(dict.fromkeys(FORMATS.values()))
    if given is not None and given not in names:
        raise ValueError(f"unknown --format {given}; choose from {', '.join(names)}")
    if as_json and given not in (None, "jsonl"):
        raise ValueError(f"--json and --format {given} exclude each other")
    if given or as_json or path is None:
        return "jsonl" if as_json else given or "csv"
    ending = Path(path.stem).suffix if path.suffix in COMPRESSED else path.suffix
    if not ending and path.exists() and not path.is_file():  # a device or a named pipe
        return "csv"
    if ending.lower() not in FORMATS:
        raise ValueError(
            f"the format of {path} cannot be told from its ending; choose from {', '.join(FORMATS)}, or give --format"
        )
    return FORMATS[ending.lower()]


@contextmanager
def output_file(path: Path | None) -> Iterator[BinaryIO]:
    """A binary file to write to: standard output, or a file beside the path that takes its place at the end.

    After an error or an interruption there is no new file, and an older one is as it was. A device or a named pipe is
    written to directly.
    """
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent} for the output {path.name}")
    if path.is_dir():
        raise ValueError(f"the output {path} is a folder; give the name of a file")
    is_special = path.exists() and not path.is_file()
    with path.open("wb") if is_special else replaced_file(path) as file:
        with _compressed(file, path.suffix) as written:
            yield written
        raise_noted_interruption()


@contextmanager
def _compressed(file: Any, ending: str) -> Iterator[Any]:
    if ending not in COMPRESSED:
        yield file
        return
    with COMPRESSORS[ending](file) as written:
        yield written


class _LeftOpen(io.RawIOBase):
    """A file that stays open when what writes to it is closed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._file.write(data)


def _zstd(file: Any) -> Any:
    try:
        return pyarrow().CompressedOutputStream(pyarrow().PythonFile(_LeftOpen(file), mode="w"), "zstd")
    except ImportError:
        raise ValueError(
            "writing files that end in .zst needs pyarrow: pip install 'calibayes[parquet]'"
        ) from None


def _gzip(file: Any) -> Any:
    return gzip.GzipFile(fileobj=file, mode="wb", mtime=0)


COMPRESSORS: Mapping[str, Callable[[Any], Any]] = {".gz": _gzip, ".zst": _zstd}


def refuse_terminal(path: Path | None, kind: str) -> None:
    """Raises ValueError if a binary format would be written to a terminal."""
    if path is None and kind in ("parquet", "arrow") and sys.stdout.isatty():
        raise ValueError(f"the format {kind} is not written to a terminal; give a file with -o FILE")

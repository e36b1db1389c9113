"""The bytes of a table, from a file or from standard input: decompressed, with the kind of table that they are."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from calibayes.tables.read import pyarrow

STANDARD_INPUT = "-"
FIRST_BYTES = 16
BYTES = 2**18
"""Bytes that are read at a time."""
LARGEST_DECOMPRESSED = 2**31
"""Largest size in bytes of a decompressed file, so that a small file cannot fill the memory."""
LARGEST_RATIO = 1032
"""Largest ratio of decompressed to compressed size of gzip: smaller files need no check."""
DAMAGED = (EOFError, zlib.error, lzma.LZMAError)
"""Errors of decompressing, besides OSError."""
KINDS: Mapping[bytes, str] = {b"PAR1": "parquet", b"ARROW1": "ipc file", b"\xff\xff\xff\xff": "ipc stream"}
"""First bytes -> kind of table; everything else is text."""
OTHER_FILES: Mapping[bytes, str] = {
    b"PK\x03\x04": "a spreadsheet or zip archive",
    b"\xd0\xcf\x11\xe0": "a spreadsheet",
    b"SQLite format 3": "a database of SQLite",
    b"\x89HDF": "an HDF5 file",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
}
"""First bytes -> what a file that is no table in a known format is."""


class FileOfParts(io.RawIOBase):
    """The bytes of an iterator as a file; closing it closes the file that they come from."""

    def __init__(self, parts: Iterator[bytes], source: Any) -> None:
        self._parts, self._source, self._waiting = parts, source, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._waiting:
            more = next(self._parts, None)
            if more is None:
                return 0
            self._waiting = more
        data, self._waiting = self._waiting[: len(buffer)], self._waiting[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if self._source is not getattr(sys.stdin, "buffer", None):
            self._source.close()
        super().close()


def chained(first: bytes, rest: Any) -> io.BufferedReader:
    """A file of bytes that were read already, followed by the rest of a file."""
    parts = chain((first,), iter(partial(rest.read, BYTES), b""))
    return io.BufferedReader(FileOfParts(parts, rest), BYTES)


@dataclass(frozen=True)
class RawTable:
    """An open table.

    Attributes
    ----------
    name : str
        What is read, for messages.
    kind : str
        "parquet", "ipc file", "ipc stream" or "text".
    file : binary file
        The decompressed bytes, from the first one on.
    path : Path or None
        The file.
    is_compressed : bool
    """

    name: str
    kind: str
    file: io.BufferedReader
    path: Path | None
    is_compressed: bool

    def anywhere(self) -> Any:
        """What pyarrow reads at any place: the path, or all bytes in memory."""
        if self.path is None or self.is_compressed:
            return pyarrow().BufferReader(self.file.read())
        return str(self.path)

    def limited(self) -> bytes:
        """All bytes. Raises ValueError if those of a compressed table, or of standard input, are too many."""
        if self.path is not None and not self.is_compressed:
            return self.file.read()
        if self.path is None or self._is_within_limit(self.path):
            content = self.file.read(LARGEST_DECOMPRESSED + 1)
            if len(content) <= LARGEST_DECOMPRESSED:
                return content
        verb = "is larger" if self.path is None else "decompresses to more"
        raise ValueError(
            f"{self.name} {verb} than {_in_units(LARGEST_DECOMPRESSED)}, the limit for compressed files and standard "
            "input: if you trust it, decompress it first and give that file"
        )

    def _is_within_limit(self, path: Path) -> bool:
        """Whether a compressed file is small enough; one that may be too large is read once in constant memory."""
        if path.stat().st_size * LARGEST_RATIO <= LARGEST_DECOMPRESSED:
            return True
        size = 0
        with open_raw(path).file as file:
            while size <= LARGEST_DECOMPRESSED and (block := file.read(2**20)):
                size += len(block)
        return size <= LARGEST_DECOMPRESSED

    @contextmanager
    def named(self) -> Iterator[None]:
        """Inside, errors of reading and decompressing are raised as ValueError with the name of the table."""
        try:
            yield
        except (OSError, *DAMAGED) as error:
            kind = "CSV" if self.kind == "text" else "Parquet or Arrow"
            raise ValueError(f"{self.name} is not a readable {kind} file: {error}") from error


def _in_units(size: int) -> str:
    """A number of bytes as text: 2 GiB."""
    power = min((size.bit_length() - 1) // 10, 3)
    return f"{size / 1024**power:g} {('bytes', 'KiB', 'MiB', 'GiB')[power]}"


def open_raw(source: str | Path) -> RawTable:
    """Open a file, or standard input if the name is "-"; compression and kind are found in the first bytes.

    Raises ValueError if there is no such file, it is empty, or it is of a kind that cannot be read.
    """
    path = None if source == STANDARD_INPUT else Path(source)
    name = "standard input" if path is None else str(path)
    return raw_table(_opened(path, name), name, path)


def raw_table(file: Any, name: str, path: Path | None = None) -> RawTable:
    """An open file, or any object with ``read``, decompressed; ``path`` is that of a local file."""
    first, opened = _peeked(file)
    decompress = next((known for magic, known in DECOMPRESSORS.items() if first.startswith(magic)), None)
    if decompress is not None:
        try:
            first, opened = _peeked(decompress(opened))
        except (OSError, *DAMAGED) as error:
            problem = f"{name} is not a readable CSV file: it cannot be decompressed: {error}"
            raise ValueError(problem) from error
    if not first:
        raise ValueError(f"{name} is empty; a table with a header is expected")
    return RawTable(name, _kind(first, name), opened, path, decompress is not None)


def _opened(path: Path | None, name: str) -> BinaryIO:
    if path is None:
        return sys.stdin.buffer
    if path.is_dir():
        raise ValueError(f"{name} is a folder; give the file of a table")
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise ValueError(f"there is no file {name}") from None


def _peeked(file: Any) -> tuple[bytes, io.BufferedReader]:
    """The first bytes, and a file that still begins with them."""
    first = b""
    while len(first) < FIRST_BYTES and (more := file.read(FIRST_BYTES - len(first))):
        first += more
    return first, chained(first, file)


def _kind(first: bytes, name: str) -> str:
    for magic, meaning in OTHER_FILES.items():
        if first.startswith(magic):
            raise ValueError(
                f"{name} is {meaning}; give a CSV, Parquet or Arrow file (export the table as CSV)"
            )
    if first[8:10] == b'{"':
        raise ValueError(
            f"{name} is a model file, where a table is expected; the model comes first, then the table"
        )
    return next((kind for magic, kind in KINDS.items() if first.startswith(magic)), "text")


def _unzstd(file: BinaryIO) -> Any:
    try:
        return pyarrow().CompressedInputStream(pyarrow().PythonFile(file, mode="r"), "zstd")
    except ImportError:
        raise ValueError("reading tables compressed by zstd needs pyarrow: pip install pyarrow") from None


DECOMPRESSORS: Mapping[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"\x28\xb5\x2f\xfd": _unzstd,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
"""First bytes -> how a compressed file is read, whatever its name."""


# -- Text in any encoding as UTF-8 ---------------------------------------------------------------------------

MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
"""Byte order mark at the beginning -> encoding."""


def _utf8_parts(file: BinaryIO, encoding: str, name: str) -> Iterator[bytes]:
    """The bytes of a file in another encoding in UTF-8. Raises ValueError if they are not text in that encoding."""
    decoder, data = codecs.getincrementaldecoder(encoding)(), b"more"
    while data:
        data = file.read(BYTES)
        try:
            yield decoder.decode(data, final=not data).encode()
        except UnicodeError as error:
            raise ValueError(
                f"{name} is not text in {encoding}: {error}; name the encoding with --encoding"
            ) from error


def as_utf8(file: io.BufferedReader, encoding: str | None, name: str) -> io.BufferedReader:
    """A file as UTF-8 without a byte order mark; by default it is in UTF-8, or as its byte order mark says."""
    first = file.peek(4)[:4]
    found = encoding or next((known for mark, known in MARKS.items() if first.startswith(mark)), "utf-8")
    try:
        plain = codecs.lookup(found).name == "utf-8"
    except LookupError:
        raise ValueError(
            f"unknown encoding {found!r}; usual ones are utf-8, latin-1, cp1252 and utf-16"
        ) from None
    return file if plain else io.BufferedReader(FileOfParts(_utf8_parts(file, found, name), file), BYTES)

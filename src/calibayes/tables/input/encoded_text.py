"""Text in any encoding as UTF-8."""

from __future__ import annotations

import codecs
import io
from typing import Any, BinaryIO

MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
"""Byte order mark at the beginning -> encoding."""
BYTES = 2**18


class AsUTF8(io.RawIOBase):
    """A file in another encoding, as UTF-8. Raises ValueError if bytes are not text in that encoding."""

    def __init__(self, file: BinaryIO, encoding: str, name: str) -> None:
        self._file, self._waiting, self._name, self._encoding = file, b"", name, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._waiting:
            data = self._file.read(BYTES)
            self._waiting = self._decoded(data).encode()
            if not data:
                break
        data, self._waiting = self._waiting[: len(buffer)], self._waiting[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def _decoded(self, data: bytes) -> str:
        try:
            return self._decoder.decode(data, final=not data)
        except UnicodeError as error:
            raise ValueError(
                f"{self._name} is not text in {self._encoding}: {error}; name the encoding with --encoding"
            ) from error

    def close(self) -> None:
        self._file.close()
        super().close()


def as_utf8(file: BinaryIO, encoding: str | None, name: str) -> BinaryIO:
    """A file as UTF-8 without a byte order mark; by default it is in UTF-8, or as its byte order mark says."""
    buffered = file if isinstance(file, io.BufferedReader) else io.BufferedReader(file)  # type: ignore[type-var]
    first = buffered.peek(4)[:4]
    found = encoding or next((known for mark, known in MARKS.items() if first.startswith(mark)), "utf-8")
    try:
        plain = codecs.lookup(found).name == "utf-8"
    except LookupError:
        raise ValueError(
            f"unknown encoding {found!r}; usual ones are utf-8, latin-1, cp1252 and utf-16"
        ) from None
    return buffered if plain else io.BufferedReader(AsUTF8(buffered, found, name), buffer_size=BYTES)

"""Text of a CSV file in blocks that end where a record ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

LARGEST_RECORD = 2**26
"""Bytes in which a record must end: otherwise a quotation mark is not closed."""


def record_pattern(separator: str) -> re.Pattern[bytes]:
    """Matches one record with its end of line. Cells that begin with a quotation mark may contain any character."""
    s = re.escape(separator.encode())
    cell = rb'(?:"[^"]*+(?:""[^"]*+)*+"[^%s\n]*+|[^"%s\n][^%s\n]*+)?+' % (s, s, s)
    return re.compile(rb"%s(?:%s%s)*+\n" % (cell, s, cell))


def record_blocks(file: BinaryIO, separator: str, size: int) -> Iterator[bytes]:
    """The text in blocks of whole records, of about ``size`` bytes.

    Raises ValueError if a quoted cell does not end.
    """
    records = re.compile(rb"(?:%s)*+" % record_pattern(separator).pattern)
    waiting = b""
    while more := file.read(size):
        waiting += more
        end = _end_of_records(waiting, records)
        if end:
            yield waiting[:end]
            waiting = waiting[end:]
        elif len(waiting) > LARGEST_RECORD:
            raise ValueError('a row has no end: a quotation mark (") that opens a cell is not closed')
    if waiting.strip(b"\r\n"):
        yield waiting


def _end_of_records(text: bytes, records: re.Pattern[bytes]) -> int:
    """Number of bytes of the records that end in a text."""
    if b'"' not in text:
        return text.rfind(b"\n") + 1
    found = records.match(text)
    return found.end() if found else 0

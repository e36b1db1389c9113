"""Columns of bytes in the order in which trees read them: eight columns of a row in one word, word by word.

Code 0 is a missing value; 1 and more are bins or levels in order. The cells of all columns lie side by side: code v of
column j is cell ``first[j] + v``.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_int64, as_type

WORD = 8
"""Columns in a word."""
MOST_CODES = 256
"""Largest number of codes of a column, that of missing values included."""
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class ByteColumns(NamedTuple):
    """Codes of n rows and d columns."""

    words: Array
    """(ceil(d / 8), n) words; column 8 t + s is byte s of word t."""
    first: Array
    """First cell of each column and the number of all cells, (d + 1,) integers."""

    @property
    def n(self) -> int:
        return int(self.words.shape[1])

    @property
    def d(self) -> int:
        return len(self.first) - 1

    def column(self, j: int) -> Array:
        """The codes of a column, (n,) bytes."""
        return np.asarray(self.words[j // WORD].view(np.uint8).reshape(-1, WORD)[:, _byte(j)])

    def rows(self, selection: Array | slice) -> ByteColumns:
        """The columns of some rows."""
        return ByteColumns(np.ascontiguousarray(self.words[:, selection]), self.first)

    def in_memory(self) -> ByteColumns:
        """The columns in the types and the memory layout that native code reads."""
        return ByteColumns(as_type(self.words, np.uint64), as_int64(self.first))

    def order(self) -> Array:
        """All columns in an order that depends on their codes alone, not on their position, (d,) int32."""
        digests = [_digest(self.column(j)) for j in range(self.d)]
        return np.array(sorted(range(self.d), key=digests.__getitem__), dtype=np.int32)

    def fractions(self) -> Array:
        """A number from 0 to 1 for each row that looks random, (n,).

        It depends on how often the row's codes occur in its columns, not on the order of rows and columns.
        """
        mixed = np.zeros(self.n, dtype=np.uint64)
        for j in range(self.d):
            codes = self.column(j)
            seed = np.uint64(int.from_bytes(_digest(np.bincount(codes, minlength=MOST_CODES)), "little"))
            mixed += _mixed(np.arange(MOST_CODES, dtype=np.uint64) + seed)[codes]
        return np.asarray((_mixed(mixed) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _digest(array: Array) -> bytes:
    return hashlib.blake2b(array.tobytes(), digest_size=8).digest()


def _mixed(numbers: Array) -> Array:
    """Hashes of 64-bit numbers."""
    for _ in range(2):
        numbers = (numbers ^ numbers >> np.uint64(32)) * MULTIPLIER
    return numbers ^ numbers >> np.uint64(29)


def _byte(j: int) -> int:
    """Place of a column in the memory of its word: byte s is worth 256**s."""
    place = j % WORD
    return place if np.little_endian else WORD - 1 - place


def byte_columns(codes: Array, sizes: Array) -> ByteColumns:
    """Codes (n, d) of bytes, of which column j has codes below ``sizes[j]``."""
    n, d = codes.shape
    words = np.zeros((-(-d // WORD), n), dtype=np.uint64)
    for j in range(d):
        words[j // WORD].view(np.uint8).reshape(n, WORD)[:, _byte(j)] = codes[:, j]
    return ByteColumns(words, first_cells(sizes))


def first_cells(sizes: Array) -> Array:
    """First cell of each column, and the number of all cells, (d + 1,)."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

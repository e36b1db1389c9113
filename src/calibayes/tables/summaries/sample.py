"""The rows that encoders of several columns at once learn from: all, or a sample by row number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.row_hashes import mixed
from calibayes.tables.table import Table

SAMPLE_ROWS = 2**17
"""All rows are the sample of a table with at most so many; of more rows, about so many are drawn."""


class Sample(NamedTuple):
    """Rows of a table, in their order."""

    table: Table
    weight: Array
    codes: Array | None
    """Class codes, -1 for a row without a label; None if the classes are not known."""


HASHED_ROWS = 2**16
"""Rows whose numbers are hashed at a time, so that hashes of all rows of a large table need no memory."""


def in_sample(first: int, count: int, n: int, most: int = SAMPLE_ROWS) -> Array:
    """Which of the rows from number ``first`` on are in the sample of a table with n rows, (count,) booleans.

    A row is in the sample if a hash of its number is small: neither other rows nor their division into blocks matter.
    """
    if n <= most:
        return np.ones(count, dtype=bool)
    chosen, bound = np.empty(count, dtype=bool), np.uint64(2**64 * most // n)
    for start in range(0, count, HASHED_ROWS):
        stop = min(start + HASHED_ROWS, count)
        numbers = np.arange(first + start + 1, first + stop + 1, dtype=np.uint64)
        chosen[start:stop] = mixed(mixed(numbers)) < bound
    return chosen


def sample_positions(n: int) -> Array | None:
    """Positions of the rows in the sample of a table with n rows; None if all are."""
    chosen = in_sample(0, n, n)
    return None if chosen.all() else np.flatnonzero(chosen)


def sample_of(table: Table, weight: Array, codes: Array | None) -> Sample:
    """The sample of a table in memory."""
    chosen = sample_positions(table.n)
    if chosen is None:
        return Sample(table, weight, codes)
    return Sample(table.rows(chosen), weight[chosen], None if codes is None else codes[chosen])

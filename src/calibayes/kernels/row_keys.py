"""Keys of rows, columns and classes that depend on their content alone, not on their order or names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.cut_points import MULTIPLIER, mixed
from calibayes.kernels.dispatch import as_type, native_team, twin
from calibayes.kernels.tree_nodes import MOST_CODES, ByteColumns

ROUNDS = 2
"""How often columns are told apart by the rows, and rows by the columns."""


CODE_WORDS = mixed(np.arange(1, MOST_CODES + 1, dtype=np.uint64))
"""The word of each code."""


def native_row_hashes(module: Any, columns: ByteColumns, keys: Array, start: Array) -> Any:
    if not columns.d:
        return NotImplemented
    out = np.array(start, dtype=np.uint64)
    tables = mixed(CODE_WORDS ^ keys[:, None])
    tables[keys == 0] = 0
    module.row_hashes(as_type(columns.words, np.uint64), tables, native_team(module), out)
    return mixed(out)


@twin(native_row_hashes)
def row_hashes(columns: ByteColumns, keys: Array, start: Array) -> Array:
    """A hash of each row: of its start (n,) and a sum over its columns, each with a key (d,); columns of key 0 do not count."""
    hashes = start.copy()
    for j in range(columns.d):
        if keys[j]:
            hashes += mixed(CODE_WORDS ^ keys[j])[columns.column(j)]
    return mixed(hashes)


def native_column_keys(module: Any, columns: ByteColumns, hashes: Array) -> Any:
    if not columns.d:
        return NotImplemented
    out = np.zeros(columns.d, dtype=np.uint64)
    module.column_keys(
        as_type(columns.words, np.uint64), CODE_WORDS, as_type(hashes, np.uint64), native_team(module), out
    )
    return out


@twin(native_column_keys)
def column_keys(columns: ByteColumns, hashes: Array) -> Array:
    """For each column the sum over the rows of a word that depends on the code and the hash of the row, (d,)."""
    words = [mixed(CODE_WORDS[columns.column(j)] ^ hashes) for j in range(columns.d)]
    return np.array([word.sum(dtype=np.uint64) for word in words], dtype=np.uint64).reshape(columns.d)


class LabeledColumns(Protocol):
    """A block of rows: codes and class codes."""

    @property
    def columns(self) -> ByteColumns: ...

    @property
    def labels(self) -> Array: ...


class LabeledBlocks(Protocol):
    """The blocks of all rows."""

    def total(self, function: Callable[[Any], Mapping[str, Any]]) -> Any: ...

    def each(self, function: Callable[[Any], Any]) -> list[Any]: ...


@dataclass(frozen=True, eq=False)
class Keys:
    """Keys of columns (d,), 0 for one of a single code, and of classes (k,)."""

    columns: Array
    classes: Array
    seed: int

    def hashes(self, rows: LabeledColumns) -> Array:
        """A hash of each row of a block, (n,)."""
        start = mixed(np.uint64((self.seed + int(MULTIPLIER)) % 2**64) ^ self.classes)
        return row_hashes(rows.columns, self.columns, start[rows.labels])

    def sums(self, rows: LabeledColumns) -> dict[str, Array]:
        """Sums over the rows of a block that give finer keys."""
        hashes, classes = self.hashes(rows), np.zeros(len(self.classes), dtype=np.uint64)
        np.add.at(classes, rows.labels, mixed(hashes))
        return {"columns": column_keys(rows.columns, hashes), "classes": classes}


def keys_of(blocks: LabeledBlocks, k: int, seed: int = 0) -> Keys:
    """Keys of the columns and classes of all rows.

    A row's hash is a sum over its columns, each with a key; the key of a column is a sum over the rows, and so is that of a
    class. Repeated, this tells all columns and classes apart that differ in their content (color refinement, as for
    graphs). What only a symmetry of the whole table could tell apart is told apart by its position.
    """
    ranges = blocks.each(_code_ranges)
    low, high = (choose([part[i] for part in ranges], axis=0) for i, choose in ((0, np.min), (1, np.max)))
    varies = low < high
    keys = Keys(varies.astype(np.uint64), np.zeros(k, dtype=np.uint64), seed)
    for _ in range(ROUNDS):
        sums = blocks.total(keys.sums)
        keys = Keys(np.where(varies, sums["columns"] | np.uint64(1), np.uint64(0)), sums["classes"], seed)
    return Keys(_told_apart(keys.columns), _told_apart(keys.classes | np.uint64(1)), seed)


def _told_apart(keys: Array) -> Array:
    """Keys of which the second and further ones of equal ones are changed; 0 stays."""
    order, copy = np.argsort(keys, kind="stable"), np.empty(len(keys), dtype=np.uint64)
    copy[order] = copies_before(keys[order])
    return np.where((copy > 0) & (keys != 0), mixed(mixed(copy) ^ keys) | np.uint64(1), keys)


def copies_before(ordered: Array) -> Array:
    """How many equal numbers are before each of ascending ones, (n,) uint64."""
    again = np.append(False, ordered[1:] == ordered[:-1])
    if not again.any():
        return np.broadcast_to(np.uint64(0), len(ordered))
    begin = np.maximum.accumulate(np.where(again, 0, np.arange(len(ordered))))
    return (np.arange(len(ordered)) - begin).astype(np.uint64)


def _code_ranges(rows: LabeledColumns) -> tuple[Array, Array]:
    """Smallest and largest code of each column."""
    columns = rows.columns
    codes = [columns.column(j) for j in range(columns.d)]
    low = [code.min(initial=MOST_CODES - 1) for code in codes]
    return np.array(low, dtype=int), np.array([code.max(initial=0) for code in codes], dtype=int)


class RowOrder(NamedTuple):
    """An order of all rows that depends on their content."""

    place: Array
    """The place of each row among those of its class, (n,)."""
    fractions: Array
    """A number of each row that looks random, (n,) uint32."""


def row_order(hashes: Array, labels: Array, weight: Array) -> RowOrder:
    """An order of rows of these hashes (n,); equal rows, which no content can tell apart, are spread over it.

    Rows of equal hashes are told apart by their weight (n,), or (1,) for all.
    """
    order = np.argsort(hashes, kind="stable") if len(weight) == 1 else np.lexsort([weight, hashes])
    copies = copies_before(hashes[order])
    words = np.empty(len(hashes), dtype=np.uint64)
    words[order] = copies
    del order, copies  # of very many rows each array counts
    words = mixed(mixed(words + MULTIPLIER) ^ hashes)
    return RowOrder(_places(words, labels), (words >> np.uint64(32)).astype(np.uint32))


def _places(words: Array, labels: Array) -> Array:
    """The place of each row among those of its class, (n,), in ascending order of words (n,)."""
    kind = np.int32 if len(words) < 2**31 else np.int64
    order = np.argsort(words, kind="stable").astype(kind)
    order = order[np.argsort(labels[order], kind="stable")]
    counts = np.bincount(labels, minlength=1)
    place: Array = np.empty(len(words), dtype=kind)
    place[order] = np.arange(len(words), dtype=kind)
    return np.asarray(place - (np.cumsum(counts) - counts).astype(kind)[labels])

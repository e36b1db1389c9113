"""Columns of levels: their integer codes, weighted counts, smoothing of counts over ordered levels, sums of table entries.

The code of a level is its number from 0 on, in the narrowest signed type that holds all of them and -1 (missing).
Tables hold the cells of all columns side by side: level v of column j is cell ``first[j] + v`` where ``first`` is
`offsets` of the numbers of levels. A code that is negative, or not below the number of levels, has no cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels import event_counts
from calibayes.kernels.cut_points import CellCounts, CellTree, cell_counts, cell_weights, tree_arrays
from calibayes.kernels.dispatch import (
    CODE_TYPES,
    as_float64,
    as_int64,
    as_type,
    code_type,
    is_matrix,
    map_ranges,
    portable,
    row_major,
    twin,
)

MOST_CELLS = 2**26
"""Native code supports fewer cells of all columns."""
NO_LEVEL = 2**31
"""Reported as the largest code of a column that contains a value which cannot be a code."""


@lru_cache(maxsize=256)
def offsets(levels: tuple[int, ...]) -> Array:
    """First cell of each column and the total number of cells at the end, (d + 1,); read-only because it is cached."""
    first = np.concatenate([[0], np.cumsum(levels, dtype=np.intp)]).astype(np.intp)
    first.flags.writeable = False
    return first


def cells(codes: Array, first: Array) -> Array:
    """Cell of each code, (n, d); the total number of cells for a code that is no level."""
    local = codes.astype(np.intp, copy=False)
    return np.where((local < 0) | (local >= np.diff(first)), first[-1], local + first[:-1])


def native_supports(codes: Any, first: Array, kinds: str) -> bool:
    """Whether native code supports these codes (n, d), of the given kinds of type, and this number of cells."""
    return is_matrix(codes, kinds) and codes.shape[1] > 0 and first[-1] + len(first) < MOST_CELLS


def native_look_up(module: Any, codes: Array, table: Array, first: Array, kinds: str = "iu") -> Any:
    if not native_supports(codes, first, kinds) or len(table) == 0:
        return NotImplemented
    out = np.empty((len(codes), len(table)))
    module.look_up(row_major(codes), as_float64(table), as_int64(first), out)
    return out


def native_weighted_counts(module: Any, codes: Array, weights: Array, first: Array, kinds: str = "iu") -> Any:
    if not native_supports(codes, first, kinds) or not is_matrix(weights, "fiub") or weights.shape[1] == 0:
        return NotImplemented
    out = np.empty((weights.shape[1], int(first[-1])))
    module.weighted_counts(row_major(codes), as_float64(weights), as_int64(first), out)
    return out


@twin(native_weighted_counts)
def weighted_counts(codes: Array, weights: Array, first: Array) -> Array:
    """Sum of the weights (n, k) per class and cell, (k, cells), for codes (n, d)."""
    flat = cells(codes, first).ravel()
    d = codes.shape[1]
    sums = [np.bincount(flat, np.repeat(column, d), minlength=first[-1] + 1)[:-1] for column in weights.T]
    return np.reshape(np.asarray(sums), (weights.shape[1], first[-1]))


def look_up_each(codes: Array, table: Array, first: Array) -> Array:
    """Entry of a table (k, cells) for each code (n, d), (n, k, d); 0 where a code is no level."""
    padded = np.concatenate([table, np.zeros((len(table), 1))], axis=1)
    return np.swapaxes(padded[:, cells(codes, first)], 0, 1)


@twin(native_look_up)
def look_up(codes: Array, table: Array, first: Array) -> Array:
    """Sum over columns of the entries of a table (k, cells) for codes (n, d), (n, k)."""
    padded = np.concatenate([table, np.zeros((len(table), 1))], axis=1).T.copy()
    sums = np.zeros((len(codes), len(table)))
    for column in cells(codes, first).T:
        sums += padded[column]
    return sums


@portable
def sums_by_column(table: Array, first: Array) -> Array:
    """Sum over the cells of each column, repeated for each of its cells, (..., cells)."""
    return np.repeat(np.add.reduceat(table, first[:-1], axis=-1), np.diff(first), axis=-1)


def draw(probability: Array, rng: np.random.Generator) -> Array:
    """One level per row, (n,), drawn from unnormalized probabilities (n, levels)."""
    cumulative = np.cumsum(probability, axis=1)
    uniform = rng.random(len(probability)) * cumulative[:, -1]
    return np.asarray(np.sum(uniform[:, None] >= cumulative[:, :-1], axis=1))


def recode_table(table: Array, codes: Sequence[Array], levels: Sequence[int]) -> Array:
    """A table (k, old levels, ...) with renumbered levels, (k, *levels), 0 for new levels.

    Along axis i, old level v becomes level ``codes[i][v]``, or is dropped if that is negative.
    """
    remaining = [np.flatnonzero(code >= 0) for code in codes]
    result = np.zeros((len(table), *levels))
    classes = np.arange(len(table))
    targets = np.ix_(classes, *(code[old] for code, old in zip(codes, remaining, strict=True)))
    result[targets] = table[np.ix_(classes, *remaining)]
    return result


def recode_counts(table: Array, codes: Sequence[Array], levels: Sequence[int]) -> Array:
    """Counts (k, old cells) of columns side by side with renumbered levels, (k, cells).

    Level v of column j becomes level ``codes[j][v]`` of ``levels[j]``, or is dropped if that is negative.
    """
    tables = np.split(table, np.cumsum([len(code) for code in codes])[:-1], axis=1)
    triples = zip(tables, codes, levels, strict=True)
    return np.concatenate([recode_table(table, (code,), (size,)) for table, code, size in triples], axis=1)


# -- codes ---------------------------------------------------------------------------------------------------------


def native_largest_codes(module: Any, codes: Array) -> Any:
    if not is_matrix(codes, "iu"):
        return NotImplemented
    largest = np.zeros(codes.shape[1], dtype=np.uint64)
    module.top(row_major(codes), largest)
    # Native code compares without sign: a negative code of a narrow type is above the largest positive one.
    limit = min(int(np.iinfo(codes.dtype).max), NO_LEVEL - 1)
    return np.where(largest > limit, NO_LEVEL, largest).astype(np.int64)


def native_narrow_into(module: Any, out: Array, codes: Array, levels: Array) -> Any:
    levels = np.asarray(levels)
    if not is_matrix(codes, "iu") or not out.flags.carray or out.dtype not in CODE_TYPES:
        return NotImplemented
    if levels.min(initial=0) < 0 or levels.max(initial=0) > np.iinfo(out.dtype).max + 1:
        return NotImplemented
    largest = np.zeros(codes.shape[1], dtype=np.uint64)
    module.narrow(row_major(codes), np.ascontiguousarray(levels, dtype=np.uint32), out, largest)
    return np.where(largest > NO_LEVEL - 1, NO_LEVEL, largest).astype(np.int64)


@twin(native_largest_codes)
def largest_codes(codes: Array) -> Array:
    """Largest code of each column of codes (n, d), (d,); `NO_LEVEL` if one is negative or above 2**31 - 1."""
    wide = codes.astype(np.int64)
    return np.where((wide < 0) | (wide >= NO_LEVEL), NO_LEVEL, wide).max(axis=0, initial=0)


@twin(native_narrow_into)
def narrow_into(out: Array, codes: Array, levels: Array) -> Array:
    """Write codes (n, d) into ``out`` (n, d), -1 for those outside the levels (d,); return `largest_codes` of the input."""
    wide = codes.astype(np.int64)
    out[...] = np.where((wide >= 0) & (wide < levels), wide, -1)
    return largest_codes.numpy(codes)


def column_maxima(codes: Array) -> Array:
    """`largest_codes` of a table of any number of rows, in parallel, (d,)."""
    return np.max(map_ranges(lambda rows: largest_codes(codes[rows]), len(codes), codes[:1].nbytes), axis=0)


def as_codes(integers: Array, levels: Array) -> Array:
    """Integers (n, d) as codes, -1 for those outside the levels (d,). Copies only if necessary."""
    kind = code_type(int(levels.max(initial=1)))
    if integers.dtype.itemsize == np.dtype(kind).itemsize and (column_maxima(integers) < levels).all():
        return integers.view(kind)
    return narrow(integers, levels, kind)[0]


def narrow(integers: Array, levels: Array, kind: type[np.signedinteger]) -> tuple[Array, Array]:
    """Codes (n, d) of a given type, -1 outside the levels (d,), and the largest code of each input column, (d,)."""
    out, size = np.empty(integers.shape, dtype=kind), integers[:1].nbytes
    maxima = map_ranges(lambda rows: narrow_into(out[rows], integers[rows], levels), len(out), size)
    return out, np.max(maxima, axis=0)


def codes_and_maxima(integers: Array) -> tuple[Array, Array] | None:
    """Integers (n, d) as int8 or int16 codes and the largest of each column, (d,); None if one is negative or too large."""
    for kind in CODE_TYPES[:2]:
        limits = np.full(integers.shape[1], np.iinfo(kind).max + 1)
        if integers.dtype.itemsize == np.dtype(kind).itemsize:
            codes, maxima = integers.view(kind), column_maxima(integers)
        else:
            codes, maxima = narrow(integers, limits, kind)
        if (maxima < limits).all():
            return codes, maxima
    return None


FARTHEST = 8.0
"""Distance in bandwidths beyond which the kernel is set to 0: there it is 1e-14 of its maximum."""


def smooth(table: Array, bandwidth: Array) -> Array:
    """A table (..., cells) smoothed along its last axis by a Gaussian kernel of given bandwidths (...) in cells.

    The kernel of each cell is normalized over the existing cells, so sums are preserved; bandwidth 0 changes nothing.
    Neighbors are added distance by distance. A Fourier transform would be faster, but its rounding error is relative to
    the largest cell, and the logarithm of a small cell matters as much as that of a large one.
    """
    kernel = _kernel(np.asarray(bandwidth, dtype=np.float64), table.shape[-1])
    normalized = table / _kernel_sums(kernel)
    result, contribution = normalized.copy(), np.empty_like(normalized)
    for gap in range(1, 1 + np.flatnonzero(kernel.any(axis=tuple(range(kernel.ndim - 1))))[-1]):
        np.multiply(normalized, kernel[..., gap, None], out=contribution)
        result[..., gap:] += contribution[..., :-gap]
        result[..., :-gap] += contribution[..., gap:]
    return np.asarray(result)


def smoothing_matrices(bandwidth: Array, cells: Array) -> Array:
    """Matrices (d, most, most) for d tables of ``cells`` (d,) cells and bandwidths (d,): ``table @ matrix`` is `smooth`.

    ``most`` is the largest number of cells; entries beyond the cells of a table are 0.
    """
    most = int(cells.max(initial=0))
    result = np.zeros((len(cells), most, most))
    gap = np.abs(np.arange(most)[:, None] - np.arange(most))
    for matrix, width, size in zip(result, np.asarray(bandwidth, dtype=np.float64), cells, strict=True):
        kernel = _kernel(width, int(size))
        matrix[:size, :size] = kernel[gap[:size, :size]] / _kernel_sums(kernel)[:, None]
    return result


def _kernel(bandwidth: Array, cells: int) -> Array:
    """Unnormalized kernel at each distance, 1 at distance 0, (..., cells)."""
    gap = np.arange(cells)
    scaled = np.minimum(gap / np.where(bandwidth > 0, bandwidth, 1.0)[..., None], 2.0 * FARTHEST)
    near = (scaled <= FARTHEST) & ((bandwidth[..., None] > 0) | (gap == 0))
    return np.where(near, np.exp(-0.5 * scaled**2), 0.0)


def _kernel_sums(kernel: Array) -> Array:
    """Sum over all existing cells of the kernel centered at each cell, (..., cells)."""
    one_side = np.cumsum(kernel, axis=-1)
    return np.asarray(one_side + one_side[..., ::-1] - kernel[..., :1])


# -- Rows and weights by class of the values of a column, in one sweep over its rows -------------------------


class LabeledRows(NamedTuple):
    """Labels and weights of rows."""

    labels: Array
    """Class codes, (n,) int32, negative for a row without a label."""
    weight: Array
    """(n,)"""
    columns: int
    """Number of classes and one: weights of rows without a label are in the last column."""


class CellTotals(NamedTuple):
    """The cells of a tree that have rows."""

    entries: Array
    """Positions among the entries of the tree, ascending, (cells,)."""
    totals: Array
    """Rows, smallest number, largest number, and weights by class of each cell, (cells, 3 + k + 1)."""

    @property
    def weights(self) -> Array:
        """Weights by class, (cells, k + 1)."""
        return self.totals[:, 3:]

    @property
    def counts(self) -> CellCounts:
        """Rows, smallest and largest number, and total weight of each cell."""
        rows, low, high = self.totals[:, :3].T.copy()
        return CellCounts(self.entries, rows.astype(np.int64), low, high, self.weights.sum(axis=1))


class CodeTotals(NamedTuple):
    """Rows (size,) and weights by class (size, k + 1) of codes."""

    rows: Array
    weights: Array


def native_cell_totals(module: Any, x: Array, tree: CellTree, rows: LabeledRows) -> Any:
    size = len(tree.child)
    entries, order = np.empty((2, size), dtype=np.int64)
    totals = np.empty((size, 3 + rows.columns))
    count = module.cell_totals(as_float64(x), *tree_arrays(tree), *_row_arrays(rows), entries, order, totals)
    return CellTotals(entries[order[:count]], totals[order[:count]])


@twin(native_cell_totals)
def cell_totals(x: Array, tree: CellTree, rows: LabeledRows) -> CellTotals:
    """Rows, smallest and largest number, and weights by class of the cells of x (n,); NaN is in no cell."""
    counts = cell_counts.numpy(x, rows.weight, tree)
    weights = cell_weights.numpy(x, tree, rows.labels, rows.weight, rows.columns)[counts.entries]
    return cells_with(counts, weights)


def cells_with(counts: CellCounts, weights: Array) -> CellTotals:
    """Cells and their weights by class as `CellTotals`."""
    return CellTotals(counts.entries, np.column_stack([counts.rows, counts.low, counts.high, weights]))


def native_united_cells(module: Any, left: CellTotals, right: CellTotals) -> Any:
    room = len(left.entries) + len(right.entries)
    entries, totals = np.empty(room, dtype=np.int64), np.empty((room, left.totals.shape[1]))
    parts = [(as_int64(part.entries), as_float64(part.totals)) for part in (left, right)]
    count = module.united_cells(*parts[0], *parts[1], entries, totals)
    return CellTotals(entries[:count].copy(), totals[:count].copy())


@twin(native_united_cells)
def united_cells(left: CellTotals, right: CellTotals) -> CellTotals:
    """The cells that have rows in either part, with the totals of both."""
    entries = np.union1d(left.entries, right.entries)
    totals = np.zeros((len(entries), left.totals.shape[1]))
    totals[:, 1], totals[:, 2] = np.inf, -np.inf
    for part in (left, right):
        at = np.searchsorted(entries, part.entries)
        totals[at, 0] += part.totals[:, 0]
        totals[at, 1] = np.minimum(totals[at, 1], part.totals[:, 1])
        totals[at, 2] = np.maximum(totals[at, 2], part.totals[:, 2])
        totals[at, 3:] += part.totals[:, 3:]
    return CellTotals(entries, totals)


def native_code_totals(module: Any, codes: Array, first: int, size: int, rows: LabeledRows) -> Any:
    totals = np.zeros((size, 1 + rows.columns))
    codes = as_type(codes, codes.dtype.newbyteorder("="))
    module.add_code_totals(codes, first, *_row_arrays(rows), totals)
    return CodeTotals(totals[:, 0].astype(np.int64), totals[:, 1:].copy())


@twin(native_code_totals)
def code_totals(codes: Array, first: int, size: int, rows: LabeledRows) -> CodeTotals:
    """Rows and weights by class of the codes from ``first`` to ``first + size - 1``; codes (n,) are integers.

    Raises ValueError if there are others.
    """
    if len(codes) and not first <= int(codes.min()) <= int(codes.max()) < first + size:
        raise ValueError("a code or a label is beyond the totals")
    places = (codes - np.asarray(first, dtype=codes.dtype)).astype(np.int64)
    labels = np.where(rows.labels < 0, rows.columns - 1, rows.labels)
    weights = np.bincount(places * rows.columns + labels, rows.weight, size * rows.columns)
    return CodeTotals(np.bincount(places, minlength=size), weights.reshape(size, rows.columns))


def _row_arrays(rows: LabeledRows) -> tuple[Array, Array]:
    return as_type(rows.labels, np.int32), as_float64(rows.weight)


# -- Binary columns: tables of 0 and 1, dense (NaN is a missing value) or CSR --------------------------------


def native_flag_counts(module: Any, x: Array, weights: Array) -> Any:
    if not is_matrix(x, "f"):
        return NotImplemented
    sums = native_weighted_counts(module, x, weights, np.arange(0, 2 * x.shape[1] + 1, 2), "f")
    return sums if sums is NotImplemented else (sums[:, ::2], sums[:, 1::2])


def native_flag_scores(module: Any, x: Array, zero: Array, one: Array) -> Any:
    if not is_matrix(x, "f"):
        return NotImplemented
    table = np.stack([zero, one], axis=2).reshape(len(zero), 2 * x.shape[1])
    return native_look_up(module, x, table, np.arange(0, table.shape[1] + 1, 2), "f")


@twin(native_flag_counts)
def flag_counts(x: Array, weights: Array) -> tuple[Array, Array]:
    """Sums of the weights (n, k) over the cells that are 0 and over those that are 1, (k, d) each."""
    return event_counts.zero_weights(x, weights), event_counts.totals(event_counts.filled(x), weights)


@twin(native_flag_scores)
def flag_scores(x: Array, zero: Array, one: Array) -> Array:
    """Sum over known cells of the entry of table ``zero`` or ``one`` (k, d), according to the cell, (n, k)."""
    if_all_zero = event_counts.sum_over_known(x, zero)
    return np.asarray(event_counts.scores(event_counts.filled(x), one - zero) + if_all_zero)


# -- Places of rows among the rows of their class ------------------------------------------------------------


def places_in_class(codes: Array) -> Array:
    """The number of rows of the same class before each row, (n,)."""
    order = np.argsort(codes, kind="stable")
    places = np.empty(len(codes), dtype=np.intp)
    places[order] = np.arange(len(codes)) - np.searchsorted(codes[order], codes[order])
    return places

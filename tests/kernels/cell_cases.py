"""Arguments for the kernels that summarize columns of numbers, at given sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibayes.kernels import cut_points
from calibayes.kernels.cut_points import CellTree, ordered_bits
from calibayes.kernels.level_counts import CellTotals, LabeledRows, cell_totals, code_totals, united_cells
from calibayes.kernels.moments import known_moments


def number_columns(rng: np.random.Generator, n: int) -> Iterator[Any]:
    """Numbers (n,): continuous, tied, of any size, with both zeros, single precision, not contiguous."""
    plain = rng.standard_normal(n)
    yield from (
        plain,
        np.round(plain, 1),
        plain * 10.0 ** rng.integers(-300, 90, n),
        plain.astype(np.float32),
    )
    yield from (np.where(rng.random(n) < 0.5, -0.0, 0.0), np.repeat(plain, 2)[::2], np.full(n, -7.0))


def distinct_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """Fewer and more distinct numbers than there may be, in few rows and in enough for native code."""
    for x in number_columns(rng, n):
        many = np.resize(x, 2 * cut_points.FIRST_ROWS + 1 + n)
        for numbers in (x, many):
            yield from ((numbers, 2**16), (numbers, 1), (numbers, max(n // 2, 1)))


def cell_trees(x: Any) -> Iterator[CellTree]:
    """A tree of one node, and one with nodes in two levels below it, for the cell of the middle number."""
    root = cut_points.root_tree()
    yield root
    middle = (
        ordered_bits(np.sort(x)[len(x) // 2 : len(x) // 2 + 1]) if len(x) else np.zeros(1, dtype=np.uint64)
    )
    entry, child = int(middle[0] >> np.uint64(48)), np.append(root.child, np.full(21, -1, dtype=np.int32))
    child[entry], child[2**16 + 3] = 1, 2
    base = np.array([0, entry << 48, middle[0]], dtype=np.uint64)
    yield CellTree(base, np.array([48, 40, 0]), np.array([0, 2**16, 2**16 + 16, 2**16 + 21]), child)


def cell_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in number_columns(rng, n):
        for tree in cell_trees(x):
            yield x, rng.random(n), tree
            yield np.where(rng.random(n) < 0.2, np.nan, x), rng.integers(0, 3, n), tree


def cell_weight_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x, weight, tree in cell_arguments(rng, n, d, k):
        yield x, tree, rng.integers(-1, k, n), weight, k + 1


def distinct_sample_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """More and fewer distinct numbers than wanted, some of them missing; hashes that must begin with zeros."""
    for x in number_columns(rng, n):
        yield from ((x, 7), (x, 2**12), (x, 30, 2), (np.where(rng.random(n) < 0.2, np.nan, x), 1))


def labeled_rows(rng: np.random.Generator, n: int, k: int) -> LabeledRows:
    return LabeledRows(rng.integers(-1, k, n).astype(np.int32), rng.random(n), k + 1)


def cell_total_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x, _, tree in cell_arguments(rng, n, d, k):
        yield x, tree, labeled_rows(rng, n, k)


def united_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """Cells of different numbers, of the same, and of none."""
    for x, tree, rows in cell_total_arguments(rng, n, d, k):
        left, right = cell_totals(x, tree, rows), cell_totals(rng.standard_normal(n), tree, rows)
        nothing = CellTotals(left.entries[:0], left.totals[:0])
        yield from ((left, right), (left, left), (nothing, right), (left, nothing))


def code_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """Integers of every type, from zero or from a negative number on."""
    for kind in ("b", "B", "h", "H", "i", "I", "q", "Q"):
        first = -5 if kind.islower() and kind != "B" else 3
        yield rng.integers(first, first + 9, n).astype(kind), first, 9, labeled_rows(rng, n, k)


def moment_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in number_columns(rng, n):
        yield x, 0.0
        yield np.where(rng.random(n) < 0.2, np.nan, x), 0.3


CELL_CASES = {
    "cell_totals": (cell_totals, cell_total_arguments),
    "united_cells": (united_cells, united_arguments),
    "code_totals": (code_totals, code_arguments),
    "known_moments": (known_moments, moment_arguments),
    "distinct_sample": (cut_points.distinct_sample, distinct_sample_arguments),
    "distinct_positions": (cut_points.distinct_positions, distinct_arguments),
    "cell_counts": (cut_points.cell_counts, cell_arguments),
    "cell_weights": (cut_points.cell_weights, cell_weight_arguments),
}

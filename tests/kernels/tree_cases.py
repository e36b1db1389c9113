"""Arguments for the kernels of trees, at given sizes: columns of one to 256 codes, all rows, some or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibayes.kernels import forests, row_keys, tree_nodes
from calibayes.kernels.tree_nodes import HALF, ByteColumns, LabeledScores, byte_columns


def tree_tables(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[ByteColumns, Any, Any]]:
    """Columns of one, few and 256 codes; all rows, some or none; packed numbers (n, k), some rows without any."""
    d = min(d, 10)
    for most in (1, 2, 9, 256):
        sizes = rng.integers(1, most + 1, size=d)
        sizes[0] = most
        columns = byte_columns(np.floor(rng.random((n, d)) * sizes).astype(np.uint8), sizes)
        residual = rng.integers(-(2**20), 2**20, size=(n, k)) * (rng.random((n, 1)) < 0.9)
        packed = residual * HALF + rng.integers(0, 2**20, size=(n, k)) * (residual != 0)
        for share in (1.0, 0.5, 0.0):
            yield columns, np.flatnonzero(rng.random(n) < share).astype(np.int32), packed


def split_options(rng: np.random.Generator, d: int, k: int) -> tree_nodes.SplitOptions:
    """Most columns, in any order, and with directions if one of two classes is packed."""
    direction = rng.integers(-1, 2, size=d) if k == 1 else np.zeros(d)
    allowed = rng.permutation(np.flatnonzero(rng.random(d) < 0.9)).astype(np.int32)
    return tree_nodes.SplitOptions(allowed, direction.astype(np.int8), 2.0 ** rng.uniform(-9, 22), 2.0**19)


def best_split_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """As many classes as given, and one of two, for which columns may have a direction."""
    for classes in (k, 1):
        for columns, rows, packed in tree_tables(rng, n, d, classes):
            sums, options = (
                tree_nodes.node_sums.numpy(columns, rows, packed),
                split_options(rng, columns.d, classes),
            )
            yield sums, columns.first, options
            yield sums, columns.first, options, tree_nodes.Bounds(*sorted(rng.normal(size=2)))


def divide_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for columns, rows, _ in tree_tables(rng, n, d, k):
        for most in (1, 5, 255):
            split = tree_nodes.Split(1.0, int(rng.integers(columns.d)), most, bool(rng.random() < 0.5))
            yield columns, rows, split


def grow_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """None, some or all rows held out."""
    for classes in (k, 1):
        for columns, rows, packed in tree_tables(rng, n, d, classes):
            held_out = ~np.isin(np.arange(n), rows)
            yield columns, held_out, packed, split_options(rng, columns.d, classes), int(rng.integers(1, 8))


def leaf_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """No tree, one leaf, and trees of up to 8 leaves."""
    for args in grow_arguments(rng, n, d, 2):
        grown = forests.grow_tree.numpy(*args[:-1], 8).tree
        for trees in ([], [forests.ONE_LEAF], [grown, forests.ONE_LEAF, grown]):
            yield args[0], forests.forest_of(trees)


def score_arguments(rng: np.random.Generator, n: int, k: int) -> Iterator[LabeledScores]:
    """Log scores (n, k) of classes that are uncertain, certain or impossible, labels and weights, also one for all rows."""
    k = max(k, 2)
    labels, plain = rng.integers(0, k, n), rng.normal(size=(n, k)) * 10.0 ** rng.integers(-2, 4, size=(n, 1))
    labels = labels.astype(np.int32)
    certain, impossible = np.where(np.eye(k)[labels] > 0, 0.0, -np.inf), np.full((n, k), -np.inf)
    for scores in (plain, certain, impossible, np.asfortranarray(plain)):
        for weight in (np.ones(n), rng.exponential(size=n), np.zeros(n), np.full(1, 0.3)):
            yield LabeledScores(scores, labels, weight)


def units_of(rows: LabeledScores) -> tree_nodes.Units:
    weight = np.broadcast_to(rows.weight, len(rows.labels))
    top = float(weight.max(initial=0.0))
    return tree_nodes.units_of(top, tree_nodes.in_parts(weight, top))


def factor_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for rows in score_arguments(rng, n, k):
        for leaves in (1, 5, 127):
            codes = rng.integers(0, leaves, n).astype(np.int8)
            yield np.ascontiguousarray(rows.scores), codes, rng.normal(size=(leaves, max(k, 2)))


def residual_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for rows in score_arguments(rng, n, k):
        yield rows, units_of(rows).packed, rng.integers(0, 2**32, n, dtype=np.uint32)


def leaf_sum_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for rows in score_arguments(rng, n, k):
        for leaves in (1, 5, 127):
            codes, held_out = rng.integers(0, leaves, n).astype(np.int8), rng.random(n) < 0.3
            yield rows, codes, held_out, leaves, units_of(rows).leaf


def loss_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for rows in score_arguments(rng, n, k):
        for share in (0.0, 0.3, 1.0):
            yield rows, rng.random(n) < share, units_of(rows).loss


def hash_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """Keys of all columns, of some and of none."""
    for columns, _, _ in tree_tables(rng, n, d, k):
        keys, start = (rng.integers(0, 2**64, size, dtype=np.uint64) for size in (columns.d, n))
        for share in (1.0, 0.5, 0.0):
            yield columns, np.where(rng.random(columns.d) < share, keys, np.uint64(0)), start


def column_key_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for columns, _, _ in tree_tables(rng, n, d, k):
        yield columns, rng.integers(0, 2**64, n, dtype=np.uint64)


TREE_CASES = {
    "node_sums": (tree_nodes.node_sums, tree_tables),
    "best_split": (tree_nodes.best_split, best_split_arguments),
    "divide": (tree_nodes.divide, divide_arguments),
    "grow_tree": (forests.grow_tree, grow_arguments),
    "leaf_codes": (forests.leaf_codes, leaf_arguments),
    "add_factors": (tree_nodes.add_factors, factor_arguments),
    "packed_residuals": (tree_nodes.packed_residuals, residual_arguments),
    "leaf_sums": (tree_nodes.leaf_sums, leaf_sum_arguments),
    "whole_loss": (tree_nodes.whole_loss, loss_arguments),
    "row_hashes": (row_keys.row_hashes, hash_arguments),
    "column_keys": (row_keys.column_keys, column_key_arguments),
}
"""The kernel and its arguments."""

"""Arguments for the kernels of trees, at given sizes: columns of one to 256 codes, all rows, some or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibayes.kernels import forests, tree_nodes
from calibayes.kernels.tree_nodes import HALF, ByteColumns, byte_columns


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
    for classes in (k, 1):
        for columns, rows, packed in tree_tables(rng, n, d, classes):
            yield columns, rows, packed, split_options(rng, columns.d, classes), int(rng.integers(1, 8))


def leaf_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """No tree, one leaf, and trees of up to 8 leaves."""
    for args in grow_arguments(rng, n, d, 2):
        grown = forests.grow_tree.numpy(*args[:-1], 8).tree
        for trees in ([], [forests.ONE_LEAF], [grown, forests.ONE_LEAF, grown]):
            yield args[0], forests.forest_of(trees)


def score_arguments(rng: np.random.Generator, n: int, k: int) -> Iterator[tuple[Any, Any, Any]]:
    """Log scores (n, k) of classes that are uncertain, certain or impossible, labels and weights."""
    k = max(k, 2)
    labels, plain = rng.integers(0, k, n), rng.normal(size=(n, k)) * 10.0 ** rng.integers(-2, 4, size=(n, 1))
    certain, impossible = np.where(np.eye(k)[labels] > 0, 0.0, -np.inf), np.full((n, k), -np.inf)
    for scores in (plain, certain, impossible, np.asfortranarray(plain)):
        for weight in (np.ones(n), rng.exponential(size=n), np.zeros(n)):
            yield scores, labels, weight


def factor_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for scores, _, _ in score_arguments(rng, n, k):
        for leaves in (1, 5, 127):
            yield scores, rng.integers(0, leaves, n).astype(np.int32), rng.normal(size=(leaves, max(k, 2)))


def residual_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for scores, labels, weight in score_arguments(rng, n, k):
        yield scores, labels, weight, tree_nodes.scale_of(weight), rng.random(n)


def leaf_sum_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for scores, labels, weight in score_arguments(rng, n, k):
        for leaves in (1, 5, 127):
            codes = rng.integers(0, leaves, n).astype(np.int32)
            yield scores, codes, labels, weight, leaves, tree_nodes.scale_of(weight)


def loss_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for scores, labels, weight in score_arguments(rng, n, k):
        yield scores, labels, weight, tree_nodes.scale_of(weight) * tree_nodes.LOSS_UNITS


TREE_CASES = {
    "node_sums": (tree_nodes.node_sums, tree_tables),
    "best_split": (tree_nodes.best_split, best_split_arguments),
    "divide": (tree_nodes.divide, divide_arguments),
    "grow_tree": (forests.grow_tree, grow_arguments),
    "leaf_codes": (forests.leaf_codes, leaf_arguments),
    "with_factors": (tree_nodes.with_factors, factor_arguments),
    "packed_residuals": (tree_nodes.packed_residuals, residual_arguments),
    "leaf_sums": (tree_nodes.leaf_sums, leaf_sum_arguments),
    "whole_loss": (tree_nodes.whole_loss, loss_arguments),
}
"""The kernel and its arguments."""

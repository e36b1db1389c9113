"""Arguments for every kernel with a native version, at given sizes: valid, borderline and unusual arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from calibayes.kernels import (
    cut_points,
    event_counts,
    gaussian_density,
    grids,
    joint_density,
    level_counts,
    level_pairs,
    moments,
)
from calibayes.kernels import posterior as fused
from calibayes.kernels import posterior as logspace
from tests.kernels.cell_cases import CELL_CASES
from tests.kernels.tree_cases import TREE_CASES


@dataclass(frozen=True)
class Case:
    """A kernel and a function that yields tuples of its arguments for n rows, d columns and k classes."""

    kernel: Any
    make: Callable[[np.random.Generator, int, int, int], Iterator[tuple[Any, ...]]]


MANY_LEVELS = 40
"""Columns that may have hundreds of levels; further ones have few, so that the tables of wide rows stay small."""


def level_codes(rng: np.random.Generator, n: int, d: int) -> Iterator[tuple[Any, Any]]:
    """Codes (n, d) of every type, with and without missing values, beyond the levels, not contiguous; and first cells."""
    for most in (1, 2, 5, 9, 300):
        levels = rng.integers(1, most + 1, size=d)
        levels[MANY_LEVELS:] = np.minimum(levels[MANY_LEVELS:], 9)
        plain = rng.integers(0, levels, size=(n, d))
        first = level_counts.offsets(tuple(levels.tolist()))
        for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
            if most - 1 <= np.iinfo(kind).max:
                yield plain.astype(kind), first
        with_missing = np.where(rng.random((n, d)) < 0.1, -1, plain)
        yield with_missing.astype(np.int16), first
        yield np.where(rng.random((n, d)) < 0.1, 2**40, with_missing), first
        yield np.asfortranarray(with_missing), first
        yield np.repeat(with_missing, 2, axis=0)[::2], first
        yield np.repeat(with_missing, 3, axis=1)[:, ::3][::-1], first


def weight_matrices(rng: np.random.Generator, n: int, k: int) -> Iterator[Any]:
    """Weights (n, k) of any sign, in one class per row (equal or not), all 0."""
    yield rng.standard_normal((n, k))
    onehot = np.eye(k)[rng.integers(k, size=n)]
    yield onehot
    yield onehot * rng.standard_normal((n, 1))
    yield onehot * (rng.random((n, 1)) < 0.5)
    yield np.zeros((n, k))


def count_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for cells, first in level_codes(rng, n, d):
        for weights in weight_matrices(rng, n, k):
            yield cells, weights, first


def pair_count_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """All pairs of few columns, those with few cells, and no pair; native code counts codes of at most four bytes."""
    for codes, first in level_codes(rng, n, min(d, 9)):
        levels = tuple(np.diff(first).tolist())
        if codes.dtype.kind == "i" and codes.itemsize <= level_pairs.CODE_BYTES:
            for most in (0, 30, 10_000):
                for weights in weight_matrices(rng, n, k):
                    yield codes, weights, levels, level_pairs.column_pairs(levels, most)


def pair_information_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """Tables of whole numbers, small and large, of others, and below 0."""
    for top in (2, 5, 30):
        levels = tuple(rng.integers(0, top, size=min(d, 9)).tolist())
        pairs = level_pairs.column_pairs(levels, 10_000)
        for largest in (1, 9, 10_000):
            counts = rng.integers(0, largest, size=(k, pairs.first[-1])).astype(np.float64)
            yield counts, pairs, levels
            yield counts * rng.random(counts.shape) - 0.1, pairs, levels


def look_up_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for cells, first in level_codes(rng, n, d):
        yield cells, rng.standard_normal((k, first[-1])), first


def fused_pass_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """At most as many classes and columns as a fused pass supports."""
    d, k = min(d, 500), min(k, 16)
    for cells, first in level_codes(rng, n, d):
        for generative in (0.0, 0.3, 1.0):
            held, weight = rng.random(n) < 0.3, rng.integers(0, 3, size=n)
            table = rng.standard_normal((k, first[-1])) / d
            prior_and_labels = np.log(rng.dirichlet(np.ones(k))), rng.integers(-1, k, size=n)
            yield cells, table, first, *prior_and_labels, weight * ~held, weight * held, generative, 2.0**-40


def joint_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    plain = rng.standard_normal((n, k))
    degenerate = np.where(rng.random((n, k)) < 0.1, -np.inf, plain)
    degenerate[: n // 3] = -np.inf
    degenerate[n // 3 : n // 2, :1] = np.nan
    for log_joint in (
        plain,
        1e3 * plain,
        1e-9 * plain - 1e6,
        np.asfortranarray(plain),
        np.zeros((n, k)),
        degenerate,
    ):
        yield (log_joint,)


def assess_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    labels = rng.integers(-1, k, size=n)
    for (log_joint,) in joint_arguments(rng, n, d, k):
        for generative in (0.0, 0.3, 1.0) if np.isfinite(log_joint).all() else (0.0,):
            held = rng.random(n) < 0.3
            known = np.isfinite(log_joint[np.arange(n), labels])
            weight = rng.random(n) * known
            yield log_joint, labels, weight * ~held, weight * held, generative


def code_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for cells, _ in level_codes(rng, n, d):
        yield (cells,)


def narrow_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for cells, first in level_codes(rng, n, d):
        for kind in (np.int8, np.int16, np.int32):
            if np.diff(first).max() <= np.iinfo(kind).max + 1:
                yield np.empty(cells.shape, dtype=kind), cells, np.diff(first)


def number_tables(rng: np.random.Generator, n: int, d: int) -> Iterator[Any]:
    """Numbers (n, d) of both types, with and without missing values, far from zero, not contiguous."""
    plain = rng.standard_normal((n, d))
    with_missing = np.where(rng.random((n, d)) < 0.2, np.nan, plain)
    yield from (plain, plain.astype(np.float32), with_missing, with_missing.astype(np.float32), plain + 1e5)
    yield from (np.asfortranarray(with_missing), np.repeat(plain, 2, axis=0)[::2], np.full((n, d), np.nan))


def bin_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """Columns without edges and with up to 300, at numbers of the column and between them; infinite numbers."""
    for x in number_tables(rng, n, d):
        known = np.nan_to_num(x).astype(np.float64)
        edges = [np.unique(rng.normal(size=rng.integers(0, 300))) for _ in range(d)]
        yield x, edges
        yield (
            x,
            [
                np.unique(np.append(column[:7], inner[:5]))
                for column, inner in zip(known.T, edges, strict=True)
            ],
        )
        yield np.where(known > 1, np.inf, known), edges


def bin_column_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """Columns of all types, also many numbers: even edges, edges in very few places, equal edges, infinite numbers."""
    kinds = (
        np.float64,
        np.float32,
        np.int8,
        np.uint8,
        np.int16,
        np.uint16,
        np.int32,
        np.uint32,
        np.int64,
        np.uint64,
    )
    for rows, most in ((n, 300), (n, 100), (5000, 40)):
        shapes = (
            np.linspace(-2, 2, most),
            rng.normal(size=most) ** 9,
            np.repeat(rng.normal(size=9), 3),
            np.zeros(0),
        )
        chosen = [rng.integers(len(kinds)) for _ in range(min(d, 7))]
        numbers = [np.abs(3 * rng.standard_normal(rows)).astype(kinds[i]) for i in chosen]
        for column in numbers:
            if column.dtype.kind == "f":
                column[rng.random(rows) < 0.1] = np.nan
                column[rng.random(rows) < 0.1] *= -1
        edges = [np.sort(shapes[rng.integers(len(shapes))]) for _ in numbers]
        yield numbers, edges, 1e100
        yield [np.repeat(column, 3)[::-3] for column in numbers], edges, 2.0
        infinite = [np.where(column > 2, np.inf, -np.inf) for column in numbers]
        yield infinite, edges, 1e100


def diagonal_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in number_tables(rng, n, d):
        yield x, rng.standard_normal((k, d)), rng.uniform(0.1, 9.0, size=(k, d))


def left_out_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """Rows near the means and far from them, in several memory layouts, with variances that change and that do not."""
    plain, codes = rng.standard_normal((n, d)), rng.integers(0, k, n)
    mean, inverse = rng.standard_normal((k, d)), rng.uniform(0.1, 9.0, size=(k, d))
    for x in (plain, plain.astype(np.float32), np.asfortranarray(plain), np.repeat(plain, 2, axis=0)[::2]):
        for scale in (1e-3, 0.05):
            tables = gaussian_density.ClassTables(
                mean, rng.uniform(0.0, scale, (k, d)), inverse, np.full((k, d), 0.4)
            )
            yield x, tables, codes, np.zeros(n)
            yield x, tables, codes, rng.uniform(-1e-4, 1e-4, n)


def power_sum_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in number_tables(rng, n, d):
        for weights in weight_matrices(rng, n, k):
            yield x, rng.standard_normal(d), weights


def extent_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in number_tables(rng, max(n, 1), d):
        yield from ((x,), (np.where(rng.random(x.shape) < 0.1, -np.inf, x),))


def sparse_tables(rng: np.random.Generator, n: int, d: int) -> Iterator[Any]:
    """CSR tables of integers and other numbers, with both index types, and without entries."""
    dense = rng.poisson(0.3, size=(n, d)).astype(np.float64)
    for x in (dense, dense * 1.7, 1000.0 * dense, np.zeros((n, d)), dense.astype(np.int64)):
        yield csr_array(x)
    wide = csr_array(dense)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield wide


def score_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in sparse_tables(rng, n, d):
        table = rng.standard_normal((k, d))
        yield from ((x, table), (x, np.asfortranarray(table)))


def total_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in sparse_tables(rng, n, d):
        for weights in weight_matrices(rng, n, k):
            yield x, weights


def factorial_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in sparse_tables(rng, n, d):
        yield (x,)


def flag_tables(rng: np.random.Generator, n: int, d: int) -> Iterator[Any]:
    plain = (rng.random((n, d)) < 0.4).astype(np.float64)
    yield from (plain, np.where(rng.random((n, d)) < 0.1, np.nan, plain), plain.astype(np.float32))


def flag_count_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in flag_tables(rng, n, d):
        for weights in weight_matrices(rng, n, k):
            yield x, weights


def flag_score_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in flag_tables(rng, n, d):
        yield x, *rng.standard_normal((2, k, d))


def grid_positions(rng: np.random.Generator, n: int, d: int) -> Iterator[tuple[Any, Any, Any]]:
    """Positions (n, d) at grid points, between and beyond them, missing; numbers of points (d,); and first cells."""
    points = rng.integers(2, 20, size=d)
    plain = rng.uniform(-3.0, 22.0, size=(n, d))
    at_points = np.floor(plain)
    with_missing = np.where(rng.random((n, d)) < 0.1, np.nan, plain)
    first = level_counts.offsets(tuple((points + grids.TAILS).tolist()))
    for x in (
        plain,
        at_points,
        with_missing,
        np.full((n, d), 1e9),
        np.asfortranarray(with_missing),
        np.repeat(with_missing, 2, axis=0)[::2],
    ):
        yield x, points, first


def position_count_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x, points, first in grid_positions(rng, n, d):
        for weights in weight_matrices(rng, n, k):
            yield x, points, weights, first


def position_score_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x, points, first in grid_positions(rng, n, d):
        for wide in (1.0, 30.0):
            yield x, points, wide * rng.standard_normal((k, first[-1])), first


def kernel_sum_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """Squared distances to d and to many rows: positive, negative by rounding, infinite for a row left out, all 0."""
    for m in (d, 300):
        plain = rng.exponential(size=(n, m)) * 10.0 ** rng.uniform(-2, 3, size=(n, 1))
        rounded = np.where(rng.random((n, m)) < 0.3, -1e-14, plain)
        left_out = np.where(np.arange(m) == min(1, m - 1), np.inf, plain) if m > 1 else plain
        ends = np.sort(rng.integers(0, m + 1, k - 1)).tolist()
        for squares in (plain, rounded, left_out, np.zeros((n, m)), np.asfortranarray(plain)):
            for squarings in ([0], [0, 1, 1, 1], [0, 2, 2], [0, 0, 3]):
                yield squares.copy(order="K"), rng.random(m), (0, *ends, m), 0.7, squarings


def kernel_sum_around_arguments(
    rng: np.random.Generator, n: int, d: int, k: int
) -> Iterator[tuple[Any, ...]]:
    """Rows of few columns around few and many centers, in several memory layouts, and at centers themselves."""
    d = min(d, joint_density.FEW_COLUMNS)
    for m in (d, 300):
        centers = rng.normal(size=(m, d))
        factor = np.stack([*(-2.0 * centers.T), np.ones(m), np.sum(centers * centers, axis=1)])
        ends = np.sort(rng.integers(0, m + 1, k - 1)).tolist()
        plain = rng.normal(size=(n, d))
        for rows in (plain, centers[rng.integers(0, m, n)], np.asfortranarray(plain), plain[::-1]):
            for squarings in ([0], [0, 1, 1], [0, 2, 2]):
                yield rows, factor, rng.random(m), (0, *ends, m), 0.7, squarings


def product_sum_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """Few and many centers, numbers and levels, missing values, rows left out, products of kernels and full matrices."""
    d = min(d, 12)
    pairs = np.stack(np.triu_indices(d, 1))
    scales, levels = -rng.exponential(size=(2, d)), np.where(rng.random(d) < 0.3, [[0.8], [0.1]], 0.0)
    for m in (k, 300):
        centers, weights = rng.integers(0, 4, (d, m)).astype(float), rng.integers(1, 4, m) * 0.5
        own = np.where(rng.random(n) < 0.5, rng.integers(0, m, n), -1)
        shapes = np.where(rng.random((pairs.shape[1], 1)) < 0.3, [-0.7, 0.4, -0.5], np.nan)
        rows = rng.integers(0, 4, (n, d)) + np.where(levels[0] > 0, 0.0, 0.1)
        gappy = np.where(rng.random((n, d)) < 0.2, np.nan, rows)
        for around, at in (
            (rows, centers),
            (gappy, np.where(centers > 2, np.nan, centers)),
            (gappy[::-1], centers),
        ):
            yield around, own, at, weights, scales, levels, pairs, shapes
        yield rows, own, centers, weights, scales, levels, pairs[:, :0], shapes[:0]


def class_density_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """Up to rows of several products of matrices. What is above the diagonals of the factors is not read."""
    d, k = min(d, 65), min(k, 5)
    mean, factor = rng.standard_normal((k, d)), rng.standard_normal((k, d, d))
    for x in (*number_tables(rng, n, d), rng.standard_normal((9 * n, d))):
        yield x, mean, factor, rng.standard_normal(k)


def outer_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """Up to rows of several products of matrices; whole and missing weights."""
    d, k = min(d, 65), min(k, 5)
    center, whole = rng.standard_normal(d), rng.integers(-2, 3, size=(n, k))
    for x in map(np.nan_to_num, number_tables(rng, n, d)):
        for weights in (*weight_matrices(rng, n, k), whole, np.where(whole < -1, np.nan, whole)):
            yield x, center, weights
    yield rng.standard_normal((9 * n, d)), center, rng.standard_normal((9 * n, k))


def inverse_factor_arguments(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """Covariances; matrices that are not positive definite, from a column on; missing and infinite numbers."""
    d, k = min(d, 65), min(k, 5)
    roots = rng.standard_normal((k, d, 3 * d))
    covariances = roots @ np.swapaxes(roots, 1, 2) / (3 * d) + 0.1 * np.eye(d)
    indefinite = covariances.copy()
    indefinite[:, d // 2, d // 2] = -1.0
    missing, infinite = covariances.copy(), covariances.copy()
    missing[0, -1, -1], infinite[-1, 0, 0] = np.nan, np.inf
    for matrices in (covariances, 1e-3 * np.asfortranarray(covariances), indefinite, missing, infinite):
        yield (matrices,)
    yield (np.zeros((k, d, d)),)


CASES = {
    **{name: Case(*case) for name, case in (TREE_CASES | CELL_CASES).items()},
    "kernel_sums_around": Case(joint_density.kernel_sums_around, kernel_sum_around_arguments),
    "product_sums": Case(joint_density.product_sums, product_sum_arguments),
    "kernel_sums": Case(joint_density.kernel_sums, kernel_sum_arguments),
    "position_counts": Case(grids.position_counts, position_count_arguments),
    "position_scores": Case(grids.position_scores, position_score_arguments),
    "flag_counts": Case(level_counts.flag_counts, flag_count_arguments),
    "flag_scores": Case(level_counts.flag_scores, flag_score_arguments),
    "scores": Case(event_counts.scores, score_arguments),
    "totals": Case(event_counts.totals, total_arguments),
    "log_factorials": Case(event_counts.log_factorials, factorial_arguments),
    "diagonal_log_density": Case(gaussian_density.diagonal_log_density, diagonal_arguments),
    "class_log_densities": Case(gaussian_density.class_log_densities, class_density_arguments),
    "inverse_factors": Case(gaussian_density.inverse_factors, inverse_factor_arguments),
    "first_and_outer": Case(moments.first_and_outer, outer_arguments),
    "left_out_shares": Case(gaussian_density.left_out_shares, left_out_arguments),
    "power_sums": Case(moments.power_sums, power_sum_arguments),
    "minimum_and_maximum": Case(moments.minimum_and_maximum, extent_arguments),
    "weighted_counts": Case(level_counts.weighted_counts, count_arguments),
    "weighted_pairs": Case(level_pairs.weighted_pairs, pair_count_arguments),
    "pair_information": Case(level_pairs.pair_information, pair_information_arguments),
    "bin_codes": Case(cut_points.bin_codes, bin_arguments),
    "bin_columns": Case(cut_points.bin_columns, bin_column_arguments),
    "look_up": Case(level_counts.look_up, look_up_arguments),
    "fused_pass": Case(fused.fused_pass, fused_pass_arguments),
    "log_normalize": Case(logspace.log_normalize, joint_arguments),
    "first_largest": Case(logspace.first_largest, joint_arguments),
    "assess": Case(logspace.assess, assess_arguments),
    "largest_codes": Case(level_counts.largest_codes, code_arguments),
    "narrow_into": Case(level_counts.narrow_into, narrow_arguments),
}

"""Native kernels against their NumPy twins: one body for all of them, at every level of instructions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from calibayes import CategoricalNB
from calibayes.kernels.density import joint_kernel
from calibayes.kernels.dispatch import TWINS, held_to, switched_off, use
from calibayes.kernels.levels import codes, counts, flags, grid
from calibayes.kernels.numbers import events, independent
from calibayes.kernels.posterior import fused, logspace

LEVELS = use.module.levels() if use.module is not None else []
needs_native = pytest.mark.skipif(use.module is None, reason="the native kernels are not built")
SHAPES = [
    (0, 3, 2),
    (1, 1, 1),
    (5, 1, 17),
    (300, 7, 1),
    (257, 33, 3),
    (1000, 40, 10),
    (130, 600, 17),
    (64, 2, 40),
]
"""Rows, columns, classes."""


@dataclass(frozen=True)
class Case:
    """Arguments of a kernel, made from sizes and a generator."""

    kernel: Any
    make: Callable[[np.random.Generator, int, int, int], Iterator[tuple[Any, ...]]]


def level_codes(rng: np.random.Generator, n: int, d: int) -> Iterator[tuple[Any, Any]]:
    """Codes of every type, with and without gaps, beyond the levels, and not side by side; and first cells."""
    for most in (1, 2, 5, 9, 300):
        levels = rng.integers(1, most + 1, size=d)
        plain = rng.integers(0, levels, size=(n, d))
        first = counts.offsets(tuple(levels.tolist()))
        for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
            if most - 1 <= np.iinfo(kind).max:
                yield plain.astype(kind), first
        gaps = np.where(rng.random((n, d)) < 0.1, -1, plain)
        yield gaps.astype(np.int16), first
        yield np.where(rng.random((n, d)) < 0.1, 2**40, gaps), first
        yield np.asfortranarray(gaps), first
        yield np.repeat(gaps, 2, axis=0)[::2], first
        yield np.repeat(gaps, 3, axis=1)[:, ::3][::-1], first


def some_weights(rng: np.random.Generator, n: int, k: int) -> Iterator[Any]:
    """Of every sign, of one class each (alike or not), none at all."""
    yield rng.standard_normal((n, k))
    own = np.eye(k)[rng.integers(k, size=n)]
    yield own
    yield own * rng.standard_normal((n, 1))
    yield own * (rng.random((n, 1)) < 0.5)
    yield np.zeros((n, k))


def of_counts(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for cells, first in level_codes(rng, n, d):
        for weights in some_weights(rng, n, k):
            yield cells, weights, first


def of_look_up(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for cells, first in level_codes(rng, n, d):
        yield cells, rng.standard_normal((k, first[-1])), first


def of_looks(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """As many classes and columns as one look takes."""
    d, k = min(d, 500), min(k, 16)
    for cells, first in level_codes(rng, n, d):
        for generative in (0.0, 0.3, 1.0):
            held, weight = rng.random(n) < 0.3, rng.integers(0, 3, size=n)
            table = rng.standard_normal((k, first[-1])) / d
            about = np.log(rng.dirichlet(np.ones(k))), rng.integers(-1, k, size=n)
            yield cells, table, first, *about, weight * ~held, weight * held, generative, 2.0**-40


def joints(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    plain = rng.standard_normal((n, k))
    odd = np.where(rng.random((n, k)) < 0.1, -np.inf, plain)
    odd[: n // 3] = -np.inf
    odd[n // 3 : n // 2, :1] = np.nan
    for log_joint in (
        plain,
        1e3 * plain,
        1e-9 * plain - 1e6,
        np.asfortranarray(plain),
        np.zeros((n, k)),
        odd,
    ):
        yield (log_joint,)


def of_assess(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    labels = rng.integers(-1, k, size=n)
    for (log_joint,) in joints(rng, n, d, k):
        for generative in (0.0, 0.3, 1.0) if np.isfinite(log_joint).all() else (0.0,):
            held = rng.random(n) < 0.3
            known = np.isfinite(log_joint[np.arange(n), labels])
            weight = rng.random(n) * known
            yield log_joint, labels, weight * ~held, weight * held, generative


def of_codes(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for cells, _ in level_codes(rng, n, d):
        yield (cells,)


def of_narrow(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for cells, first in level_codes(rng, n, d):
        for kind in (np.int8, np.int16, np.int32):
            if np.diff(first).max() <= np.iinfo(kind).max + 1:
                yield np.empty(cells.shape, dtype=kind), cells, np.diff(first)


def some_numbers(rng: np.random.Generator, n: int, d: int) -> Iterator[Any]:
    """Of both types, with and without gaps, far from zero, not side by side."""
    plain = rng.standard_normal((n, d))
    gaps = np.where(rng.random((n, d)) < 0.2, np.nan, plain)
    yield from (plain, plain.astype(np.float32), gaps, gaps.astype(np.float32), plain + 1e5)
    yield from (np.asfortranarray(gaps), np.repeat(plain, 2, axis=0)[::2], np.full((n, d), np.nan))


def of_diagonal(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in some_numbers(rng, n, d):
        yield x, rng.standard_normal((k, d)), rng.uniform(0.1, 9.0, size=(k, d))


def of_power_sums(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in some_numbers(rng, n, d):
        for weights in some_weights(rng, n, k):
            yield x, rng.standard_normal(d), weights


def of_ends(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in some_numbers(rng, max(n, 1), d):
        yield from ((x,), (np.where(rng.random(x.shape) < 0.1, -np.inf, x),))


def sparse_rows(rng: np.random.Generator, n: int, d: int) -> Iterator[Any]:
    """Whole and other numbers, both types of positions, no cell at all."""
    dense = rng.poisson(0.3, size=(n, d)).astype(np.float64)
    for x in (dense, dense * 1.7, 1000.0 * dense, np.zeros((n, d)), dense.astype(np.int64)):
        yield csr_array(x)
    wide = csr_array(dense)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield wide


def of_scores(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in sparse_rows(rng, n, d):
        table = rng.standard_normal((k, d))
        yield from ((x, table), (x, np.asfortranarray(table)))


def of_totals(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in sparse_rows(rng, n, d):
        for weights in some_weights(rng, n, k):
            yield x, weights


def of_factorials(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in sparse_rows(rng, n, d):
        yield (x,)


def some_flags(rng: np.random.Generator, n: int, d: int) -> Iterator[Any]:
    plain = (rng.random((n, d)) < 0.4).astype(np.float64)
    yield from (plain, np.where(rng.random((n, d)) < 0.1, np.nan, plain), plain.astype(np.float32))


def of_flag_counts(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in some_flags(rng, n, d):
        for weights in some_weights(rng, n, k):
            yield x, weights


def of_flag_scores(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x in some_flags(rng, n, d):
        yield x, *rng.standard_normal((2, k, d))


def some_positions(rng: np.random.Generator, n: int, d: int) -> Iterator[tuple[Any, Any, Any]]:
    """On points, between and beyond them, missing; grids of a few points; and first cells."""
    points = rng.integers(2, 20, size=d)
    plain = rng.uniform(-3.0, 22.0, size=(n, d))
    whole = np.floor(plain)
    gaps = np.where(rng.random((n, d)) < 0.1, np.nan, plain)
    first = counts.offsets(tuple((points + grid.TAILS).tolist()))
    for x in (
        plain,
        whole,
        gaps,
        np.full((n, d), 1e9),
        np.asfortranarray(gaps),
        np.repeat(gaps, 2, axis=0)[::2],
    ):
        yield x, points, first


def of_position_counts(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x, points, first in some_positions(rng, n, d):
        for weights in some_weights(rng, n, k):
            yield x, points, weights, first


def of_position_scores(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    for x, points, first in some_positions(rng, n, d):
        for wide in (1.0, 30.0):
            yield x, points, wide * rng.standard_normal((k, first[-1])), first


def of_kernel_sums(rng: np.random.Generator, n: int, d: int, k: int) -> Iterator[tuple[Any, ...]]:
    """Distances of d and of many rows, some none at all, below zero by rounding, or of a row that is left out."""
    for m in (d, 300):
        plain = rng.exponential(size=(n, m)) * 10.0 ** rng.uniform(-2, 3, size=(n, 1))
        close = np.where(rng.random((n, m)) < 0.3, -1e-14, plain)
        away = np.where(np.arange(m) == min(1, m - 1), np.inf, plain) if m > 1 else plain
        ends = np.sort(rng.integers(0, m + 1, k - 1)).tolist()
        for squares in (plain, close, away, np.zeros((n, m)), np.asfortranarray(plain)):
            for gaps in ([0], [0, 1, 1, 1], [0, 2, 2], [0, 0, 3]):
                yield squares.copy(order="K"), rng.random(m), (0, *ends, m), 0.7, gaps


CASES = {
    "kernel_sums": Case(joint_kernel.kernel_sums, of_kernel_sums),
    "position_counts": Case(grid.position_counts, of_position_counts),
    "position_scores": Case(grid.position_scores, of_position_scores),
    "flag_counts": Case(flags.flag_counts, of_flag_counts),
    "flag_scores": Case(flags.flag_scores, of_flag_scores),
    "scores": Case(events.scores, of_scores),
    "totals": Case(events.totals, of_totals),
    "log_factorials": Case(events.log_factorials, of_factorials),
    "log_density": Case(independent.log_density, of_diagonal),
    "power_sums": Case(independent.power_sums, of_power_sums),
    "ends": Case(independent.ends, of_ends),
    "weighted_counts": Case(counts.weighted_counts, of_counts),
    "look_up": Case(counts.look_up, of_look_up),
    "fused_pass": Case(fused.fused_pass, of_looks),
    "log_normalize": Case(logspace.log_normalize, joints),
    "first_largest": Case(logspace.first_largest, joints),
    "assess": Case(logspace.assess, of_assess),
    "largest_codes": Case(codes.largest_codes, of_codes),
    "narrow_into": Case(codes.narrow_into, of_narrow),
}


def leaves(result: Any) -> list[Any]:
    if isinstance(result, tuple):
        return [leaf for part in result for leaf in leaves(part)]
    return [] if result is None else [result]


@needs_native
def test_every_twin_has_a_case() -> None:
    assert set(CASES) == set(TWINS)


@needs_native
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("level", LEVELS)
def test_twins_agree(level: str, name: str, shape: tuple[int, int, int]) -> None:
    case, rng, many = CASES[name], np.random.default_rng(abs(hash(shape)) % 2**32), 0
    for args in case.make(rng, *shape):
        with held_to(level):
            again = [np.array(leaf) for leaf in leaves(case.kernel.native(use.module, *args))]
        written = args[0].copy() if name == "narrow_into" else None
        with switched_off():
            plain = case.kernel.plain(*args)
        many += 1
        for ours, twin in zip(again, map(np.asarray, leaves(plain)), strict=True):
            scale = np.abs(twin[np.isfinite(twin)]).max(initial=1.0)
            np.testing.assert_allclose(ours, twin, rtol=1e-12, atol=1e-13 * max(shape[0], shape[1]) * scale)
        if written is not None:
            np.testing.assert_array_equal(written, args[0])
    assert many > 0


@needs_native
def test_levels_of_instructions_agree_to_rounding() -> None:
    rng = np.random.default_rng(0)
    rows, weights = rng.integers(0, 5, size=(999, 33)).astype(np.uint8), rng.standard_normal((999, 7))
    first = counts.offsets((5,) * 33)
    found = []
    for level in LEVELS:
        with held_to(level):
            found.append(counts.weighted_counts(rows, weights, first))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-13, atol=1e-12)


@needs_native
def test_what_the_kernels_do_not_take_is_left_to_numpy() -> None:
    first = counts.offsets((2, 2))
    flags = np.array([[True, False]])
    assert counts.weighted_counts.native(use.module, flags, np.ones((1, 1)), first) is NotImplemented
    assert counts.look_up.native(use.module, [[0, 1]], np.ones((1, 4)), first) is NotImplemented
    for k, d, levels in ((17, 2, 2), (2, 513, 50)):
        rows, wide = np.zeros((1, d), dtype=np.int8), counts.offsets((levels,) * d)
        about = np.zeros(k), np.zeros(1, dtype=int), np.ones(1), np.zeros(1), 0.0, 0.0
        found = fused.fused_pass.native(use.module, rows, np.zeros((k, levels * d)), wide, *about)
        assert found is NotImplemented


@needs_native
def test_malformed_sums_of_kernels_are_refused() -> None:
    away, weight, out = np.ones((2, 5)), np.ones(5), (np.empty((1, 2, 2)), np.empty(2))
    gaps = np.zeros(1, dtype=np.int64)
    for ends in ([0, 3, 4], [1, 3, 5], [0, 7, 5], [0, -1, 5]):
        with pytest.raises(ValueError, match="ends"):
            use.module.kernel_sums(away, weight, np.array(ends), 1.0, gaps, *out)
    good = np.array([0, 3, 5])
    with pytest.raises(ValueError, match="weight"):
        use.module.kernel_sums(away, weight[:4], good, 1.0, gaps, *out)
    with pytest.raises(ValueError, match="squared"):
        use.module.kernel_sums(away, weight, good, 1.0, gaps - 1, *out)
    with pytest.raises(ValueError, match="results"):
        use.module.kernel_sums(away, weight, good, 1.0, gaps, np.empty((2, 2, 2)), np.empty(2))


@needs_native
def test_malformed_arguments_are_refused_and_do_no_harm() -> None:
    rows, out = np.zeros((3, 2), dtype=np.int8), np.empty((3, 1))
    table = np.zeros((1, 4))
    for first in ([0, 2], [0, 2, 5], [0, 3, 2], [1, 2, 4], [0, 2**40, 2**41]):
        with pytest.raises(ValueError, match="cell"):
            use.module.look_up(rows, table, np.array(first), out)
    with pytest.raises(ValueError, match=r"\(n, k\)"):
        use.module.look_up(rows, table, np.array([0, 2, 4]), np.empty((2, 1)))
    with pytest.raises(ValueError, match="weights"):
        use.module.weighted_counts(rows, np.zeros((2, 1)), np.array([0, 2, 4]), np.empty((1, 4)))
    with pytest.raises(TypeError):
        use.module.look_up(rows, table.astype(np.float32), np.array([0, 2, 4]), out)
    cells, columns = np.ones(2), np.array([0, 7], dtype=np.int32)
    for start in ([0, 3], [0, -1], [-1, 2], [0, 2, 1]):
        with pytest.raises(ValueError, match="begin and end"):
            use.module.sparse_sums(
                cells, columns, np.array(start), np.ones((2, 1)), np.empty((len(start) - 1, 1))
            )
    beyond = np.empty((1, 1))
    use.module.sparse_sums(cells, columns, np.array([0, 2]), np.ones((2, 1)), beyond)
    assert beyond.tolist() == [[1.0]]
    wild = np.array([[-1, 127], [-128, 5], [3, 2]], dtype=np.int8)
    assert counts.look_up(wild, np.ones((1, 4)), np.array([0, 2, 4])).tolist() == [[0.0], [0.0], [0.0]]


@pytest.mark.parametrize("jobs", [2, 3])
def test_the_number_of_threads_leaves_no_trace(jobs: int) -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.integers(0, 5, size=(9000, 64)), rng.integers(0, 3, size=9000)
    one, several = (CategoricalNB(max_iter=3, stop=None, n_jobs=n).fit(rows, labels) for n in (1, jobs))
    for ours, theirs in zip(one.feature_log_prob_, several.feature_log_prob_, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(one.predict_joint_log_proba(rows), several.predict_joint_log_proba(rows))


def test_a_model_is_the_same_without_native_kernels() -> None:
    rng = np.random.default_rng(1)
    rows, labels = rng.integers(0, 5, size=(500, 20)), rng.integers(0, 3, size=500)
    native = CategoricalNB(max_iter=5, stop=None).fit(rows, labels)
    with switched_off():
        plain = CategoricalNB(max_iter=5, stop=None).fit(rows, labels)
    np.testing.assert_allclose(
        native.predict_joint_log_proba(rows), plain.predict_joint_log_proba(rows), rtol=1e-10
    )


@pytest.mark.parametrize("wanted", ["0", "baseline", "nonsense"])
def test_the_environment_decides(wanted: str) -> None:
    code = "from calibayes.kernels.dispatch import use; print(use.level)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "CALIBAYES_NATIVE": wanted},
        capture_output=True,
        text=True,
        check=False,
    )
    if wanted == "0" or find_spec("calibayes.kernels.native._native") is None:
        assert done.stdout.strip() == "None"
    elif wanted == "nonsense":
        assert "must be 0 or one of baseline" in done.stderr
    else:
        assert done.stdout.strip() == wanted

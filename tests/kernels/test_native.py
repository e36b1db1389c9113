"""Native kernels against their NumPy versions: one test for all of them, at every instruction set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calibayes.kernels import level_counts
from calibayes.kernels.dispatch import TWINS, native_kernels
from tests.kernel_versions import numpy_only, use_instruction_set
from tests.kernels.native_cases import CASES, Case
from tests.seeds import generator

INSTRUCTION_SETS = native_kernels.module.levels() if native_kernels.module is not None else []
needs_native = pytest.mark.skipif(
    native_kernels.module is None, reason="the native kernels are not built or disabled"
)
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


def leaves(result: Any) -> list[Any]:
    """All arrays and numbers in nested tuples, without None."""
    if isinstance(result, tuple):
        return [leaf for part in result for leaf in leaves(part)]
    return [] if result is None else [result]


@needs_native
def test_every_twin_has_a_case() -> None:
    assert set(CASES) == set(TWINS)


def native_leaves(case: Case, args: tuple[Any, ...], instruction_set: str) -> list[Any]:
    """Copies of what a native kernel returns, and of what it has written to its first argument."""
    if case is CASES["add_factors"]:  # it changes what it is given
        args = (np.array(args[0], order="K"), *args[1:])
    with use_instruction_set(instruction_set):
        found = [np.array(leaf) for leaf in leaves(case.kernel.native(native_kernels.module, *args))]
    return [*found, args[0].copy()] if case is CASES["narrow_into"] else found


@needs_native
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_native_and_numpy_versions_agree(name: str, shape: tuple[int, int, int]) -> None:
    case, rng, count = CASES[name], generator(abs(hash(shape)) % 2**32), 0
    for args in case.make(rng, *shape):
        natives = {level: native_leaves(case, args, level) for level in INSTRUCTION_SETS}
        with numpy_only():
            reference = case.kernel.numpy(*args)
        count += 1
        expected = [np.asarray(leaf) for leaf in leaves(reference)]
        scales = [np.abs(leaf[np.isfinite(leaf)]).max(initial=1.0) for leaf in expected]
        for level, native in natives.items():
            if name == "narrow_into":
                np.testing.assert_array_equal(native.pop(), args[0], err_msg=level)
            for actual, leaf, scale in zip(native, expected, scales, strict=True):
                assert actual.shape == leaf.shape
                differ = actual != leaf
                assert not differ.any() or actual.dtype.kind not in "iu", level  # whole numbers are exact
                atol = 1e-13 * max(shape[0], shape[1]) * scale
                np.testing.assert_allclose(actual[differ], leaf[differ], rtol=1e-12, atol=atol, err_msg=level)
    assert count > 0


@needs_native
def test_instruction_sets_agree_to_rounding() -> None:
    rng = generator(0)
    rows, weights = rng.integers(0, 5, size=(999, 33)).astype(np.uint8), rng.standard_normal((999, 7))
    first = level_counts.offsets((5,) * 33)
    results = []
    for instruction_set in INSTRUCTION_SETS:
        with use_instruction_set(instruction_set):
            results.append(level_counts.weighted_counts(rows, weights, first))
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], rtol=1e-13, atol=1e-12)


@needs_native
def test_malformed_arguments_of_kernel_sums_are_refused() -> None:
    kernel_sums = native_kernels.module.kernel_sums
    distances, weight, out = np.ones((2, 5)), np.ones(5), (np.empty((1, 2, 2)), np.empty(2))
    squarings = np.zeros(1, dtype=np.int64)
    for ends in ([0, 3, 4], [1, 3, 5], [0, 7, 5], [0, -1, 5]):
        with pytest.raises(ValueError, match="ends"):
            kernel_sums(distances, weight, np.array(ends), 1.0, squarings, *out)
    valid_ends = np.array([0, 3, 5])
    with pytest.raises(ValueError, match="weight"):
        kernel_sums(distances, weight[:4], valid_ends, 1.0, squarings, *out)
    with pytest.raises(ValueError, match="squared"):
        kernel_sums(distances, weight, valid_ends, 1.0, squarings - 1, *out)
    with pytest.raises(ValueError, match="results"):
        kernel_sums(distances, weight, valid_ends, 1.0, squarings, np.empty((2, 2, 2)), np.empty(2))
    around = native_kernels.module.kernel_sums_around
    for factor in (np.ones((4, 5)), np.ones((5, 4))):
        with pytest.raises(ValueError, match="must have shape"):
            around(np.ones((2, 3)), factor, weight, valid_ends, 1.0, squarings, *out)


@needs_native
def test_malformed_arguments_of_level_kernels_are_refused() -> None:
    module = native_kernels.module
    rows, out = np.zeros((3, 2), dtype=np.int8), np.empty((3, 1))
    table = np.zeros((1, 4))
    for first in ([0, 2], [0, 2, 5], [0, 3, 2], [1, 2, 4], [0, 2**40, 2**41]):
        with pytest.raises(ValueError, match="cell"):
            module.look_up(rows, table, np.array(first), out)
    with pytest.raises(ValueError, match=r"\(n, k\)"):
        module.look_up(rows, table, np.array([0, 2, 4]), np.empty((2, 1)))
    with pytest.raises(ValueError, match="weights"):
        module.weighted_counts(rows, np.zeros((2, 1)), np.array([0, 2, 4]), np.empty((1, 4)))
    with pytest.raises(TypeError):
        module.look_up(rows, table.astype(np.float32), np.array([0, 2, 4]), out)


@needs_native
def test_malformed_sparse_rows_are_refused_or_harmless() -> None:
    sparse_sums = native_kernels.module.sparse_sums
    values, columns = np.ones(2), np.array([0, 7], dtype=np.int32)
    for start in ([0, 3], [0, -1], [-1, 2], [0, 2, 1]):
        with pytest.raises(ValueError, match="begin and end"):
            sparse_sums(values, columns, np.array(start), np.ones((2, 1)), np.empty((len(start) - 1, 1)))
    out = np.empty((1, 1))
    sparse_sums(values, columns, np.array([0, 2]), np.ones((2, 1)), out)
    assert out.tolist() == [[1.0]]


@needs_native
def test_codes_that_are_no_level_are_skipped() -> None:
    codes = np.array([[-1, 127], [-128, 5], [3, 2]], dtype=np.int8)
    assert level_counts.look_up(codes, np.ones((1, 4)), np.array([0, 2, 4])).tolist() == [[0.0], [0.0], [0.0]]

"""Arrays of any shape, type and memory layout: native kernels end in the result of the NumPy version or in an exception.

`check.py --sanitize` runs these tests with more examples, on an extension that stops at any invalid access to memory.
"""

from __future__ import annotations

import os
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import pytest

from calibayes.kernels.cut_points import root_tree
from calibayes.kernels.dispatch import native_kernels
from calibayes.kernels.forests import ONE_LEAF, forest_of
from calibayes.kernels.gaussian_density import ClassTables
from calibayes.kernels.level_counts import CellTotals, LabeledRows
from calibayes.kernels.tree_nodes import HALF, LabeledScores, Split, SplitOptions, byte_columns
from tests.kernel_versions import numpy_only
from tests.kernels.native_cases import CASES
from tests.kernels.tree_cases import TREE_CASES
from tests.seeds import generator

EXAMPLES = int(os.environ.get("CALIBAYES_FUZZ", "40"))
"""Number of calls per kernel and test."""
FIRST = np.array([0, 2, 4])
pytestmark = pytest.mark.skipif(
    native_kernels.module is None, reason="the native kernels are not built or disabled"
)


def leaves(result: Any) -> list[Any]:
    """All arrays and numbers in nested tuples as arrays, without None."""
    if isinstance(result, tuple):
        return [leaf for part in result for leaf in leaves(part)]
    return [] if result is None else [np.array(result)]


def misaligned(array: Any) -> Any:
    """The same values, contiguous, one byte after an address at which items are aligned."""
    memory = np.zeros(array.nbytes + 1, dtype=np.uint8)
    copy = memory[1:].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def frozen(array: Any) -> Any:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


LAYOUTS = (
    misaligned,
    frozen,
    np.asfortranarray,
    lambda array: np.flip(np.flip(array).copy()),
    lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    lambda array: np.repeat(array, 3, axis=0)[::3],
    lambda array: array.astype(array.dtype.newbyteorder()),
    lambda array: np.array(array, order="K", copy=True),
)


def random_shape(rng: np.random.Generator) -> tuple[int, int, int]:
    return int(rng.integers(0, 40)), int(rng.integers(1, 12)), int(rng.integers(1, 20))


def random_arguments(name: str, seed: int) -> tuple[np.random.Generator, list[tuple[Any, ...]]]:
    """A generator, and up to ten tuples of valid arguments of a kernel, of the same random sizes."""
    rng = generator([seed, *name.encode()])
    every = list(CASES[name].make(rng, *random_shape(rng)))
    return rng, [every[i] for i in rng.permutation(len(every))[:10]]


def copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(arg.copy() if hasattr(arg, "copy") else arg for arg in args)


def in_other_layouts(rng: np.random.Generator, args: tuple[Any, ...], fixed: int) -> tuple[Any, ...]:
    """The arguments in random layouts, except for the first ``fixed``."""
    changed = list(copied(args))
    for i, arg in enumerate(args):
        if i >= fixed and isinstance(arg, np.ndarray) and arg.size and rng.random() < 0.7:
            changed[i] = LAYOUTS[rng.integers(len(LAYOUTS))](arg)
        elif hasattr(arg, "_fields"):
            changed[i] = type(arg)(*in_other_layouts(rng, arg, 0))
        elif is_dataclass(arg):
            changed[i] = type(arg)(*in_other_layouts(rng, tuple(vars(arg).values()), 0))
        elif hasattr(arg, "indptr"):
            for part in ("data", "indices", "indptr"):
                if rng.random() < 0.5:
                    setattr(changed[i], part, misaligned(getattr(arg, part)))
    return tuple(changed)


def agree(actual: Any, expected: Any) -> None:
    """Whole numbers are equal, others to rounding."""
    for one, other in zip(leaves(actual), leaves(expected), strict=True):
        if other.dtype.kind in "iu":
            np.testing.assert_array_equal(one, other)
            continue
        scale = np.abs(other[np.isfinite(other)]).max(initial=1.0)
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * scale)


@pytest.mark.parametrize("name", CASES)
def test_results_do_not_depend_on_the_memory_layout(name: str) -> None:
    # These kernels write into their first argument.
    kernel, fixed = CASES[name].kernel, int(name in ("kernel_sums", "narrow_into", "add_factors"))
    for seed in range(max(EXAMPLES // 10, 1)):
        rng, every = random_arguments(name, seed)
        for args in every:
            actual = kernel(*in_other_layouts(rng, args, fixed))
            with numpy_only():
                agree(actual, kernel(*copied(args)))


class Recorder:
    """The extension module; keeps the arguments of each call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        if name == "Team":
            return native_kernels.module.Team

        def call(*args: Any) -> Any:
            self.calls.append((name, copied(args)))
            return getattr(native_kernels.module, name)(*args)

        return call


ODD_NUMBERS = (-1, 0, 1, 3, 65, 2**26, 2**31, 2**40, 2**62, -(2**63), 2**63 - 1)


def with_odd_number(rng: np.random.Generator, array: Any) -> Any:
    copy = array.copy()
    if copy.size:
        number = ODD_NUMBERS[rng.integers(len(ODD_NUMBERS))]
        copy.flat[rng.integers(copy.size)] = np.array([number], dtype=np.int64).astype(copy.dtype)[0]
    return copy


def without_items(rng: np.random.Generator, array: Any) -> Any:
    """The array, empty or shorter along one axis."""
    axis = int(rng.integers(array.ndim)) if array.ndim else 0
    return np.take(array, range(int(rng.integers(0, max(array.shape[axis], 1)))), axis=axis)


def malformed(rng: np.random.Generator, arg: Any) -> Any:
    if not isinstance(arg, np.ndarray):
        return (arg, -1.0, 0.0, np.nan, np.inf, None, "text")[rng.integers(7)]
    kinds = (np.int8, np.uint16, np.int32, np.int64, np.uint64, np.float16, np.float32, np.float64, bool)
    changes = (
        lambda: with_odd_number(rng, arg),
        lambda: with_odd_number(rng, arg),
        lambda: without_items(rng, arg),
        lambda: np.concatenate([arg, arg], axis=0),
        lambda: np.concatenate([arg, arg], axis=-1),
        lambda: np.nan_to_num(arg).astype(kinds[rng.integers(len(kinds))]),
        lambda: arg[None],
        lambda: arg.ravel(),
        lambda: LAYOUTS[rng.integers(len(LAYOUTS))](arg),
        lambda: np.broadcast_to(arg[:1], arg.shape),
        lambda: arg.T,
        lambda: arg.tolist(),
    )
    return changes[rng.integers(len(changes))]()


@pytest.mark.parametrize("name", CASES)
def test_malformed_arguments_end_in_a_result_or_an_exception(name: str) -> None:
    module, done = native_kernels.module, 0
    for seed in range(1000, 1000 + EXAMPLES):
        recorder = Recorder()
        rng, every = random_arguments(name, seed)
        for args in every[:2]:
            CASES[name].kernel.native(recorder, *copied(args))
        for function, args in recorder.calls:
            for _ in range(5):
                changed = list(args)
                for i in rng.integers(len(args), size=rng.integers(1, 3)):
                    with np.errstate(all="ignore"):
                        changed[i] = malformed(rng, args[i])
                done += 1
                try:
                    getattr(module, function)(*changed)
                except (TypeError, ValueError):
                    continue
    assert done >= EXAMPLES


def small_arguments(n: int, d: int, k: int) -> dict[str, tuple[Any, ...]]:
    """Arguments of the kernels for sizes that may be 0."""
    codes, x, weights, table = np.zeros((n, d), np.int8), np.zeros((n, d)), np.ones((n, k)), np.ones((k, d))
    first, points, labels, weight = np.arange(d + 1) * 2, np.full(d, 2), np.zeros(n, int), np.ones(n)
    flat, row_weights = np.ones((k, 2 * d)), (weight, weight)
    ends = (*range(k), d) if d >= k else (0,)
    columns, rows = byte_columns(np.ones((n, d), np.uint8), np.full(d, 2)), np.arange(n, dtype=np.int32)
    packed, sides = np.full((n, k), HALF), np.ones(d, np.int8)
    options = SplitOptions(np.arange(d, dtype=np.int32), 0 * sides, 1.0, 1.0)
    labeled, scored = LabeledRows(labels, weight, 1 + k), LabeledScores(weights, labels, weight)
    no_rows, first_leaf, words = np.zeros(n, bool), np.zeros(n, np.int8), np.arange(n, dtype=np.uint64)
    no_pairs = np.zeros((2, 0), int), np.zeros((0, 3))
    return {
        "node_sums": (columns, rows, packed),
        "best_split": (np.ones((2, 2 * d, k), np.int64), first, options),
        "grow_tree": (columns, no_rows, packed, options, 3),
        "divide": (columns, rows, Split(1.0, 0, 1, False)),
        "leaf_codes": (columns, forest_of([ONE_LEAF])),
        "bin_codes": (x, [np.zeros(1)] * d),
        "bin_columns": (list(x.T), [np.zeros(1)] * d, 1.0),
        "add_factors": (weights.copy(), first_leaf, np.ones((2, k))),
        "packed_residuals": (scored, 1.0, np.ones(n, np.uint32)),
        "leaf_sums": (scored, first_leaf, no_rows, 2, 1.0),
        "whole_loss": (scored, ~no_rows, 1.0),
        "row_hashes": (columns, np.ones(d, np.uint64), words),
        "column_keys": (columns, words),
        "weighted_counts": (codes, weights, first),
        "look_up": (codes, flat, first),
        "fused_pass": (codes, flat, first, np.zeros(k), labels, *row_weights, 0.0, 0.0),
        "flag_counts": (x, weights),
        "flag_scores": (x, table, table),
        "position_counts": (x, points, weights, np.arange(d + 1) * 4),
        "position_scores": (x, points, np.zeros((k, 4 * d)), np.arange(d + 1) * 4),
        "diagonal_log_density": (x, table, table),
        "class_log_densities": (x, table, np.ones((k, d, d)), np.ones(k)),
        "inverse_factors": (np.stack([np.eye(d)] * k) if k else np.zeros((0, d, d)),),
        "first_and_outer": (x, np.zeros(d), weights),
        "left_out_shares": (x, ClassTables(table, table, table, table), labels, weight),
        "power_sums": (x, np.zeros(d), weights),
        "minimum_and_maximum": (x,),
        "log_normalize": (weights,),
        "first_largest": (weights,),
        "assess": (weights, labels, *row_weights, 0.0),
        "largest_codes": (codes,),
        "narrow_into": (codes.copy(), codes, np.full(d, 2)),
        "distinct_positions": (weight, 1 + k),
        "distinct_sample": (weight, 1 + k),
        "cell_counts": (weight, weight, root_tree()),
        "cell_weights": (weight, root_tree(), labels, weight, 1 + k),
        "cell_totals": (weight, root_tree(), labeled),
        "united_cells": (CellTotals(labels[:1], np.ones((min(n, 1), 4 + k))),) * 2,
        "code_totals": (labels, 0, 1, labeled),
        "known_moments": (weight, 0.5),
        "kernel_sums": (x.copy(), np.ones(d), ends, 1.0, [0, 1]),
        "kernel_sums_around": (x, np.ones((d + 2, d)), np.ones(d), ends, 1.0, [0, 1]),
        "product_sums": (x, labels, np.ones((d, k)), np.ones(k), *np.zeros((2, 2, d)), *no_pairs),
    }


def outcome(kernel: Any, args: tuple[Any, ...]) -> Any:
    """Shapes and values of the results, or that there was an exception."""
    try:
        return [(leaf.shape, leaf.tolist()) for leaf in leaves(kernel(*copied(args)))]
    except (ValueError, IndexError):
        return "exception"


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("d", [0, 1, 2])
@pytest.mark.parametrize("n", [0, 3])
def test_without_rows_columns_or_classes_native_and_numpy_versions_agree(n: int, d: int, k: int) -> None:
    for name, args in small_arguments(n, d, k).items():
        kernel = CASES[name].kernel
        with numpy_only():
            expected = outcome(kernel, args)
        assert outcome(kernel, args) == expected, name


EMPTY_CALLS = {
    "look_up": (np.zeros((3, 2), np.int8), np.zeros((0, 4)), FIRST, np.empty((3, 0))),
    "weighted_counts": (np.zeros((3, 0), np.int8), np.ones((3, 1)), FIRST[:1], np.empty((1, 0))),
    "diagonal_gaussian": (np.zeros((3, 2)), np.zeros((0, 2)), np.zeros((0, 2)), np.empty((3, 0))),
    "power_sums": (np.zeros((3, 2)), np.zeros(2), np.zeros((3, 0)), np.empty((3, 0, 2))),
    "binned_sums": (np.zeros((3, 1)), np.array([2]), np.zeros((0, 4)), np.array([0, 4]), np.empty((3, 0))),
    "binned_counts": (np.zeros((3, 1)), np.array([2]), np.zeros((3, 0)), np.array([0, 4]), np.zeros((0, 4))),
}
"""Calls of the extension module without classes or columns."""


@pytest.mark.parametrize("name", EMPTY_CALLS)
def test_no_class_and_no_column_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="at least one"):
        getattr(native_kernels.module, name)(*EMPTY_CALLS[name])


def test_many_squarings_are_refused_by_the_extension_and_have_a_result() -> None:
    distances, weight, many = np.array([[0.0, 1e-17, 0.5, 2.0]]), np.ones(4), [0, 2**40]
    out = np.empty((2, 1, 1)), np.empty(1)
    with pytest.raises(ValueError, match="squared 0 to 64 times"):
        native_kernels.module.kernel_sums(distances, weight, np.array([0, 4]), 1.0, np.array(many), *out)
    args = (distances, weight, (0, 4), 1.0, many)
    kernel = CASES["kernel_sums"].kernel
    sums, _ = kernel(*copied(args))
    assert sums[1].tolist() == [[2.0]]
    with numpy_only():
        agree(sums, kernel(*copied(args))[0])


def test_results_in_the_memory_of_arguments_are_refused() -> None:
    """Positions that were checked could be overwritten by results."""
    module, codes, table = native_kernels.module, np.zeros((3, 2), np.int32), np.zeros((1, 4))
    memory = FIRST.copy()
    with pytest.raises(ValueError, match="must not share memory with another argument: pass a copy"):
        module.look_up(codes, table, memory, memory.view(np.float64).reshape(3, 1))
    with pytest.raises(ValueError, match="must not share memory"):
        module.distinct_positions(memory.view(np.float64), np.empty(3), memory)


def test_numbers_that_no_integer_holds_are_zero() -> None:
    module, team = native_kernels.module, native_kernels.module.Team(2)
    packed, sums, rows = np.empty((3, 1), np.int64), np.zeros((3, 1, 2), np.int64), np.zeros(3, bool)
    scored = np.full((3, 2), 0.5), np.zeros(3, np.int32), np.array([np.nan, np.inf, 1e300])
    module.packed_residuals(*scored, 1.0, np.zeros(3, np.uint32), team, packed)
    assert packed.tolist() == [[0]] * 3
    module.leaf_sums(scored[0], np.zeros(3, np.int8), *scored[1:], rows, 1.0, team, sums)
    assert not sums.any()
    assert module.whole_loss(*scored, ~rows, 1.0, 2.0**16, team) == 0


def test_misaligned_arrays_are_refused_by_the_extension() -> None:
    module, codes = native_kernels.module, np.zeros((3, 2), np.int32)
    args = codes, np.zeros((1, 4)), FIRST, np.empty((3, 1))
    for i in range(len(args)):
        changed = (*args[:i], misaligned(args[i]), *args[i + 1 :])
        with pytest.raises(ValueError, match="aligned in memory"):
            module.look_up(*changed)


def calls_of(name: str) -> list[tuple[str, tuple[Any, ...]]]:
    """Calls of the extension module that a kernel makes for some valid arguments with rows."""
    recorder, rng = Recorder(), generator([*name.encode()])
    every = list(CASES[name].make(rng, 9, 3, 3))
    for args in [every[i] for i in rng.permutation(len(every))[:6]]:
        CASES[name].kernel.native(recorder, *copied(args))
    return recorder.calls


def is_refused(function: str, args: list[Any]) -> str:
    """How a call is refused: the name of the exception and its message; empty if it is not."""
    try:
        getattr(native_kernels.module, function)(*args)
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("name", TREE_CASES)
def test_every_array_of_the_kernels_of_trees_is_aligned_and_of_its_type(name: str) -> None:
    tried = 0
    for function, args in calls_of(name):
        for i, arg in enumerate(args):
            if not isinstance(arg, np.ndarray) or not arg.size:
                continue
            tried += 1
            other_types = [np.dtype(np.float16), *[arg.dtype.newbyteorder("S")][: arg.itemsize - 1]]
            for other in (arg[None], *(np.zeros(arg.shape, kind) for kind in other_types)):
                refusal = is_refused(function, [*args[:i], other, *args[i + 1 :]])
                assert refusal.startswith("TypeError"), (i, other.dtype)
            if arg.itemsize > 1:
                refusal = is_refused(function, [*args[:i], misaligned(arg), *args[i + 1 :]])
                assert "aligned in memory" in refusal, i
    assert tried > 0


TEAM_ARGUMENT = object()
"""A team of threads, in its place."""
THREE, TWO_CLASSES = np.zeros(3, np.int32), np.zeros((3, 2))
NONE_HELD_OUT, NO_LEAVES, ONES = np.zeros(3, bool), np.zeros(3, np.int8), np.ones(3)
WORDS, HASHES = np.zeros((2, 3), np.uint64), np.zeros(3, np.uint64)
GROWTH_CALLS = {
    "packed_residuals": (
        TWO_CLASSES,
        THREE,
        ONES,
        1.0,
        np.zeros(3, np.uint32),
        TEAM_ARGUMENT,
        np.zeros((3, 1), int),
    ),
    "leaf_sums": (
        *(TWO_CLASSES, NO_LEAVES, THREE, ONES, NONE_HELD_OUT, 1.0, TEAM_ARGUMENT),
        np.zeros((3, 4, 2), int),
    ),
    "whole_loss": (TWO_CLASSES, THREE, ONES, NONE_HELD_OUT, 1.0, 9.0, TEAM_ARGUMENT),
    "add_factors": (np.zeros((4, 2)), NO_LEAVES, TEAM_ARGUMENT, TWO_CLASSES.copy()),
    "row_hashes": (WORDS, np.zeros((9, 256), np.uint64), TEAM_ARGUMENT, HASHES),
    "column_keys": (WORDS, np.zeros(256, np.uint64), HASHES, TEAM_ARGUMENT, np.zeros(9, np.uint64)),
    "node_sums": (WORDS, THREE, np.zeros((3, 1), int), np.arange(10), np.zeros((2, 9, 1), int)),
}
"""Valid calls of the extension module: three rows, nine columns in two words, two classes, four leaves."""
BAD_ARGUMENTS = {
    "labels of fewer rows": ("packed_residuals", 1, THREE[:2]),
    "a label that is no class": ("packed_residuals", 1, THREE + 2),
    "a negative label": ("leaf_sums", 2, THREE - 1),
    "weights of some rows": ("whole_loss", 2, ONES[:2]),
    "no weight": ("leaf_sums", 3, ONES[:0]),
    "fractions of fewer rows": ("packed_residuals", 4, np.zeros(2, np.uint32)),
    "numbers of both of two classes": ("packed_residuals", 6, np.zeros((3, 2), int)),
    "scores of one class": ("packed_residuals", 0, TWO_CLASSES[:, :1].copy()),
    "scores without a class": ("whole_loss", 0, TWO_CLASSES[:, :0].copy()),
    "a leaf that there is not": ("leaf_sums", 1, NO_LEAVES + 4),
    "a negative leaf": ("leaf_sums", 1, NO_LEAVES - 1),
    "flags of fewer rows": ("leaf_sums", 4, NONE_HELD_OUT[:2]),
    "flags of more rows": ("whole_loss", 3, np.zeros(4, bool)),
    "sums of another number of classes": ("leaf_sums", 7, np.zeros((3, 4, 3), int)),
    "two planes of sums": ("leaf_sums", 7, np.zeros((2, 4, 2), int)),
    "no leaf": ("leaf_sums", 7, np.zeros((3, 0, 2), int)),
    "factors of fewer leaves": ("add_factors", 0, np.zeros((0, 2))),
    "factors of three classes": ("add_factors", 0, np.zeros((4, 3))),
    "a leaf without factors": ("add_factors", 1, NO_LEAVES + 4),
    "scores of fewer rows": ("add_factors", 3, TWO_CLASSES[:2].copy()),
    "scores that cannot be written": ("add_factors", 3, frozen(TWO_CLASSES)),
    "words of too few codes": ("row_hashes", 1, np.zeros((9, 255), np.uint64)),
    "words of codes of seventeen columns": ("row_hashes", 1, np.zeros((17, 256), np.uint64)),
    "words of codes of no column": ("row_hashes", 1, np.zeros((0, 256), np.uint64)),
    "hashes of fewer rows": ("row_hashes", 3, HASHES[:2]),
    "too few words of codes": ("column_keys", 1, np.zeros(255, np.uint64)),
    "hashes of more rows": ("column_keys", 2, np.zeros(4, np.uint64)),
    "keys of eight columns": ("column_keys", 4, np.zeros(8, np.uint64)),
    "keys of no column": ("column_keys", 4, np.zeros(0, np.uint64)),
    "a row outside of the table": ("node_sums", 1, THREE + 3),
    "one plane of sums": ("node_sums", 4, np.zeros((1, 9, 1), int)),
    "sums of fewer cells": ("node_sums", 4, np.zeros((2, 8, 1), int)),
}
"""A function, the position of an argument, and the value that it must refuse."""


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_sizes_and_codes_that_do_not_fit_are_refused(name: str) -> None:
    function, place, value = BAD_ARGUMENTS[name]
    team = native_kernels.module.Team(2)
    args = [team if arg is TEAM_ARGUMENT else arg for arg in copied(GROWTH_CALLS[function])]
    assert not is_refused(function, args)
    assert is_refused(function, [*args[:place], value, *args[place + 1 :]])


@pytest.mark.skipif("CALIBAYES_SANITIZED" in os.environ, reason="too slow with sanitizers")
def test_more_classes_times_cells_than_32_bits_are_counted() -> None:
    """Columns without levels have no cell in the result, but one in the table of native code."""
    k, d = 2**18, 2**14 + 1
    codes, first = np.zeros((1, d), np.int16), np.zeros(d + 1, np.int64)
    first[-1] = 1
    weights = np.zeros((1, k))
    weights[0, -3] = 2.0
    result = CASES["weighted_counts"].kernel(codes, weights, first)
    assert result.shape == (k, 1)
    assert np.flatnonzero(result).tolist() == [k - 3]
    assert result[-3, 0] == 2.0


@pytest.mark.skipif(
    "CALIBAYES_SANITIZED" in os.environ, reason="sanitizers end the process where there is no memory"
)
def test_memory_that_there_is_not_is_a_memory_error_whatever_else_is_imported() -> None:
    """Extensions of one domain of nanobind translate each other's exceptions: DuckDB's would be an error of DuckDB."""
    pytest.importorskip("duckdb")
    rows = np.empty((0, 2**31 - 1))
    with pytest.raises(MemoryError):
        native_kernels.module.normalize(rows, rows.copy(), np.empty(0))

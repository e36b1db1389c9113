"""Cells of ordered bits against a brute-force count, and what they promise."""

import itertools
import struct
from collections import defaultdict

import numpy as np
import pytest

from calibayes.kernels.cut_points import cell_counts, cell_numbers, ordered_bits, root_tree
from calibayes.tables.memory_summary import MOST_SHARE, PARTS, PASSES, divided
from tests.kernel_versions import numpy_only
from tests.seeds import generator

N = 6000


def columns():
    rng = generator(7)
    normal = rng.normal(size=N)
    yield "normal", normal
    yield "heavy ties", np.where(rng.random(N) < 0.3, 0.0, normal)
    yield "signed zeros", np.where(rng.random(N) < 0.5, -0.0, normal)
    yield "narrow", 1e9 + np.round(normal, 4)
    yield "denormal", normal * 5e-321
    yield "any size", normal * 10.0 ** rng.integers(-300, 90, N)
    yield "integers", rng.integers(-500, 50000, N).astype(float)
    yield "one value", np.full(N, 3.5)
    yield "neighbors", np.nextafter(1.0, 2.0) ** rng.integers(0, 2, N)


COLUMNS = dict(columns())


def key_of(number):
    """The ordered bits of a number, by the definition."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", number + 0.0))
    return ~bits & (2**64 - 1) if bits >> 63 else bits | 1 << 63


def brute_force(numbers):
    """(rows, smallest, largest) of all cells, ascending: heavy cells are divided one by one, in at most four passes."""
    total, done, pending = len(numbers), [], [list(numbers)]
    for number in range(PASSES):
        parts = []
        for rows in pending:
            low, high, by_cell = min(rows), max(rows), defaultdict(list)
            base, span = key_of(low), key_of(high) - key_of(low)
            share = -(-PARTS * MOST_SHARE * len(rows) // total)
            shift = 48 if number == 0 else max(span.bit_length() - (share - 1).bit_length(), 0)
            for value in rows:
                by_cell[(key_of(value) - (base if number else 0)) >> shift].append(value)
            parts += by_cell.values()
        heavy = [len(rows) * MOST_SHARE > total and min(rows) < max(rows) for rows in parts]
        done += [rows for rows, is_heavy in zip(parts, heavy, strict=True) if not is_heavy]
        pending = [rows for rows, is_heavy in zip(parts, heavy, strict=True) if is_heavy]
    return sorted((min(rows) + 0.0, max(rows) + 0.0, len(rows)) for rows in done + pending)


def cells(numbers):
    _, counts = divided(numbers, np.ones(len(numbers)))
    return sorted(zip(counts.low.tolist(), counts.high.tolist(), counts.rows.tolist(), strict=True))


@pytest.mark.parametrize("name", COLUMNS)
def test_cells_are_those_of_a_brute_force_count(name):
    expected = brute_force(COLUMNS[name].tolist())
    assert cells(COLUMNS[name]) == expected
    with numpy_only():
        assert cells(COLUMNS[name]) == expected


@pytest.mark.parametrize("name", COLUMNS)
def test_cells_follow_one_another_and_few_rows_share_one(name):
    found = cells(COLUMNS[name])
    assert sum(rows for *_, rows in found) == N
    assert all(before[1] < after[0] for before, after in itertools.pairwise(found))
    assert max((rows for low, high, rows in found if low < high), default=0) <= -(-N // MOST_SHARE)


def test_ordered_bits_ascend_with_the_numbers():
    numbers = np.unique(np.concatenate([*COLUMNS.values(), [5e-324, -5e-324, 1e100, -1e100, 0.0]]))
    bits = ordered_bits(numbers).tolist()
    assert bits == sorted(set(bits)) == [key_of(number) for number in numbers.tolist()]
    assert ordered_bits(np.array([-0.0])) == ordered_bits(np.array([0.0]))


def test_missing_numbers_are_in_no_cell_and_weights_are_those_of_the_rows():
    rng = generator(3)
    x, weight = np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)), rng.random(N)
    known = ~np.isnan(x)
    tree, _ = divided(x[known], weight[known])
    counts = cell_counts(x, weight, tree)
    assert counts.rows.sum() == known.sum()
    expected = np.bincount(cell_numbers(x[known], tree), weight[known], len(tree.child))
    np.testing.assert_allclose(counts.weight, expected[counts.entries], rtol=1e-12)
    assert np.count_nonzero(expected) == len(counts.entries)


def test_a_number_beyond_the_cells_of_a_node_is_in_the_last_one():
    tree, _ = divided(np.linspace(1.0, 1.001, 5000), np.ones(5000))
    assert len(tree.base) > 1
    beyond = np.array([1.05])
    assert cell_numbers(beyond, tree) == cell_counts(beyond, np.ones(1), tree).entries
    assert cell_numbers(beyond, root_tree()) == ordered_bits(beyond)[0] >> np.uint64(48)

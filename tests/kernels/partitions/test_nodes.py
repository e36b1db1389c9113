"""Best splits against all splits, sums against sums over rows, and the rows of children."""

import numpy as np
import pytest

from calibayes.kernels.dispatch import thread_limit
from calibayes.kernels.tree_nodes import (
    NO_SPLIT,
    PACKED_ROWS,
    Bounds,
    Split,
    best_split,
    byte_columns,
    divide,
    node_sums,
)
from tests.kernel_versions import numpy_only
from tests.kernels.partitions.oracle import (
    Rows,
    best_of,
    every_split,
    gain,
    is_on_left,
    options,
    random_rows,
)
from tests.seeds import generator

TABLES = {
    "one column": ([7], 2, 0.2),
    "nine columns": ([3, 5, 2, 9, 4, 3, 3, 6, 8], 2, 0.1),
    "three classes": ([12, 2, 30], 3, 0.2),
    "twelve classes": ([5, 9], 12, 0.3),
    "256 codes": ([256, 3], 2, 0.05),
    "nothing missing": ([6, 9, 40], 2, 0.0),
    "constant columns": ([1, 5, 2, 1], 3, 0.5),
}


def table(name, n=60):
    sizes, k, missing = TABLES[name]
    return random_rows(generator([n, *name.encode()]), n, sizes, k, missing)


@pytest.mark.parametrize("name", TABLES)
def test_sums_are_those_of_the_rows_of_each_cell(name):
    rows = table(name)
    chosen = np.flatnonzero(generator(1).random(len(rows.codes)) < 0.6).astype(np.int32)
    sums, first = node_sums(rows.columns, chosen, rows.packed), rows.columns.first
    for j, codes in enumerate(rows.sizes):
        for code in range(codes):
            own = chosen[rows.codes[chosen, j] == code]
            cell = sums[:, first[j] + code]
            assert cell.tolist() == [
                part[own].sum(axis=0).tolist() for part in (rows.residual, rows.variance)
            ]


def test_sums_of_more_rows_than_packed_numbers_can_be_added_up_are_exact():
    """A little more than 2^20 rows with the largest parts that so many may have: more rows would overflow either part."""
    n, largest, widest = PACKED_ROWS + 3000, 2**11 - 1, 2**12 - 1
    codes = np.stack([np.where(np.arange(n) == 5, 0, 1), np.arange(n) % 3], axis=1).astype(np.uint8)
    residual, variance = np.full((n, 2), largest), np.full((n, 2), widest)
    residual[:, 1] *= -1
    residual[::7], variance[::5] = 3, 0
    rows = Rows(codes, np.array([2, 3]), residual, variance)
    by_row = [list(zip(*part.T.tolist(), strict=True)) for part in (residual, variance)]
    expected = []
    for column, codes_ in ((0, 2), (1, 3)):
        own = [np.flatnonzero(codes[:, column] == code).tolist() for code in range(codes_)]
        expected += [[[sum(part[i][c] for i in chosen) for c in (0, 1)] for part in by_row] for chosen in own]
    assert max(abs(number) for cell in expected for part in cell for number in part) > 2**31

    def check():
        found = node_sums(rows.columns, rows.everyone(), rows.packed)
        assert found.transpose(1, 0, 2).tolist() == expected

    check()
    with numpy_only():
        check()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", TABLES)
def test_no_split_gains_more_than_the_best(name, seed):
    rng = generator([seed, *name.encode()])
    rows = random_rows(rng, 50, *TABLES[name])
    given = options(len(rows.sizes), prior=float(rng.choice([1e-6, 50.0, 5000.0])))
    everyone = rows.everyone()
    found = best_split(node_sums(rows.columns, everyone, rows.packed), rows.columns.first, given)
    best = best_of(every_split(rows, everyone, given))
    assert best is not None
    assert found[1:] == best[1:]
    assert found.gain == pytest.approx(best.gain, rel=1e-9)
    assert found.gain == pytest.approx(gain(rows, everyone, found, given), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_columns_with_a_direction_are_split_in_it(seed):
    rng = generator([77, seed])
    rows = random_rows(rng, 60, [6, 9, 4], 1)
    given = options(3, direction=[1, -1, 0])
    bounds = Bounds(*sorted(rng.normal(scale=2.0, size=2)))
    for limits in (Bounds(), bounds):
        sums = node_sums(rows.columns, rows.everyone(), rows.packed)
        found = best_split(sums, rows.columns.first, given, limits)
        best = best_of(every_split(rows, rows.everyone(), given, limits))
        assert found[1:] == (NO_SPLIT if best is None else best)[1:]


def test_of_equal_gains_the_first_column_and_code_are_taken():
    rows = random_rows(generator(5), 40, [4], 2, 0.0)
    # No row has codes 4 and 5.
    twice = rows._replace(codes=np.repeat(rows.codes, 2, axis=1), sizes=np.array([6, 6]))
    sums = node_sums(twice.columns, twice.everyone(), twice.packed)
    found = best_split(sums, twice.columns.first, options(2))
    assert found.column == 0
    assert found.most <= 3
    backwards = options(2)._replace(columns=np.array([1, 0], np.int32))
    assert best_split(sums, twice.columns.first, backwards) == found._replace(column=1)


@pytest.mark.parametrize("is_native", [True, False])
def test_nothing_is_gained_by_constant_columns_zero_variance_and_forbidden_columns(is_native):
    rows = random_rows(generator(6), 40, [5, 1], 2)
    none = rows._replace(residual=0 * rows.residual, variance=0 * rows.variance)
    constant = rows._replace(codes=np.minimum(rows.codes, 0), sizes=np.array([1, 1]))
    forbidden = options(2)._replace(columns=np.zeros(0, np.int32))
    cases = ((none, options(2)), (constant, options(2)), (rows, forbidden), (rows, options(2, least=1e9)))
    for table_, given in cases:
        args = node_sums(table_.columns, table_.everyone(), table_.packed), table_.columns.first, given
        with numpy_only() if not is_native else thread_limit(1):
            assert best_split(*args) == NO_SPLIT


@pytest.mark.parametrize("missing_left", [False, True])
def test_children_have_the_rows_of_the_node_in_order(missing_left):
    rows = random_rows(generator(8), 90, [5] * 9 + [256], 2)
    chosen = np.sort(generator(9).permutation(90)[:50]).astype(np.int32)
    for column, most in ((0, 2), (8, 1), (9, 255), (9, 100)):
        split = Split(1.0, column, most, missing_left)
        left, right = divide(rows.columns, chosen, split)
        goes_left = is_on_left(rows.codes[chosen, column], split).astype(bool)
        assert left.tolist() == chosen[goes_left].tolist()
        assert right.tolist() == chosen[~goes_left].tolist()


def test_codes_beyond_those_of_a_column_are_refused():
    columns = byte_columns(np.array([[3]], np.uint8), np.array([3]))
    args = columns, np.zeros(1, np.int32), np.full((1, 2), 2**32 + 1)
    with pytest.raises(ValueError, match="beyond"):
        node_sums(*args)
    with numpy_only(), pytest.raises(ValueError, match="shape"):
        node_sums(*args)

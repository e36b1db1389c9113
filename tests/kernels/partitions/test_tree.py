"""One tree against its definition, and the same bits from NumPy, every instruction set and any number of threads."""

from itertools import chain

import numpy as np
import pytest

from calibayes.kernels import forests
from calibayes.kernels.dispatch import native_kernels, thread_limit
from calibayes.kernels.forests import forest_of, leaf_codes
from tests.kernel_versions import numpy_only, use_instruction_set
from tests.kernels.partitions.oracle import leaves_by_definition, options, random_rows
from tests.seeds import generator

INSTRUCTION_SETS = native_kernels.module.levels() if native_kernels.module is not None else []


def arrays(grown):
    return [*grown.tree, grown.codes, grown.bounds]


def assert_same_bits(one, other):
    for left, right in zip(arrays(one), arrays(other), strict=True):
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        assert left.tobytes() == right.tobytes()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [1, 3, 12])
def test_leaves_are_those_of_the_definition(k, seed):
    rows = random_rows(generator([seed, k]), 60, [5, 9, 2], k)
    given = options(3, direction=[1, 0, -1] if k == 1 and seed % 2 else None)
    grown = forests.grow_tree(rows.columns, rows.everyone(), rows.packed, given, 6)
    leaves = [set(np.flatnonzero(grown.codes == leaf).tolist()) for leaf in range(len(grown.bounds))]
    assert sorted(map(sorted, leaves)) == sorted(map(sorted, leaves_by_definition(rows, given, 6)))


def test_nodes_are_in_order_and_lead_each_row_to_its_leaf():
    rows = random_rows(generator(2), 300, [40, 9, 3] * 3, 3)
    grown = forests.grow_tree(rows.columns, rows.everyone(), rows.packed, options(9), 20)
    assert len(grown.bounds) == 20
    forest = forest_of([grown.tree])
    forest.verify()
    assert leaf_codes(rows.columns, forest)[:, 0].tolist() == grown.codes.tolist()


def test_rows_that_do_not_take_part_have_no_leaf():
    rows = random_rows(generator(3), 100, [6, 6], 2)
    chosen = np.arange(0, 100, 3, dtype=np.int32)
    grown = forests.grow_tree(rows.columns, chosen, rows.packed, options(2), 5)
    others = np.setdiff1d(np.arange(100), chosen)
    assert (grown.codes[others] == -1).all()
    assert set(grown.codes[chosen]) == set(range(len(grown.bounds)))


@pytest.mark.parametrize("most_leaves", [1, 5])
def test_a_tree_may_have_one_leaf(most_leaves):
    rows = random_rows(generator(4), 30, [6, 6], 2)
    given = options(2) if most_leaves == 1 else options(2, least=1e9)
    grown = forests.grow_tree(rows.columns, rows.everyone(), rows.packed, given, most_leaves)
    assert grown.tree.column.tolist() == [-1]
    assert grown.tree.children.tolist() == [[0, 0]]
    assert grown.bounds.tolist() == [[-np.inf, np.inf]]
    assert not grown.codes.any()


@pytest.mark.parametrize("k", [1, 2, 3, 8, 9, 12])
@pytest.mark.parametrize("sizes", [[7], [5, 256, 1] * 3, [2] * 17], ids=str)
def test_all_versions_grow_the_same_tree(monkeypatch, sizes, k):
    rows = random_rows(generator([k, len(sizes)]), 200, sizes, k)
    direction = np.resize([1, 0, -1], len(sizes)) if k == 1 else None
    args = rows.columns, rows.everyone(), rows.packed, options(len(sizes), direction=direction), 12
    with numpy_only():
        expected = forests.grow_tree(*args)
    for name in INSTRUCTION_SETS:
        with use_instruction_set(name):
            assert_same_bits(forests.grow_tree(*args), expected)
    monkeypatch.setattr(forests, "MANY_CELLS", 0)
    for threads in (2, 3, 7):
        with thread_limit(threads):
            assert_same_bits(forests.grow_tree(*args), expected)


def test_the_order_of_rows_and_of_columns_does_not_matter():
    rows = random_rows(generator(5), 2000, [5, 9, 30], 3)  # so many that no two splits gain the same
    given, order = options(3), generator(6).permutation(2000)
    args = rows.everyone(), rows.packed, given, 6
    grown = forests.grow_tree(rows.columns, *args)
    mixed = rows._replace(**{name: getattr(rows, name)[order] for name in ("codes", "residual", "variance")})
    other = forests.grow_tree(mixed.columns, rows.everyone(), mixed.packed, given, 6)
    assert other.codes.tolist() == grown.codes[order].tolist()
    reversed_ = rows._replace(codes=rows.codes[:, ::-1], sizes=rows.sizes[::-1])
    assert forests.grow_tree(reversed_.columns, *args).codes.tolist() == grown.codes.tolist()


def test_bounds_of_leaves_do_not_overlap_along_a_column_with_a_direction():
    rows = random_rows(generator(7), 400, [30, 9], 1, 0.0)
    # Residuals of the second class rise with the first column, so that it is split several times.
    rows.residual[:, 0] += 200 * rows.codes[:, 0].astype(int) - 3000
    given = options(2, direction=[1, 0])._replace(columns=np.array([0], np.int32))
    grown = forests.grow_tree(rows.columns, rows.everyone(), rows.packed, given, 8)
    order = sorted(range(len(grown.bounds)), key=lambda leaf: rows.codes[grown.codes == leaf, 0].min())
    limits = [*chain(*grown.bounds[order])]
    assert len(order) == 8
    assert limits == sorted(limits)


@pytest.mark.parametrize("sizes", [[40] * 3, [9, 256] + [5] * 30], ids=len)
@pytest.mark.parametrize("k", [1, 3])
def test_threads_that_share_the_rows_of_a_node_grow_the_same_tree(sizes, k):
    rows = random_rows(generator([8, k, len(sizes)]), 2 * forests.MANY_CELLS // len(sizes), sizes, k)
    args = rows.columns, rows.everyone(), rows.packed, options(len(sizes)), 9
    expected = forests.grow_tree(*args)
    assert len(expected.bounds) == 9
    for threads in (2, 3, 16):
        with thread_limit(threads):
            assert_same_bits(forests.grow_tree(*args), expected)

"""One tree against its definition, and the same bits from NumPy, every instruction set and any number of threads."""

from itertools import chain

import numpy as np
import pytest

from calibayes.kernels import forests
from calibayes.kernels.dispatch import native_kernels, thread_limit
from calibayes.kernels.forests import DividedRows, best_first, forest_of, leaf_codes
from tests.kernel_versions import numpy_only, use_instruction_set
from tests.kernels.partitions.oracle import options, random_rows, tree_by_definition
from tests.seeds import generator

INSTRUCTION_SETS = native_kernels.module.levels() if native_kernels.module is not None else []


def arrays(grown):
    return [*grown.tree, grown.bounds]


def leaves_of(rows, grown):
    """The leaf of each row."""
    return leaf_codes(rows.columns, forest_of([grown.tree]))[:, 0]


def assert_same_bits(one, other):
    for left, right in zip(arrays(one), arrays(other), strict=True):
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        assert left.tobytes() == right.tobytes()


def grown_in_passes(rows, given, most_leaves):
    """`best_first` on rows in memory, and how many nodes were divided in each of its passes."""
    divided, passes = DividedRows(rows.packed, {0: rows.everyone()}), []

    def split_sums(requests):
        passes.append(len(requests))
        return divided.split_sums(rows.columns, requests)

    sums = divided.sums(rows.columns, 0)
    return best_first(rows.columns.first, given, most_leaves, sums, split_sums), passes


def assert_is_defined(rows, given, most_leaves, grown):
    """The tree is that of the definition: nodes, order of the nodes, rows of the leaves, bounds."""
    expected = tree_by_definition(rows, given, most_leaves)
    assert grown.tree.column.tolist() == expected.column
    assert grown.tree.most.tolist() == expected.most
    assert grown.tree.missing_left.tolist() == expected.missing_left
    assert grown.tree.children.tolist() == expected.children
    np.testing.assert_allclose(grown.bounds, expected.bounds, rtol=1e-12)
    leaves = leaves_of(rows, grown)
    assert [np.flatnonzero(leaves == leaf).tolist() for leaf in range(len(grown.bounds))] == expected.rows


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [1, 3, 12])
def test_trees_are_those_of_the_definition(k, seed):
    rows = random_rows(generator([seed, k]), 60, [5, 9, 2], k)
    given = options(3, direction=[1, 0, -1] if k == 1 and seed % 2 else None)
    assert_is_defined(rows, given, 6, forests.grow_tree(rows.columns, rows.none(), rows.packed, given, 6))
    with numpy_only():
        assert_is_defined(rows, given, 6, forests.grow_tree(rows.columns, rows.none(), rows.packed, given, 6))


@pytest.mark.parametrize("most_leaves", [2, 3, 7, 19, 31])
@pytest.mark.parametrize("k", [1, 3])
def test_leaves_divided_in_passes_are_those_divided_one_by_one(k, most_leaves):
    rows = random_rows(generator([10, k, most_leaves]), 250, [9, 30, 4], k)
    given = options(3, least=1500.0, direction=[1, 0, -1] if k == 1 else None)
    grown, passes = grown_in_passes(rows, given, most_leaves)
    assert len(grown.bounds) == most_leaves or (
        k == 1 and len(grown.bounds) > 20
    )  # all that a direction allows
    assert_is_defined(rows, given, most_leaves, grown)
    assert passes[0] == 1
    assert sum(passes) >= len(grown.bounds) - 1  # some nodes are divided that turn out to be leaves


@pytest.mark.parametrize(("signal", "most"), [(1.0, 12), (0.0, 24)])
@pytest.mark.parametrize("seed", range(4))
def test_trees_of_many_leaves_need_few_passes(seed, signal, most):
    """Where residuals depend on the columns about a third as many as leaves, more where they are noise."""
    rng, sizes = generator([11, seed]), [40, 9, 30, 5, 200]
    rows = random_rows(rng, 20_000, sizes, 1)
    position = rows.codes / np.array(sizes)
    odds = np.exp(signal * (2 * position[:, 0] - position[:, 1] + np.sin(3 * position[:, 4])))
    is_second = rng.random(20_000) < odds / (1 + odds)
    residual = np.where(is_second, 500, -500)[:, None]
    rows = rows._replace(residual=residual, variance=np.full_like(residual, 500))
    grown, passes = grown_in_passes(rows, options(5, prior=5000.0, least=1000.0), 31)
    assert len(grown.bounds) == 31
    assert len(passes) <= most
    assert sum(passes) <= 60
    given = options(5, prior=5000.0, least=1000.0)
    assert_same_bits(grown, forests.grow_tree(rows.columns, rows.none(), rows.packed, given, 31))


def test_one_leaf_needs_no_pass():
    rows = random_rows(generator(12), 50, [5, 9], 2)
    for given, most_leaves in ((options(2), 1), (options(2, least=1e9), 31)):
        grown, passes = grown_in_passes(rows, given, most_leaves)
        assert grown.tree.children.tolist() == [[0, 0]]
        assert passes == []


def test_nodes_are_in_order_and_lead_each_row_to_a_leaf():
    rows = random_rows(generator(2), 300, [40, 9, 3] * 3, 3)
    grown = forests.grow_tree(rows.columns, rows.none(), rows.packed, options(9), 20)
    assert len(grown.bounds) == 20
    forest_of([grown.tree]).verify()
    assert set(leaves_of(rows, grown)) == set(range(20))


def test_rows_that_are_held_out_take_no_part():
    rows = random_rows(generator(3), 100, [6, 6], 2)
    held_out = np.arange(100) % 3 > 0
    grown = forests.grow_tree(rows.columns, held_out, rows.packed, options(2), 5)
    alone = rows.only(~held_out)
    assert_same_bits(grown, forests.grow_tree(alone.columns, alone.none(), alone.packed, options(2), 5))
    assert len(grown.bounds) == 5
    with numpy_only():
        assert_same_bits(grown, forests.grow_tree(rows.columns, held_out, rows.packed, options(2), 5))


@pytest.mark.parametrize("most_leaves", [1, 5])
def test_a_tree_may_have_one_leaf(most_leaves):
    rows = random_rows(generator(4), 30, [6, 6], 2)
    given = options(2) if most_leaves == 1 else options(2, least=1e9)
    grown = forests.grow_tree(rows.columns, rows.none(), rows.packed, given, most_leaves)
    assert grown.tree.column.tolist() == [-1]
    assert grown.tree.children.tolist() == [[0, 0]]
    assert grown.bounds.tolist() == [[-np.inf, np.inf]]


@pytest.mark.parametrize("k", [1, 2, 3, 8, 9, 12])
@pytest.mark.parametrize("sizes", [[7], [5, 256, 1] * 3, [2] * 17], ids=str)
def test_all_versions_grow_the_same_tree(monkeypatch, sizes, k):
    rows = random_rows(generator([k, len(sizes)]), 200, sizes, k)
    direction = np.resize([1, 0, -1], len(sizes)) if k == 1 else None
    args = rows.columns, rows.none(), rows.packed, options(len(sizes), direction=direction), 12
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
    args = rows.none(), rows.packed, given, 6
    grown = forests.grow_tree(rows.columns, *args)
    mixed = rows.only(order)
    assert_same_bits(forests.grow_tree(mixed.columns, rows.none(), mixed.packed, given, 6), grown)
    reversed_ = rows._replace(codes=rows.codes[:, ::-1], sizes=rows.sizes[::-1])
    other = forests.grow_tree(reversed_.columns, *args)
    assert leaves_of(reversed_, other).tolist() == leaves_of(rows, grown).tolist()


def test_bounds_of_leaves_do_not_overlap_along_a_column_with_a_direction():
    rows = random_rows(generator(7), 400, [30, 9], 1, 0.0)
    # Residuals of the second class rise with the first column, so that it is split several times.
    rows.residual[:, 0] += 200 * rows.codes[:, 0].astype(int) - 3000
    given = options(2, direction=[1, 0])._replace(columns=np.array([0], np.int32))
    grown = forests.grow_tree(rows.columns, rows.none(), rows.packed, given, 8)
    leaves = leaves_of(rows, grown)
    order = sorted(range(len(grown.bounds)), key=lambda leaf: rows.codes[leaves == leaf, 0].min())
    limits = [*chain(*grown.bounds[order])]
    assert len(order) == 8
    assert limits == sorted(limits)


@pytest.mark.parametrize("sizes", [[40] * 3, [9, 256] + [5] * 30], ids=len)
@pytest.mark.parametrize("k", [1, 3])
def test_threads_that_share_the_rows_of_a_node_grow_the_same_tree(sizes, k):
    rows = random_rows(generator([8, k, len(sizes)]), 2 * forests.MANY_CELLS // len(sizes), sizes, k)
    args = rows.columns, rows.none(), rows.packed, options(len(sizes)), 9
    expected = forests.grow_tree(*args)
    assert len(expected.bounds) == 9
    for threads in (2, 3, 16):
        with thread_limit(threads):
            assert_same_bits(forests.grow_tree(*args), expected)

"""Many trees: the leaves of rows against a walk from the root, and damaged trees that are refused."""

from dataclasses import replace

import numpy as np
import pytest

from calibayes.kernels.dispatch import native_kernels, thread_limit
from calibayes.kernels.forests import MOST_LEAVES, ONE_LEAF, TreeNodes, forest_of, grow_tree, leaf_codes
from tests.kernel_versions import numpy_only, use_instruction_set
from tests.kernels.partitions.oracle import options, random_rows
from tests.seeds import generator

INSTRUCTION_SETS = native_kernels.module.levels() if native_kernels.module is not None else []
ROWS = random_rows(generator(0), 300, [7, 2, 40] * 3, 3)
TREES = [
    grow_tree(ROWS.columns, ROWS.none(), ROWS.packed, options(9, prior=prior), leaves).tree
    for prior, leaves in ((1.0, 20), (500.0, 3), (50.0, 127), (1.0, 32), (1.0, 33), (1.0, 64), (1.0, 65))
]
FOREST = forest_of([*TREES, ONE_LEAF])


def walk(tree: TreeNodes, codes: np.ndarray) -> int:
    """The leaf of a row by walking down from the root."""
    node = 0
    while tree.column[node] >= 0:
        code = codes[tree.column[node]]
        left = tree.missing_left[node] if code == 0 else code <= tree.most[node]
        node = tree.children[node][0 if left else 1]
    return int(tree.children[node][0])


def test_leaves_are_those_of_a_walk_from_the_root():
    expected = [[walk(tree, codes) for tree in FOREST.trees()] for codes in ROWS.codes]
    assert leaf_codes(ROWS.columns, FOREST).tolist() == expected
    assert FOREST.leaves[:3] == (20, 3, FOREST.leaves[2])
    assert FOREST.leaves[3:] == (32, 33, 64, 65, 1)
    assert max(map(max, expected)) < MOST_LEAVES


def test_all_versions_find_the_same_leaves():
    with numpy_only():
        expected = leaf_codes(ROWS.columns, FOREST)
    for name in INSTRUCTION_SETS:
        with use_instruction_set(name):
            assert leaf_codes(ROWS.columns, FOREST).tobytes() == expected.tobytes()
    with thread_limit(3):
        assert leaf_codes(ROWS.columns, FOREST).tobytes() == expected.tobytes()


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 63, 64, 65, 129])
def test_a_few_rows_have_the_leaves_that_they_have_among_many(n):
    expected = leaf_codes(ROWS.columns, FOREST)
    assert leaf_codes(ROWS.columns.rows(slice(5, 5 + n)), FOREST).tolist() == expected[5 : 5 + n].tolist()


@pytest.mark.parametrize("leaves", [3, 20, 40])
def test_nodes_with_several_parents_end_in_some_leaf(leaves):
    """The extension itself, which reads what `Forest.verify` would refuse, stays within its memory."""
    rng = generator(9)
    tree = grow_tree(ROWS.columns, ROWS.none(), ROWS.packed, options(9, prior=1.0), leaves).tree
    for _ in range(50):
        children = tree.children.copy()
        for node in np.flatnonzero(tree.column >= 0):
            if rng.random() < 0.5:
                children[node, rng.integers(2)] = rng.integers(node + 1, len(children))
        codes = leaf_codes(ROWS.columns, forest_of([tree._replace(children=children)]))
        assert 0 <= codes.min() <= codes.max() < leaves


def test_trees_come_back_out_of_a_forest():
    assert FOREST.count == 8
    for found, given in zip(FOREST.trees(), [*TREES, ONE_LEAF], strict=True):
        assert all(map(np.array_equal, found, given))
    FOREST.verify()
    forest_of([]).verify()


def with_child(node, side, value):
    children = FOREST.children.copy()
    children[node, side] = value
    return {"children": children}


def leafless(node):
    column = FOREST.column.copy()
    column[node] = 0
    return {"column": column}


DAMAGED = {
    "a column below -1": {"column": np.where(FOREST.column < 0, -2, FOREST.column)},
    "another type of columns": {"column": FOREST.column.astype(np.int64)},
    "another type of codes": {"most": FOREST.most.astype(np.uint16)},
    "nothing but missing values on the left": {"most": 0 * FOREST.most},
    "sides as bytes": {"missing_left": FOREST.missing_left.astype(np.uint8)},
    "another type of children": {"children": FOREST.children.astype(np.int64)},
    "another type of first nodes": {"first": FOREST.first.astype(np.int32)},
    "numbers": {"column": FOREST.column.astype(float)},
    "objects": {"children": FOREST.children.astype(object)},
    "too few codes": {"most": FOREST.most[:-1]},
    "too few sides": {"missing_left": FOREST.missing_left[:-1]},
    "too few children": {"children": FOREST.children[:-1]},
    "one child": {"children": FOREST.children[:, :1]},
    "no first nodes": {"first": FOREST.first[:0]},
    "first nodes that begin later": {"first": FOREST.first + 1},
    "first nodes that end early": {"first": FOREST.first[:-1]},
    "first nodes out of order": {"first": FOREST.first[[0, 2, 1, 3, 4]]},
    "a tree without nodes": {"first": FOREST.first[[0, 1, 1, 2, 3, 4]]},
    "a tree cut in two": {"first": np.sort(np.append(FOREST.first, 1))},
    "first nodes as a matrix": {"first": FOREST.first[None]},
    "a loop": with_child(0, 0, 0),
    "a child before its parent": with_child(2, 0, 1),
    "two parents": with_child(0, 1, 1),
    "a child beyond the tree": with_child(0, 1, 10**6),
    "a negative child": with_child(0, 1, -1),
    "a leaf with another number": with_child(int(FOREST.first[1] - 1), 0, 0),
    "a leaf that is split": leafless(int(FOREST.first[1] - 1)),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_trees_are_refused(name):
    with pytest.raises(ValueError, match=r"\w"):
        replace(FOREST, **DAMAGED[name]).verify()


def chain_of(leaves):
    """A tree in which every left child is a leaf."""
    nodes = 2 * leaves - 1
    split = np.arange(nodes) % 2 == 0
    split[-1] = False
    children = np.repeat(np.cumsum(~split) - 1, 2).reshape(-1, 2)
    children[split] = np.flatnonzero(split)[:, None] + [1, 2]
    column = np.where(split, 0, -1)
    return TreeNodes(
        column.astype(np.int32),
        np.ones(nodes, np.uint8),
        np.zeros(nodes, np.bool_),
        children.astype(np.int32),
    )


def test_more_leaves_than_codes_are_refused():
    forest_of([chain_of(127)]).verify()
    with pytest.raises(ValueError, match="more than 127"):
        forest_of([chain_of(128)]).verify()

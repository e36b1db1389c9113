"""Contributions of columns along paths."""

import numpy as np
import pytest

from calibayes.kernels.forests import ONE_LEAF, forest_of, grow_tree, leaf_codes, path_terms
from tests.kernels.partitions.oracle import is_on_left, options, random_rows
from tests.seeds import generator

ROWS = random_rows(generator(0), 200, [7, 2, 40], 3)
TREES = [
    grow_tree(ROWS.columns, ROWS.none(), ROWS.packed, options(3, prior=prior), 9).tree
    for prior in (1.0, 900.0)
]
FOREST = forest_of([*TREES, ONE_LEAF])
LEAVES = sum(FOREST.leaves)
CODES = leaf_codes(ROWS.columns, FOREST)
FIRST = np.concatenate([[0], np.cumsum(FOREST.leaves)])
VALUES = generator(1).normal(size=(3, LEAVES))
MASS = np.concatenate([np.bincount(codes) for codes in CODES.T]).astype(float)


def test_terms_add_up_to_the_values_of_the_leaves():
    terms, constant = path_terms(ROWS.columns, FOREST, VALUES, MASS)
    expected = sum(VALUES[:, FIRST[t] + CODES[:, t]].T for t in range(FOREST.count))
    assert terms.shape == (200, 3, 3)
    np.testing.assert_allclose(terms.sum(axis=2) + constant, expected, rtol=1e-12, atol=1e-12)


def test_terms_are_changes_of_averages_of_rows():
    """The definition, for the first tree: the value of a node is the average over the training rows in it."""
    terms, constant = path_terms(ROWS.columns, forest_of(TREES[:1]), VALUES[:, : FIRST[1]], MASS[: FIRST[1]])
    of_rows, tree = VALUES[:, CODES[:, 0]].T, TREES[0]
    expected = np.zeros_like(terms)
    chosen = {0: ROWS.everyone()}
    for node in np.flatnonzero(tree.column >= 0):
        rows, j = chosen[node], tree.column[node]
        split = type("Node", (), {"most": tree.most[node], "missing_left": tree.missing_left[node]})
        left = is_on_left(ROWS.codes[rows, j], split).astype(bool)
        for child, own in zip(tree.children[node], (rows[left], rows[~left]), strict=True):
            chosen[child] = own
            expected[own, :, j] += of_rows[own].mean(axis=0) - of_rows[rows].mean(axis=0)
    np.testing.assert_allclose(constant, of_rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(terms, expected, atol=1e-12)


def test_terms_are_zero_on_average_and_for_columns_without_a_split():
    terms, _ = path_terms(ROWS.columns, FOREST, VALUES, MASS)
    np.testing.assert_allclose(terms.mean(axis=0), 0.0, atol=1e-12)
    unused = set(range(3)) - {int(j) for j in FOREST.column if j >= 0}
    assert all(not terms[:, :, j].any() for j in unused)
    one, value = path_terms(ROWS.columns, forest_of([ONE_LEAF]), VALUES[:, :1], np.ones(1))
    assert not one.any()
    assert np.array_equal(value, VALUES[:, 0])


@pytest.mark.parametrize("mass", [0.0, 1e-300, 1e300])
def test_leaves_without_rows_have_finite_terms(mass):
    scattered = MASS.copy()
    scattered[::2] = mass
    with np.errstate(over="raise"):
        terms, constant = path_terms(ROWS.columns, FOREST, VALUES, scattered)
    expected = sum(VALUES[:, FIRST[t] + CODES[:, t]].T for t in range(FOREST.count))
    assert np.isfinite(terms).all()
    np.testing.assert_allclose(terms.sum(axis=2) + constant, expected, rtol=1e-9, atol=1e-9)

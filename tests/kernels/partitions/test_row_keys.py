"""Keys of rows, columns and classes: they depend on the content of a table, not on orders, names or blocks."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from calibayes.engines import Serial, Threads
from calibayes.kernels.cut_points import mixed
from calibayes.kernels.growth_rows import GrowthRows, ManyBlocks, OneBlock
from calibayes.kernels.row_keys import Keys, column_keys, keys_of, row_hashes, row_order
from calibayes.kernels.tree_nodes import byte_columns
from tests.kernels.partitions.test_growth_blocks import Blocks
from tests.seeds import generator

SIZES = np.array([9, 200, 2, 30, 4, 4, 4, 256, 3, 3])


def table(codes: Any, labels: Any, weight: Any = None) -> GrowthRows:
    columns = byte_columns(np.asarray(codes, np.uint8), np.full(np.shape(codes)[1], 256))
    weight = np.ones(1) if weight is None else weight
    return GrowthRows(columns.words, columns.first, np.asarray(labels, np.int32), weight)


def random_codes(n: int = 300, seed: int = 0) -> tuple[Any, Any]:
    rng = generator([n, seed])
    return np.floor(rng.random((n, len(SIZES))) * SIZES).astype(np.uint8), rng.integers(0, 4, n)


CODES, LABELS = random_codes()


def keys_and_hashes(codes: Any, labels: Any, k: int = 4, seed: int = 0) -> tuple[Keys, Any]:
    rows = table(codes, labels)
    keys = keys_of(OneBlock(rows), k, seed)
    return keys, keys.hashes(rows)


def test_hashes_are_mixed_sums_over_columns() -> None:
    """By Python's integers; columns of key 0 do not count."""
    columns, rng = byte_columns(CODES[:40], SIZES), generator(1)
    keys, start = (rng.integers(0, 2**64, size, dtype=np.uint64) for size in (10, 40))
    keys[3] = 0

    def mix(word: int) -> int:
        word = word * 0x9E3779B97F4A7C15 % 2**64
        return (word ^ word >> 29) * 0x9E3779B97F4A7C15 % 2**64

    assert mixed(np.array([7], np.uint64)).tolist() == [mix(7)]
    hashes = row_hashes(columns, keys, start)
    for r in range(40):
        terms = [mix(mix(int(CODES[r, j]) + 1) ^ int(keys[j])) for j in range(10) if keys[j]]
        assert int(hashes[r]) == mix((int(start[r]) + sum(terms)) % 2**64)
    of_columns = column_keys(columns, start)
    for j in range(10):
        terms = [mix(mix(int(CODES[r, j]) + 1) ^ int(start[r])) for r in range(40)]
        assert int(of_columns[j]) == sum(terms) % 2**64


def test_the_order_of_rows_and_of_columns_changes_no_key() -> None:
    keys, hashes = keys_and_hashes(CODES, LABELS)
    assert len(set(keys.columns)) == 10
    assert len(set(keys.classes)) == 4
    assert len(set(hashes)) == 300
    for seed in range(3):
        rows, columns = generator([2, seed]).permutation(300), generator([3, seed]).permutation(10)
        moved, moved_hashes = keys_and_hashes(CODES[rows][:, columns], LABELS[rows])
        assert np.array_equal(moved.columns, keys.columns[columns])
        assert np.array_equal(moved.classes, keys.classes)
        assert np.array_equal(moved_hashes, hashes[rows])


def test_names_of_classes_change_no_key() -> None:
    keys, hashes = keys_and_hashes(CODES, LABELS)
    names = np.array([2, 0, 3, 1])
    renamed, renamed_hashes = keys_and_hashes(CODES, names[LABELS])
    assert np.array_equal(renamed.columns, keys.columns)
    assert np.array_equal(renamed.classes[names], keys.classes)
    assert np.array_equal(renamed_hashes, hashes)


def test_keys_depend_on_codes_labels_and_the_seed() -> None:
    _, hashes = keys_and_hashes(CODES, LABELS)
    changed = CODES.copy()
    changed[7, 7] ^= 1
    for codes, labels, seed in (
        (changed, LABELS, 0),
        (CODES, np.where(np.arange(300) == 7, 3 - LABELS, LABELS), 0),
        (CODES, LABELS, 1),
        (CODES, LABELS, 2**31 - 2),
    ):
        assert not np.isin(keys_and_hashes(codes, labels, seed=seed)[1], hashes).any()


def test_rows_of_another_label_have_another_hash() -> None:
    keys, hashes = keys_and_hashes(CODES, LABELS)
    assert not np.isin(keys.hashes(table(CODES, (LABELS + 1) % 4)), hashes).any()


def test_constant_columns_do_not_count() -> None:
    keys, hashes = keys_and_hashes(CODES, LABELS)
    places = [0, 4, 10]
    for value in (0, 7, 255):
        wider = np.insert(CODES, places, value, axis=1)
        found, found_hashes = keys_and_hashes(wider, LABELS)
        assert np.array_equal(found_hashes, hashes)
        constant = np.ptp(wider, axis=0) == 0
        assert constant.sum() == 3
        assert not found.columns[constant].any()
        assert np.array_equal(found.columns[~constant], keys.columns)
        assert keys.columns.all()


@pytest.mark.parametrize("engine", [Serial(), Threads(2)], ids=str)
@pytest.mark.parametrize("cuts", [[1], [299], [7, 7, 100], [0, 50, 51, 300]], ids=str)
def test_blocks_do_not_matter(cuts: list[int], engine: Any) -> None:
    """Also if a column is constant in each of them."""
    codes = np.column_stack([CODES, np.arange(300) >= cuts[-1] - 1])
    keys, hashes = keys_and_hashes(codes, LABELS)
    parts = zip(np.split(codes, cuts), np.split(LABELS, cuts), strict=True)
    blocks = ManyBlocks(engine, Blocks([table(*part) for part in parts]))
    found = keys_of(blocks, 4)
    assert np.array_equal(found.columns, keys.columns)
    assert np.array_equal(found.classes, keys.classes)
    assert np.array_equal(np.concatenate(blocks.each(found.hashes)), hashes)


@pytest.mark.parametrize("weighted", [False, True])
def test_places_are_those_of_an_order_of_each_class(weighted: bool) -> None:
    _, hashes = keys_and_hashes(CODES, LABELS)
    weight = generator(4).random(300) if weighted else np.ones(1)
    order = row_order(hashes, LABELS, weight)
    for label in range(4):
        own = order.place[label == LABELS]
        assert sorted(own.tolist()) == list(range(len(own)))
    rows = generator(5).permutation(300)
    moved = row_order(hashes[rows], LABELS[rows], weight[rows] if weighted else weight)
    assert np.array_equal(moved.place, order.place[rows])
    assert np.array_equal(moved.fractions, order.fractions[rows])
    assert order.fractions.dtype == np.uint32


def test_copies_of_a_row_are_told_apart() -> None:
    """Copies have places and fractions of their own, spread over those of other rows; which copy has which is no matter."""
    codes, labels = np.repeat(CODES[:60], 5, axis=0), np.repeat(LABELS[:60], 5)
    _, hashes = keys_and_hashes(codes, labels)
    assert len(set(hashes)) == 60
    order = row_order(hashes, labels, np.ones(1))
    assert len(set(order.fractions)) == 300
    for label in range(4):
        own = labels == label
        assert sorted(order.place[own].tolist()) == list(range(own.sum()))
    gaps = np.ptp(order.place.reshape(60, 5), axis=1)
    assert np.median(gaps) > 20  # next to each other, they would be 4 apart
    rows = generator(6).permutation(300)
    moved = row_order(hashes[rows], labels[rows], np.ones(1))
    for name in ("place", "fractions"):
        by_row = [
            sorted(zip(given.tolist(), numbers.tolist(), strict=True))
            for given, numbers in (
                (hashes, getattr(order, name)),
                (hashes[rows], getattr(moved, name)),
            )
        ]
        assert by_row[0] == by_row[1]


def test_copies_of_different_weights_are_in_the_order_of_their_weights() -> None:
    codes, labels = np.repeat(CODES[:60], 5, axis=0), np.repeat(LABELS[:60], 5)
    _, hashes = keys_and_hashes(codes, labels)
    weight, rows = generator(7).permutation(300) + 1.0, generator(8).permutation(300)
    order = row_order(hashes, labels, weight)
    moved = row_order(hashes[rows], labels[rows], weight[rows])
    assert np.array_equal(moved.place, order.place[rows])
    assert np.array_equal(moved.fractions, order.fractions[rows])


def test_further_copies_change_no_number_of_the_first() -> None:
    hashes = np.arange(50, dtype=np.uint64)
    once = row_order(hashes, np.zeros(50, int), np.ones(1))
    twice = row_order(np.tile(hashes, 2), np.zeros(100, int), np.ones(1))
    assert np.array_equal(once.fractions, twice.fractions[:50])


def test_fractions_look_random() -> None:
    codes = generator(1).integers(0, 200, size=(20_000, 9)).astype(np.uint8)
    labels = generator(2).integers(0, 4, 20_000)
    _, hashes = keys_and_hashes(codes, labels)
    order = row_order(hashes, labels, np.ones(1))
    fractions = order.fractions * 2.0**-32
    counts = np.histogram(fractions, 50, (0.0, 1.0))[0]
    assert np.sum((counts - 400.0) ** 2 / 400.0) < 98  # chi-square, 49 degrees of freedom, 99.996 %
    for number in (codes[:, 3], labels, order.place % 10, np.append(fractions[1:], 0.5)):
        assert abs(np.corrcoef(fractions, number)[0, 1]) < 0.04
    held_out = order.place % 10 == 4
    assert abs(np.corrcoef(held_out, codes[:, 3])[0, 1]) < 0.04


# -- tables with a symmetry: columns that only an exchange of classes, columns and rows at once could tell apart

FLAGS = np.array(list(product([0, 1], repeat=3)), np.uint8)
SYMMETRIC = {
    "all combinations of three flags, one class": (FLAGS, np.zeros(8, int)),
    "all combinations of three flags, parity": (FLAGS, FLAGS.sum(axis=1) % 2),
    "all combinations of three flags, majority": (FLAGS, (FLAGS.sum(axis=1) > 1).astype(int)),
    "an identity": (np.eye(6, dtype=np.uint8), np.arange(6) % 2),
    "equal columns": (np.repeat(CODES[:50, :1], 3, axis=1), LABELS[:50] % 2),
}


@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize("name", SYMMETRIC)
def test_the_order_of_a_table_with_a_symmetry_does_not_depend_on_that_of_its_rows(
    name: str, copies: int
) -> None:
    codes, labels = (np.repeat(array, copies, axis=0) for array in SYMMETRIC[name])

    def ordered(rows: Any) -> list[Any]:
        """The content of the rows, class by class in their order, with their fractions."""
        _, hashes = keys_and_hashes(codes[rows], labels[rows], 2)
        order = row_order(hashes, labels[rows], np.ones(1))
        contents = zip(labels[rows], order.place, codes[rows].tolist(), order.fractions, strict=True)
        return sorted((int(a), int(b), tuple(c), int(d)) for a, b, c, d in contents)

    expected = ordered(np.arange(len(codes)))
    for seed in range(5):
        assert ordered(generator([9, seed]).permutation(len(codes))) == expected


@pytest.mark.parametrize("name", SYMMETRIC)
def test_places_within_classes_of_a_table_with_a_symmetry(name: str) -> None:
    codes, labels = (np.repeat(array, 3, axis=0) for array in SYMMETRIC[name])
    _, hashes = keys_and_hashes(codes, labels, 2)
    place = row_order(hashes, labels, np.ones(1)).place
    for label in set(labels):
        own = sorted(place[labels == label].tolist())
        assert all(after == before + 1 for before, after in pairwise(own))
        assert own[0] == 0

"""Folds and orders of rows."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from calibayes.model.checked_rows import Rows
from calibayes.model.splits import assign_folds, evaluation_folds
from calibayes.tables.read import read_array, read_frame
from calibayes.tables.summary import content_hashes
from tests.estimators.ensemble.tables import frame


def folds_of(X, y, weight, count=5):
    """Content, class and weight of the held-out rows of each fold, as sorted lists."""
    given = Rows(read_array(X), y, weight, np.arange(len(y)))
    rows, splits = evaluation_folds(count, given, len(y), 0)
    content = np.column_stack([rows.table.content, rows.codes, rows.weight])
    return [sorted(map(tuple, content[held])) for held in splits]


class TestFolds:
    def test_every_class_is_in_the_training_rows_of_all_folds_and_folds_are_of_equal_size(self):
        y = np.random.default_rng(0).integers(0, 3, 300)
        fold = assign_folds(y, 5)
        for number in range(5):
            assert set(y[fold != number]) == {0, 1, 2}
        assert np.ptp(np.bincount(fold)) <= 3

    def test_a_single_row_is_never_held_out(self):
        assert assign_folds(np.array([0, 0, 0, 0, 1]), 2)[-1] == -1

    def test_copies_of_a_row_are_in_training_and_held_out_parts(self):
        X, y = np.repeat([[0.0], [1.0]], 50, axis=0), np.tile([0, 1, 1, 1, 1], 20)
        for held in folds_of(X, y, np.ones(100)):
            assert len(held) == 20
            assert len(set(held)) >= 3

    def test_a_subset_of_the_rows_has_all_distinct_rows(self):
        X = np.random.default_rng(0).integers(0, 2, (30_000, 3)).astype(float)
        rows, splits = evaluation_folds(
            None, Rows(read_array(X), np.arange(30_000) % 2, np.ones(30_000), np.arange(30_000)), 30_000, 0
        )
        assert len(rows.codes) == 20_000
        for held in splits:
            assert len(np.unique(rows.table.content[held], axis=0)) == 8

    def test_weight_two_is_two_rows_and_equal_weights_are_one_row_each(self):
        rng = np.random.default_rng(0)
        X, y, many = rng.normal(size=(60, 2)), np.arange(60) % 3, rng.integers(0, 4, 60)
        seen = many > 0
        twice = np.repeat(X, many, axis=0), np.repeat(y, many)
        weighted = folds_of(X[seen], y[seen], many[seen].astype(float))
        assert weighted == folds_of(*twice, np.ones(len(twice[1])))
        once, doubled = folds_of(X, y, np.ones(60)), folds_of(X, y, np.full(60, 2.0))
        assert [[row[:3] for row in held] for held in once] == [[row[:3] for row in held] for held in doubled]

    def test_fractional_weights_leave_rows_as_they_are(self):
        rng = np.random.default_rng(0)
        X, y, weight = (
            rng.integers(0, 4, (300, 2)).astype(float),
            rng.integers(0, 3, 300),
            rng.random(300) + 0.5,
        )
        held = [row for fold in folds_of(X, y, weight) for row in fold]
        assert sorted(held) == sorted(map(tuple, np.column_stack([X, y, weight])))

    def test_many_copies_become_fewer_and_heavier_ones(self):
        X, y, weight = np.array([[0.0], [1.0]]), np.array([0, 1]), np.array([5000.0, 5001.0])
        folds = folds_of(X, y, weight)
        assert sum(row[-1] for fold in folds for row in fold) == pytest.approx(10_001.0)
        assert 900 < sum(map(len, folds)) < 1100

    def test_content_hashes_depend_on_content_alone(self):
        X, _ = frame()
        table, other = read_frame(X), read_frame(X.assign(noise=X["noise"].to_numpy() + 0.0))
        assert_array_equal(content_hashes(table, 0), content_hashes(other, 0))

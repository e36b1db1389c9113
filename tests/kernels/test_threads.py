"""Parallel passes over rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from calibayes import CategoricalNB
from calibayes.kernels.dispatch import ordered_map, thread_limit


@pytest.mark.parametrize("jobs", [2, 3])
def test_results_do_not_depend_on_the_number_of_threads(jobs: int) -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.integers(0, 5, size=(9000, 64)), rng.integers(0, 3, size=9000)
    one, several = (CategoricalNB(max_iter=3, stop=None, n_jobs=n).fit(rows, labels) for n in (1, jobs))
    for expected, actual in zip(one.feature_log_prob_, several.feature_log_prob_, strict=True):
        np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(one.predict_joint_log_proba(rows), several.predict_joint_log_proba(rows))


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_an_iterator_is_taken_a_few_items_at_a_time(jobs: int) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(50):
            taken.append(number)
            yield number

    with thread_limit(jobs):
        for result, number in enumerate(ordered_map(lambda item: item, items())):
            assert result == number
            assert len(taken) <= number + 2 * jobs + 1
    assert len(taken) == 50

"""Sums of columns: additive, small, and clear about what cannot be counted."""

import pickle

import numpy as np
import pandas as pd
import pytest

from calibayes.encoders import Levels, Numbers
from calibayes.tables import summary as column
from calibayes.tables import summary_sums
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_frame
from calibayes.tables.summary import summable
from calibayes.tables.summary_sums import CellSums, DistinctSums, column_sums, first_plan
from tests.seeds import generator
from tests.tables.summaries.survey import parts, streamed, totals_of

N = 3000


def frame():
    rng = generator(0)
    return pd.DataFrame(
        {"x": rng.normal(size=N), "few": rng.integers(0, 9, N), "text": rng.choice(list("abc"), N)}
    )


def test_distinct_values_become_cells_only_if_all_rows_together_have_too_many(monkeypatch):
    monkeypatch.setattr(column, "MOST_DISTINCT", 500)
    table, rng = read_frame(frame()), generator(1)
    totals, passes = totals_of(table, np.ones(N), None, parts(N, 60, rng), 0)
    assert isinstance(totals["0"].counts, CellSums)
    assert isinstance(totals["1"].counts, DistinctSums)
    assert 1 < passes <= 4
    assert totals["0"].counts.known_rows == N
    exact, passes = totals_of(read_frame(frame()[:400]), np.ones(400), None, parts(400, 60, rng), 0)
    assert isinstance(exact["0"].counts, DistinctSums)
    assert passes == 1


def test_weights_by_class_are_those_of_the_rows():
    table, rng = read_frame(frame()), generator(2)
    weight, codes = rng.random(N), rng.integers(-1, 3, N)
    summary = streamed(table, weight, codes, parts(N, 7, rng))
    few = summary.column(1)
    expected = [
        [weight[(frame()["few"] == value) & (codes == c)].sum() for c in (0, 1, 2, -1)] for value in range(9)
    ]
    np.testing.assert_allclose(few.class_weights, expected, rtol=1e-12)
    np.testing.assert_allclose(few.weight, few.class_weights.sum(axis=1), rtol=1e-12)


def test_sums_can_be_sent_to_another_process_and_are_small():
    table = read_frame(pd.DataFrame({"x": generator(0).normal(size=200_000)}))
    plan = first_plan([0], 2, np.ones(1))
    sums = column_sums(table, np.ones(table.n), np.zeros(table.n, dtype=int), plan)["0"]
    sent = pickle.dumps(sums)
    assert len(sent) < 200_000
    again = pickle.loads(sent) + sums
    np.testing.assert_array_equal(again.counts.cells.counts.rows, 2 * sums.counts.cells.counts.rows)
    assert pickle.loads(pickle.dumps(plan)).seen.exceeds(0)


def test_a_process_remembers_the_columns_with_too_many_distinct_numbers(monkeypatch):
    monkeypatch.setattr(column, "MOST_DISTINCT", 100)
    monkeypatch.setattr(summary_sums, "MOST_SURVEYS", 2)
    plan, table = first_plan([0, 1], 0, np.ones(1)), read_frame(frame())
    kinds = []
    for first in range(0, 300, 60):
        sums = column_sums(table.rows(np.arange(first, first + 60)), np.ones(60), None, plan)
        kinds.append(tuple(type(sums[name].counts) for name in "01"))
    assert kinds == [(DistinctSums, DistinctSums)] * 2 + [(CellSums, DistinctSums)] * 3
    assert not first_plan([0, 1], 0, np.ones(1)).seen.exceeds(0)


def test_samples_of_distinct_numbers_do_not_depend_on_the_blocks_a_process_has_seen(monkeypatch):
    monkeypatch.setattr(column, "MOST_DISTINCT", 100)
    monkeypatch.setattr(column, "MOST_SAMPLED", 16)
    rng = generator(4)
    x = np.where(np.arange(N) % 500 < 40, np.nan, np.round(rng.normal(size=N), 3))
    table = read_frame(pd.DataFrame({"x": x}))
    expected = summary_of(table, np.ones(N)).column(0)
    assert expected.distinct_count > 16
    for count in (1, 4, 90):
        found = streamed(table, np.ones(N), None, parts(N, count, rng)).column(0)
        np.testing.assert_array_equal(found.distinct, expected.distinct)


@pytest.mark.parametrize("kind", ["h", "q", "Q", "f", "d"])
def test_numbers_of_any_type_have_the_sums_of_all_rows(kind):
    rng = generator(6)
    x = rng.integers(0 if kind == "Q" else -30, 300, N).astype(kind)
    weight, codes = rng.random(N), rng.integers(-1, 2, N)
    table = read_frame(pd.DataFrame({"x": x, "text": "a"}))
    found, expected = streamed(table, weight, codes, parts(N, 5, rng)), summary_of(table, weight, codes)
    for part in ("low", "rows", "weight", "class_weights"):
        np.testing.assert_array_equal(getattr(found.column(0), part), getattr(expected.column(0), part))


def test_large_integers_that_are_no_float64_numbers_are_counted_as_in_memory():
    x = np.array([2**60, 2**60 + 1, 2**60 + 900, 7], dtype=np.int64)
    table = read_frame(pd.DataFrame({"x": x, "text": "a"}))
    found, expected = streamed(table, np.ones(4), None, [(0, 3), (3, 4)]), summary_of(table, np.ones(4))
    np.testing.assert_array_equal(found.column(0).low, expected.column(0).low)
    np.testing.assert_array_equal(found.column(0).rows, expected.column(0).rows)


def test_missing_rows_and_weights_are_those_of_the_rows():
    rng = generator(7)
    weight = rng.random(N)
    x, text = rng.normal(size=N), rng.choice(np.array(["a", "b", None], dtype=object), N)
    x[rng.random(N) < 0.2] = np.nan
    table = read_frame(pd.DataFrame({"x": x, "text": text}))
    found, expected = streamed(table, weight, None, parts(N, 5, rng)), summary_of(table, weight)
    for j in (0, 1):
        assert found.missing_rows(j) == expected.missing_rows(j) > 0
        assert found.missing_weight(j) == expected.missing_weight(j)


@pytest.mark.parametrize("most", [2**16, 50], ids=["distinct", "cells"])
def test_variances_are_accurate_far_from_zero_with_gaps_and_in_any_order(most, monkeypatch):
    monkeypatch.setattr(column, "MOST_DISTINCT", most)
    x = np.sort(1e6 + generator(8).normal(size=N))
    x[::64] = 0.0  # the rows by which the pivot is chosen
    x[5::7] = np.nan
    totals, _ = totals_of(read_frame(pd.DataFrame({"x": x})), np.ones(N), None, [(0, 2000), (2000, N)], 0)
    moments = totals["0"].moments
    assert moments.weight == np.count_nonzero(~np.isnan(x))
    np.testing.assert_allclose(moments.mean, np.nanmean(x), rtol=1e-13)
    np.testing.assert_allclose(moments.variance, np.nanvar(x), rtol=1e-11)


def test_values_other_than_numbers_are_counted_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(summary_sums, "MOST_LEVELS", 50)
    table = read_frame(pd.DataFrame({"word": [f"w{i % 70}" for i in range(200)]}))
    with pytest.raises(ValueError, match="'word' has more than 50 distinct values"):
        totals_of(table, np.ones(200), None, [(0, 40), (40, 200)], 0)


def test_distinct_numbers_beyond_the_cap_are_no_levels(monkeypatch):
    monkeypatch.setattr(column, "MOST_DISTINCT", 50)
    summary = streamed(read_frame(frame()), np.ones(N), None, [(0, N)])
    with pytest.raises(
        ValueError, match=r"column 'x' has more than .* distinct numbers, too many for a level each"
    ):
        Levels().fit(summary, [0])


@pytest.mark.parametrize(("value", "message"), [(np.inf, "infinity"), (1e200, "squares overflow")])
def test_numbers_that_cannot_be_summed_are_refused(value, message):
    table = read_frame(pd.DataFrame({"x": [1.0, 2.0, value]}))
    with pytest.raises(ValueError, match=f"column 'x' contains .*{message}"):
        totals_of(table, np.ones(3), None, [(0, 2), (2, 3)], 0)


def test_blocks_with_values_of_other_types_are_refused():
    one, other = (
        read_frame(pd.DataFrame({"x": np.array(cells, dtype=object)})) for cells in (["a", "b"], [1, 2])
    )
    plan = first_plan([0], 0, np.ones(1))
    with pytest.raises(ValueError, match="column 'x' mixes values of types float, str"):
        column_sums(one, np.ones(2), None, plan)["0"] + column_sums(other, np.ones(2), None, plan)["0"]


def test_a_column_that_is_all_missing_is_refused_by_its_name():
    table = read_frame(pd.DataFrame({"x": [1.0, 2.0], "empty": [np.nan, np.nan]}))
    summary = streamed(table, np.ones(2), None, [(0, 1), (1, 2)])
    with pytest.raises(ValueError, match="column 'empty' is all missing"):
        Numbers().fit(summary, [0, 1])
    assert summary.missing_rows(1) == 2
    assert summary.column(1).distinct_count == 0


def test_sums_of_weights_do_not_depend_on_their_order():
    rng = generator(5)
    for weight in (
        rng.exponential(size=999),
        rng.choice([0.1, 0.3], 999) * 1e-9,
        2.0 ** rng.normal(0, 9, 999),
    ):
        rounded = summable(weight)
        sums = {np.cumsum(rng.permutation(rounded))[-1] for _ in range(20)}
        assert len(sums) == 1
        np.testing.assert_allclose(rounded, weight, atol=weight.sum() * 2.0**-51, rtol=0)
    whole = rng.integers(0, 10**6, 999).astype(float)
    np.testing.assert_array_equal(summable(whole), whole)

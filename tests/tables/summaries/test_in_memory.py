"""The summary of a table in memory: what it counts, what it shares, and what it refuses."""

import numpy as np
import pandas as pd
import pytest

from calibayes.encoders import KMeansBins
from calibayes.tables import memory_summary
from calibayes.tables import summary as column
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_array, read_frame
from tests.seeds import generator

N = 400
FRAME = pd.DataFrame(
    {
        "x": np.where(generator(0).random(N) < 0.2, np.nan, generator(1).normal(size=N).round(1)),
        "text": generator(2).choice(["a", "b", None], N),
    }
)
WEIGHT, CODES = generator(3).random(N), generator(4).integers(-1, 3, N)


def by_hand(name):
    """Weights of each distinct value by class, those of rows without a label last."""
    known = FRAME[name].notna().to_numpy()
    values = np.unique(FRAME[name][known].to_numpy())
    rows = [(FRAME[name] == value).to_numpy() for value in values]
    return values, np.array([[WEIGHT[mask & (c == CODES)].sum() for c in (0, 1, 2, -1)] for mask in rows])


@pytest.mark.parametrize("kept", [0, N])
@pytest.mark.parametrize(("name", "j"), [("x", 0), ("text", 1)])
def test_cells_are_distinct_values_with_their_rows_and_weights(name, j, kept, monkeypatch):
    monkeypatch.setattr(memory_summary, "KEPT_ROWS", kept)
    summary = summary_of(read_frame(FRAME), WEIGHT, CODES)
    values, weights = by_hand(name)
    found = summary.column(j)
    assert found.is_exact
    assert found.low.tolist() == found.high.tolist() == values.tolist()
    assert found.rows.tolist() == [int((FRAME[name] == value).sum()) for value in values]
    np.testing.assert_allclose(found.class_weights, weights, rtol=1e-12)
    np.testing.assert_allclose(found.weight, weights.sum(axis=1), rtol=1e-12)
    assert found.distinct_count == len(values)
    missing = FRAME[name].isna().to_numpy()
    assert summary.missing_rows(j) == missing.sum()
    assert summary.missing_weight(j) == pytest.approx(WEIGHT[missing].sum(), rel=1e-12)


def test_distinct_numbers_of_cells_are_estimated(monkeypatch):
    rng = generator(5)
    x = np.where(rng.random(60_000) < 0.5, rng.integers(0, 9000, 60_000) / 64, 500.0 + rng.random(60_000))
    exact = summary_of(read_array(x[:, None]), np.ones(len(x))).column(0)
    monkeypatch.setattr(column, "MOST_DISTINCT", 1000)
    cells = summary_of(read_array(x[:, None]), np.ones(len(x))).column(0)
    assert not cells.is_exact
    assert cells.rows.sum() == len(x)
    of_ties = cells.high < 400
    assert cells.distinct[of_ties].sum() == pytest.approx((exact.low < 400).sum(), rel=0.1)
    assert cells.distinct[~of_ties].sum() == pytest.approx((exact.low > 400).sum(), rel=0.1)


def test_models_of_one_table_share_its_summary():
    table = read_frame(FRAME).with_cache()
    summary = summary_of(table, WEIGHT, CODES)
    assert summary_of(table, WEIGHT, CODES) is summary
    assert summary.column(0) is summary.column(0)
    assert summary_of(table, WEIGHT, CODES.copy()) is not summary
    assert summary_of(table, WEIGHT.copy(), CODES) is not summary


def test_a_column_that_holds_no_numbers_is_refused_by_its_name():
    with pytest.raises(ValueError, match="column 'text' does not hold numbers"):
        KMeansBins().fit(summary_of(read_frame(FRAME), WEIGHT), [0, 1])


def test_many_distinct_values_have_a_remark(monkeypatch):
    x = generator(6).normal(size=(70_000, 1))
    bins = KMeansBins(3).fit(summary_of(read_array(x), np.ones(len(x))), [0])
    assert bins.remarks() == ["more than 65536 distinct values, 3 bins"]
    bins.verify()

"""Columns of any type as bytes in order: bins, levels by frequency, missing and unseen values, many levels."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from calibayes.encoders.leaves import OrderedBytes
from calibayes.tables import summary
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_frame
from tests.seeds import generator


def fitted(frame, weight=None):
    table = read_frame(frame)
    return OrderedBytes().fit(
        summary_of(table, np.ones(table.n) if weight is None else weight), range(frame.shape[1])
    )


def codes(encoder, frame):
    columns = encoder.encode(read_frame(frame))
    return np.stack([columns.column(j) for j in range(columns.d)], axis=1)


def test_numbers_are_bins_in_their_order():
    x = generator(0).normal(size=2000)
    frame = pd.DataFrame({"x": x, "few": np.round(x), "gaps": np.where(x > 1, np.nan, x)})
    encoder = fitted(frame)
    found = codes(encoder, frame).astype(int)
    order = np.argsort(x)
    assert (np.diff(found[order, 0]) >= 0).all()
    assert (found[:, 0].min(), found[:, 0].max()) == (1, 254)
    assert np.bincount(found[:, 0]).max() <= 2 * 2000 / 254
    levels = np.unique(np.round(x), return_inverse=True)[1]
    assert found[:, 1].tolist() == (levels.ravel() + 1).tolist()
    assert ((found[:, 2] == 0) == (x > 1)).all()
    assert encoder.sizes.tolist() == [255, levels.max() + 2, found[:, 2].max() + 1]


def test_numbers_may_have_any_unit():
    x = generator(1).normal(size=500)
    plain = codes(fitted(pd.DataFrame({"x": x})), pd.DataFrame({"x": x}))
    other = pd.DataFrame({"x": 1e6 * x + 3})
    assert np.array_equal(codes(fitted(other), other), plain)


def test_levels_are_ordered_by_frequency_then_by_name():
    frame = pd.DataFrame({"text": ["b"] * 3 + ["c"] * 5 + ["a"] * 3 + [None]})
    found = codes(fitted(frame), frame)[:, 0]
    assert found.tolist() == [3] * 3 + [1] * 5 + [2] * 3 + [0]
    weight = np.where(frame["text"] == "b", 9.0, 1.0)
    assert codes(fitted(frame, weight), frame)[:, 0].tolist() == [1] * 3 + [2] * 5 + [3] * 3 + [0]


def test_levels_that_did_not_occur_are_missing():
    frame = pd.DataFrame({"text": list("aab"), "flag": [True, False, True]})
    new = pd.DataFrame({"text": ["a", "new", "b"], "flag": [False, None, True]})
    assert codes(fitted(frame), new).tolist() == [[1, 2], [0, 0], [2, 1]]


@pytest.mark.parametrize("levels", [253, 254, 400, 3000])
def test_at_most_256_codes_whatever_the_number_of_levels(levels):
    names = np.array([f"level {number}" for number in range(levels)])
    frame = pd.DataFrame({"text": np.concatenate([names, np.repeat(names[:50], 3)])})
    encoder = fitted(frame)
    found = codes(encoder, frame)[:, 0]
    assert encoder.sizes[0] == min(levels, 254) + 1
    assert found.min() == 1
    assert len(set(found[:50])) == 50
    assert found[:50].max() <= 51  # rare levels that are pooled may be as frequent together
    encoder.verify()
    unseen = codes(encoder, pd.DataFrame({"text": ["unseen"]}))[0, 0]
    assert (unseen == 0) == (levels <= 253)
    assert levels < 300 or np.sum(found == unseen) > 10  # the code of pooled levels


def test_categories_without_rows_have_no_code():
    frame = pd.DataFrame({"c": pd.Categorical.from_codes([4, 4, 0], list("abcdef"))})
    encoder = fitted(frame)
    assert codes(encoder, frame)[:, 0].tolist() == [1, 1, 2]
    assert encoder.sizes.tolist() == [3]
    new = pd.DataFrame({"c": pd.Categorical.from_codes([5, 0, -1], list("abcdef"))})
    assert codes(encoder, new)[:, 0].tolist() == [0, 2, 0]


def test_empty_and_constant_columns():
    frame = pd.DataFrame(
        {"empty": [np.nan] * 4, "none": pd.Series([None] * 4, dtype=object), "one": 7.0, "z": "z"}
    )
    encoder = fitted(frame)
    assert codes(encoder, frame).tolist() == [[0, 0, 1, 1]] * 4
    assert encoder.sizes.tolist() == [1, 1, 2, 2]
    encoder.verify()
    known = frame.assign(empty=1.0)
    assert codes(encoder, known)[:, 0].tolist() == [0] * 4
    nothing = fitted(frame[["empty"]])
    nothing.verify()
    assert codes(nothing, frame[["empty"]]).tolist() == [[0]] * 4


def test_bins_are_found_in_all_rows_whatever_the_number_of_distinct_values(monkeypatch):
    monkeypatch.setattr(summary, "MOST_DISTINCT", 100)
    x = generator(2).normal(size=1000)
    rare = np.where(np.arange(1000) == 5, 1.0, np.nan)
    frame = pd.DataFrame({"x": x, "rare": rare, "text": np.where(np.arange(1000) % 3, "a", "b")})
    encoder = fitted(frame)
    encoder.verify()
    found = codes(encoder, frame).astype(int)
    assert (np.diff(found[np.argsort(x), 0]) >= 0).all()
    assert np.bincount(found[:, 0])[1:].max() <= 2 * 1000 / 254 + 1
    assert np.flatnonzero(found[:, 1]).tolist() == [5]
    assert set(found[:, 2]) == {1, 2}


def test_encoders_with_the_same_codes():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "t": list("abb")})
    one = fitted(frame)
    assert one.same_codes(fitted(frame))
    assert not one.same_codes(fitted(frame.assign(x=[1.0, 2.0, 4.0])))
    assert not one.same_codes(fitted(frame.assign(t=list("aab"))))
    assert not one.same_codes(fitted(frame[["x"]]))
    empty = pd.DataFrame({"x": [np.nan]})
    assert fitted(empty).same_codes(fitted(empty))


FRAME = pd.DataFrame({"x": np.arange(9.0), "t": list("abcabcaab"), "e": [np.nan] * 9})
ENCODER = fitted(FRAME)
DAMAGED = {
    "a place that is none": {"places": (0, 7)},
    "a negative place": {"places": (-1, 1)},
    "places out of order": {"places": (1, 0)},
    "a place twice": {"places": (0, 0)},
    "other columns": {"indices": (0, 2, 1)},
    "too few orders": {"orders": ENCODER.orders[:1]},
    "a short order": {"orders": (ENCODER.orders[0][:-1], ENCODER.orders[1])},
    "a long order": {"orders": (np.append(ENCODER.orders[0], np.uint8(1)), ENCODER.orders[1])},
    "an order of another type": {"orders": tuple(order.astype(np.uint16) for order in ENCODER.orders)},
    "an order of signed numbers": {"orders": tuple(order.astype(np.int8) for order in ENCODER.orders)},
    "an order of objects": {"orders": tuple(order.astype(object) for order in ENCODER.orders)},
    "no orders": {"orders": ()},
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_encoders_are_refused(name):
    ENCODER.verify()
    with pytest.raises(ValueError, match=r"\w"):
        replace(ENCODER, **DAMAGED[name]).verify()

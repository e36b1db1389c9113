"""Encoders fitted to sums over any parts of the rows, in any order, are those fitted to the table in memory."""

from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import pytest

from calibayes import encoders
from calibayes.encoders.leaves import OrderedBytes
from calibayes.encoders.numbers import Counts
from calibayes.kernels.tree_growth import GrowthSettings
from calibayes.tables import summary
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_frame
from tests.seeds import generator
from tests.tables.summaries.survey import parts, streamed

N = 700
RNG = generator(19)
NORMAL = RNG.normal(size=N)
NUMBERS = pd.DataFrame(
    {
        "few": RNG.integers(0, 5, N).astype(float),
        "continuous": NORMAL,
        "ties": np.where(RNG.random(N) < 0.3, 0.0, NORMAL),
        "negative": -np.exp(3.0 * NORMAL),
        "denormal": NORMAL * 5e-320,
        "huge": NORMAL * 1e98,
        "any size": NORMAL * 10.0 ** RNG.integers(-300, 90, N),
        "narrow": 1e9 + np.round(NORMAL, 3),
        "integers": RNG.integers(-40, 400, N),
        "gaps": np.where(RNG.random(N) < 0.2, np.nan, NORMAL),
        "zeros": np.where(RNG.random(N) < 0.5, 0.0, -0.0),
    }
)
MIXED = NUMBERS[["continuous", "ties", "gaps", "integers"]].assign(
    text=np.where(RNG.random(N) < 0.2, None, RNG.choice(["u", "v", "w", "a", "b"], N)),
    flag=RNG.random(N) < 0.5,
    perhaps=np.where(RNG.random(N) < 0.1, None, RNG.random(N) < 0.5),
    mostly=np.where(RNG.random(N) < 0.9, np.nan, NORMAL),
)
WHOLE = pd.DataFrame({"count": RNG.integers(0, 5, N), "other": RNG.integers(0, 90, N)})
FLAGS = MIXED[["flag", "perhaps"]]
ENCODERS = {
    "KMeansBins": (encoders.KMeansBins(4), NUMBERS.drop(columns="denormal")),
    "QuantileBins": (encoders.QuantileBins(7), NUMBERS),
    "UniformBins": (encoders.UniformBins(4), NUMBERS),
    "AdaptiveBins": (encoders.AdaptiveBins(few=8, parts=9), NUMBERS),
    "PairBins": (encoders.PairBins(few=8, parts=4), NUMBERS),
    "MDLBins": (encoders.MDLBins(), NUMBERS),
    "InformedBins": (encoders.InformedBins(few=8, parts=4), NUMBERS),
    "Grid": (encoders.Grid(), NUMBERS),
    "Levels": (encoders.Levels(), MIXED[["text", "flag", "perhaps"]]),
    "Levels of numbers": (encoders.Levels(), WHOLE),
    "Levels, pooled": (encoders.Levels(most=2, rare=9.0), MIXED[["text", "flag"]]),
    "ByColumnType": (encoders.ByColumnType(), MIXED),
    "MissingAsLevel": (encoders.MissingAsLevel(encoders.ByColumnType(encoders.QuantileBins(9))), MIXED),
    "OrderedBytes": (OrderedBytes(), MIXED),
    "Leaves": (encoders.Leaves(GrowthSettings(trees=3)), MIXED),
    "Dense": (encoders.Dense(), MIXED),
    "PrincipalComponents": (encoders.PrincipalComponents(3), MIXED),
    "Clusters": (encoders.Clusters(2), NUMBERS[["continuous", "ties", "gaps"]]),
    "Numbers": (encoders.Numbers(), NUMBERS),
    "Flags": (encoders.Flags(), FLAGS),
    "Counts": (Counts(), WHOLE),
}
WEIGHTS = {
    "rows": np.ones(N),
    "whole": RNG.integers(1, 5, N).astype(float),
    "fractions": RNG.choice([0.1, 0.3, 1.7], N),
    "any": RNG.exponential(size=N),
}
LABELS = {
    "all": np.where(NORMAL > 0, 1, RNG.integers(0, 3, N)),
    "some": np.where(RNG.random(N) < 0.4, -1, (NORMAL > 0).astype(int)),
}


def assert_same(left, right, name=""):
    """Nested fields and arrays are equal; variances, which are sums of squares, to rounding."""
    assert type(left) is type(right), name
    if is_dataclass(left):
        for part in fields(left):
            assert_same(getattr(left, part.name), getattr(right, part.name), part.name)
    elif isinstance(left, tuple):
        assert len(left) == len(right), name
        for a, b in zip(left, right, strict=True):
            assert_same(a, b, name)
    elif isinstance(left, np.ndarray) and name == "variance":
        np.testing.assert_allclose(left, right, rtol=1e-12)
    elif isinstance(left, np.ndarray):
        np.testing.assert_array_equal(left, right, err_msg=name)
    else:
        assert left == right, name


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("most", [2**16, 20], ids=["exact", "beyond the cap"])
@pytest.mark.parametrize("name", ENCODERS)
def test_any_partition_gives_the_encoder_of_all_rows(name, most, weights, labels, monkeypatch):
    monkeypatch.setattr(summary, "MOST_DISTINCT", most)
    encoder, frame = ENCODERS[name]
    if most < 2**16 and name == "Levels of numbers":
        pytest.skip("distinct numbers beyond the cap cannot be levels, see test_sums.py")
    table, weight, codes = read_frame(frame), WEIGHTS[weights], LABELS[labels]
    indices = range(len(table.names))
    expected = encoder.fit(summary_of(table, weight, codes), indices)
    rng = generator(len(name))
    for count in (1, 5):
        found = encoder.fit(streamed(table, weight, codes, parts(N, count, rng)), indices)
        assert_same(found, expected)


@pytest.mark.parametrize("name", ["Dense", "PrincipalComponents", "Clusters", "Numbers"])
def test_encoders_of_a_sample_do_not_depend_on_the_partition(name, monkeypatch):
    monkeypatch.setattr(summary, "SAMPLE_ROWS", 200)
    encoder, frame = ENCODERS[name]
    table, weight, codes = read_frame(frame), WEIGHTS["whole"], LABELS["all"]
    expected = encoder.fit(summary_of(table, weight, codes), range(len(table.names)))
    found = encoder.fit(streamed(table, weight, codes, parts(N, 6, generator(3))), range(len(table.names)))
    assert_same(found, expected)


@pytest.mark.parametrize("name", ENCODERS)
def test_the_order_of_the_rows_does_not_matter_to_encoders_of_single_columns(name, monkeypatch):
    if isinstance(
        ENCODERS[name][0],
        encoders.Leaves
        | encoders.Clusters
        | encoders.Dense
        | encoders.PrincipalComponents
        | encoders.Numbers,
    ):
        pytest.skip("learns from rows in their order, or sums numbers")
    monkeypatch.setattr(summary, "MOST_DISTINCT", 100)
    encoder, frame = ENCODERS[name]
    order = generator(1).permutation(N)
    weight, codes = WEIGHTS["any"], LABELS["some"]
    expected = encoder.fit(summary_of(read_frame(frame), weight, codes), range(frame.shape[1]))
    shuffled = read_frame(frame.iloc[order])
    assert_same(
        encoder.fit(summary_of(shuffled, weight[order], codes[order]), range(frame.shape[1])), expected
    )

"""Encoders verify that their fields agree: what training makes passes, and every damaged field is refused."""

from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest

from calibayes import encoders
from calibayes.encoders.dense import AsinhScaled, Indicators
from calibayes.encoders.numbers import Counts
from calibayes.encoders.schema import Column, Schema
from calibayes.kernels.tree_growth import GrowthSettings
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_frame
from tests.verification import verify_all

N = 60
RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame(
    {
        "many": RNG.normal(size=N),
        "few": RNG.integers(0, 4, N).astype(float),
        "constant": np.full(N, 7.0),
        "gaps": np.where(RNG.random(N) < 0.3, np.nan, RNG.normal(size=N)),
    }
)
WHOLE = pd.DataFrame({"count": RNG.integers(0, 5, N), "other": RNG.integers(0, 9, N)})
MIXED = NUMBERS.assign(
    text=np.where(RNG.random(N) < 0.2, None, RNG.choice(["u", "v", "w"], N)),
    flag=RNG.random(N) < 0.5,
    one="z",
    whole=RNG.integers(0, 6, N),
)
EMPTY = MIXED.assign(empty=np.nan)
CODES = np.arange(N) % 3
CASES = {
    "KMeansBins": (encoders.KMeansBins(4), NUMBERS),
    "QuantileBins": (encoders.QuantileBins(4), NUMBERS),
    "UniformBins": (encoders.UniformBins(4), NUMBERS),
    "MDLBins": (encoders.MDLBins(), NUMBERS),
    "AdaptiveBins": (encoders.AdaptiveBins(few=8, parts=4), NUMBERS),
    "PairBins": (encoders.PairBins(few=8, parts=4), NUMBERS),
    "InformedBins": (encoders.InformedBins(few=8, parts=4), NUMBERS),
    "ByColumnType": (encoders.ByColumnType(), MIXED),
    "ByColumnType of numbers": (encoders.ByColumnType(), NUMBERS),
    "Clusters": (encoders.Clusters(2), NUMBERS),
    "Clusters of each class": (encoders.Clusters((1, 2, 3, 4)), NUMBERS),
    "Dense": (encoders.Dense(), EMPTY),
    "Dense without first": (encoders.Dense(drop_first=True), MIXED),
    "Grid": (encoders.Grid(), NUMBERS),
    "Leaves": (encoders.Leaves(GrowthSettings(trees=3, least_variance=0.1)), EMPTY),
    "Levels": (encoders.Levels(), MIXED),
    "Levels, pooled": (encoders.Levels(most=2, rare=3.0), MIXED),
    "Levels, at least": (encoders.Levels(at_least=(9, 9)), WHOLE),
    "MissingAsLevel": (encoders.MissingAsLevel(), EMPTY),
    "MissingAsLevel of nothing": (encoders.MissingAsLevel(), EMPTY[["empty"]]),
    "Numbers": (encoders.Numbers(), NUMBERS),
    "Flags": (encoders.Flags(), NUMBERS),
    "Counts": (Counts(), WHOLE),
    "PrincipalComponents": (encoders.PrincipalComponents(3), MIXED),
    "PrincipalComponents of numbers": (encoders.PrincipalComponents(2, encoders.Numbers()), WHOLE),
}


LONE_FIELDS = encoders.Clusters, encoders.Flags, Counts
"""Encoders without two fields of one length: the model, or the binding of its columns, knows which one is right."""
SEVERAL_FIELDS = [name for name, (encoder, _) in CASES.items() if not isinstance(encoder, LONE_FIELDS)]
ARRAY_FIELDS = encoders.Dense, encoders.Grid, encoders.Numbers, encoders.PrincipalComponents
WITH_ARRAYS = [name for name, (encoder, _) in CASES.items() if isinstance(encoder, ARRAY_FIELDS)]
PARAMETERS = {"components", "at_least", "losses"}


def sequences(encoder):
    """Fields that are tuples or arrays, with their values."""
    values = [(field, getattr(encoder, field.name)) for field in fields(encoder)]
    return [(field, value) for field, value in values if isinstance(value, tuple | np.ndarray)]


def fitted(name, frame=None):
    encoder, table = CASES[name]
    table = read_frame(table if frame is None else frame)
    return encoder.fit(
        summary_of(table, np.linspace(0.5, 2.0, table.n), CODES[: table.n]), range(len(table.names))
    )


@pytest.mark.parametrize("name", CASES)
class TestEveryEncoder:
    def test_what_fit_makes_passes(self, name):
        encoder = fitted(name)
        assert type(encoder) in verify_all(encoder)

    def test_an_encoder_that_is_not_fitted_passes(self, name):
        verify_all(CASES[name][0])

    def test_what_extend_and_restrict_make_passes(self, name):
        encoder, table = fitted(name), CASES[name][1]
        changes = {"text": "new", "whole": 40} if "text" in table else {}
        extended, _ = encoder.extend(read_frame(table.assign(**changes)))
        verify_all(extended)
        levels = extended.layout().get("levels", ())
        verify_all(extended.restricted_to(np.arange(sum(levels)) % 2)[0])

    @pytest.mark.filterwarnings("ignore::calibayes.FewRowsWarning")
    def test_few_rows_and_single_precision_pass(self, name):
        table = CASES[name][1].ffill().bfill()
        single = {column: "float32" for column in table if table[column].dtype == np.float64}
        for frame in (table.iloc[:3], table.astype(single)):
            verify_all(fitted(name, frame))

    def test_a_position_that_is_none_is_refused(self, name):
        encoder = fitted(name)
        if isinstance(encoder, encoders.Clusters):
            encoder = encoder.numbers
        for indices in ((-1, *encoder.indices[1:]), (*encoder.indices[1:], *encoder.indices[1:2])):
            if len(indices) == len(encoder.indices):
                with pytest.raises(ValueError, match=r"negative|twice|other columns|no columns"):
                    verify_all(replace(encoder, indices=indices))


@pytest.mark.parametrize("name", SEVERAL_FIELDS)
def test_a_field_that_is_cut_short_or_too_long_is_refused(name):
    encoder = fitted(name)
    lengths = {field.name: len(value) for field, value in sequences(encoder) if len(value)}
    assert len(lengths) > 1
    for field in lengths.keys() - PARAMETERS:
        value = getattr(encoder, field)
        longer = np.concatenate([value, value[:1]]) if isinstance(value, np.ndarray) else (*value, value[0])
        for wrong in (value[:-1], longer):
            with pytest.raises(ValueError, match=r"\w"):
                verify_all(replace(encoder, **{field: wrong}))


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_a_wrong_number_in_an_array_is_refused(name):
    encoder = fitted(name)
    for field in fields(encoder):
        value = getattr(encoder, field.name)
        for wrong in (np.nan, np.inf):
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                with pytest.raises(ValueError, match="NaN or infinity"):
                    verify_all(replace(encoder, **{field.name: _with_last(value, wrong)}))


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_an_array_of_another_type_is_refused(name):
    encoder = fitted(name)
    for field in fields(encoder):
        value = getattr(encoder, field.name)
        if isinstance(value, np.ndarray):
            for dtype in (object, complex, "S8"):
                with pytest.raises(ValueError, match="has the type"):
                    verify_all(replace(encoder, **{field.name: value.astype(dtype)}))


def _with_last(array, value):
    changed = array.copy()
    changed.flat[-1] = value
    return changed


BINS = [name for name in CASES if name.endswith("Bins")]


@pytest.mark.parametrize("name", BINS)
@pytest.mark.parametrize(
    "edges",
    [[0.0, 2.0, 1.0, 3.0], [0.0, np.nan, 3.0], [0.0, np.inf], [0.0], [[0.0, 1.0]], [0, 1], ["a", "b"]],
    ids=str,
)
def test_edges_that_make_no_bins_are_refused(name, edges):
    encoder = fitted(name)
    with pytest.raises(ValueError, match="edges"):
        replace(encoder, edges=(np.array(edges), *encoder.edges[1:])).verify()


def test_bins_of_neighboring_numbers_pass():
    values = [1.0]
    for _ in range(5):
        values.append(np.nextafter(values[-1], 2.0))
    encoder = encoders.AdaptiveBins().fit(
        summary_of(read_frame(pd.DataFrame({"x": values})), np.ones(len(values))), [0]
    )
    assert (np.diff(encoder.edges[0]) == 0).any()
    encoder.verify()


@pytest.mark.parametrize("name", BINS)
def test_values_of_other_bins_are_refused(name):
    encoder = fitted(name)
    place = next(j for j, values in enumerate(encoder.bin_values) if values is not None)
    values = encoder.bin_values[place]
    for wrong in (values[:-1], values + 1.0, np.append(values[:-1], np.nan), values.astype(str)):
        changed = (*encoder.bin_values[:place], wrong, *encoder.bin_values[place + 1 :])
        with pytest.raises(ValueError, match="bin_values"):
            replace(encoder, bin_values=changed).verify()


@pytest.mark.parametrize(
    "values",
    [
        np.array(["b", "a"], dtype=object),
        np.array(["a", "a"], dtype=object),
        np.array(["a", None], dtype=object),
        np.array([1, "a"], dtype=object),
        np.array([["a"], None], dtype=object)[:1],
        np.array([2.0, 1.0]),
        np.array([1.0, np.nan]),
        np.array([1.0, np.inf]),
        np.array([[1.0]]),
        np.array([1j]),
        ["a", "b"],
    ],
    ids=repr,
)
def test_levels_out_of_order_are_refused(values):
    with pytest.raises(ValueError, match="unpooled"):
        encoders.Levels(indices=(0,), unpooled=(values,), pooled=(np.array([]),)).verify()
    with pytest.raises(ValueError, match="pooled"):
        encoders.Levels(most=1, indices=(0,), unpooled=(np.array([]),), pooled=(values,)).verify()


def test_pooled_levels_need_a_rule_and_are_no_others():
    some = np.array(["a", "b"], dtype=object)
    with pytest.raises(ValueError, match="both pooled and not pooled"):
        encoders.Levels(most=1, indices=(0,), unpooled=(some,), pooled=(some[1:],)).verify()
    with pytest.raises(ValueError, match="without a rule"):
        encoders.Levels(indices=(0,), unpooled=(some[:1],), pooled=(some[1:],)).verify()
    for pooled in (some[1:], some[:0]):
        with pytest.raises(ValueError, match="rare must be at least 0"):
            encoders.Levels(rare=np.nan, indices=(0,), unpooled=(some[:1],), pooled=(pooled,)).verify()


@pytest.mark.parametrize("at_least", [10**9, 10**30, -1, (3,), (2**25, 0), 1.5])
def test_more_levels_than_a_file_may_ask_for_are_refused(at_least):
    with pytest.raises(ValueError, match=r"at_least|min_categories"):
        replace(fitted("Levels, at least"), at_least=at_least).verify()


@pytest.mark.parametrize(
    "changes",
    [{"points": 2**30}, {"step": np.zeros(4)}, {"outliers": (0, 0, 0, -1)}],
    ids=str,
)
def test_a_grid_of_no_points_is_refused(changes):
    with pytest.raises(ValueError, match=next(iter(changes))):
        replace(fitted("Grid"), **changes).verify()


def test_parts_of_mixed_columns_must_fit_together():
    encoder = fitted("ByColumnType")
    numbers, others = encoder.parts
    grid = replace(
        fitted("Grid", MIXED[["many", "few", "constant", "gaps", "whole"]]), indices=numbers.indices
    )
    grid.verify()
    for changes, problem in [
        ({"parts": (others, numbers)}, "fitted to other columns"),
        ({"parts": (grid, others)}, "must encode columns as codes"),
        ({"places": tuple(reversed(encoder.places))}, "fitted to other columns"),
        ({"places": (encoder.places[0], encoder.places[0])}, "each column"),
        ({"sides": (1, 0)}, "sides"),
        ({"sides": (0, 2)}, "sides"),
    ]:
        with pytest.raises(ValueError, match=problem):
            replace(encoder, **changes).verify()


def test_codes_for_missing_values_must_fit_the_inner_encoder():
    encoder = fitted("MissingAsLevel")
    empty = len(encoder.indices) - 1
    assert encoder.inner_places == tuple(range(empty))
    for changes, problem in [
        ({"inner": encoders.ByColumnType()}, "fitted to other columns"),
        ({"inner": fitted("Numbers"), "inner_places": (0, 1, 2, 3)}, "code for missing|as codes"),
        ({"inner_places": (*encoder.inner_places[:-1], empty + 1)}, "position"),
        ({"inner_places": tuple(reversed(encoder.inner_places))}, "ascending"),
        ({"has_missing": (*encoder.has_missing[:-1], False)}, "must have a code for missing values"),
    ]:
        with pytest.raises(ValueError, match=problem):
            replace(encoder, **changes).verify()


def test_parts_of_standardized_columns_must_fit_together():
    encoder = fitted("Dense")
    (numeric, scaled), *rest = encoder.parts
    d = len(encoder.names)
    shifted = tuple(j + 1 for j in numeric)
    for changes, problem in [
        ({"parts": ((numeric[:-1], scaled), *rest)}, "median"),
        ({"parts": ((shifted, scaled), *rest)}, "sources|indicated|others than the encoder"),
        ({"parts": ((numeric, encoders.Numbers()), *rest)}, "no encoding"),
        ({"parts": ((numeric, scaled), ((0,), rest[0][1]), *rest[1:])}, "another column"),
        ({"varying": np.zeros_like(encoder.varying)}, "at least one column"),
        ({"indicated": ~encoder.indicated}, "indicator of missing values"),
        ({"sources": (99, *encoder.sources[1:])}, "sources"),
        ({"deviation": np.zeros(d)}, "deviation"),
        ({"precision": np.eye(d - 1)}, "precision"),
        ({"precision": -np.eye(d)}, "positive definite"),
        ({"precision": np.eye(d) + np.triu(np.ones((d, d)), 1)}, "symmetric"),
        ({"indices": ()}, "not fitted"),
    ]:
        with pytest.raises(ValueError, match=problem):
            replace(encoder, **changes).verify()


def test_scaled_numbers_and_indicators():
    for median, scale in [
        ([0.0], [0.0]),
        ([0.0], [-1.0]),
        ([np.nan], [1.0]),
        ([0.0], [1.0, 1.0]),
        ([0], [1]),
    ]:
        with pytest.raises(ValueError, match=r"median|scale"):
            AsinhScaled(np.array(median), np.array(scale)).verify()
    none, two = (np.array([]),), (np.array(["a"], dtype=object),) * 2
    for levels in (encoders.Levels(), encoders.Levels(indices=(0, 1), unpooled=two, pooled=none * 2)):
        with pytest.raises(ValueError, match="columns of levels"):
            Indicators(levels).verify()
    with pytest.raises(ValueError, match="no levels"):
        Indicators(encoders.Levels(indices=(0,), unpooled=none, pooled=none)).verify()


def test_components_and_clusters_must_fit_their_columns():
    components, seeds = fitted("PrincipalComponents"), fitted("Clusters")
    for encoder, changes, problem in [
        (components, {"inner": encoders.Dense()}, "other columns"),
        (components, {"inner": fitted("ByColumnType")}, "as numbers"),
        (components, {"most": 2}, "3 components"),
        (components, {"noise": 0.0}, "noise"),
        (components, {"noise": np.nan}, "noise"),
        (components, {"variances": -components.variances}, "positive"),
        (components, {"directions": components.directions.T}, "directions"),
        (seeds, {"components": 1}, "seeds"),
        (seeds, {"components": (2, 2)}, "more classes"),
        (seeds, {"seeds": (*seeds.seeds[:-1], seeds.seeds[-1][:, :-1])}, "seeds"),
        (seeds, {"seeds": (*seeds.seeds[:-1], seeds.seeds[-1] * np.nan)}, "seeds"),
        (seeds, {"seeds": (*seeds.seeds[:-1], seeds.seeds[-1][:0])}, "seeds"),
        (fitted("Numbers"), {"variance": np.full(4, -1.0)}, "variance"),
    ]:
        with pytest.raises(ValueError, match=problem):
            replace(encoder, **changes).verify()


def test_schemas():
    column = Column("a", "numeric", "numbers", 0)
    Schema((column,)).verify()
    for columns in ((column, column), (column._replace(missing=-1),)):
        with pytest.raises(ValueError, match=r"twice|negative"):
            Schema(columns).verify()

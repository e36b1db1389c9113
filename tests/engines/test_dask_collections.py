"""Training on Dask data frames and arrays: read and encoded on the workers, with the numbers of the same rows in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from calibayes import (
    BayesClassifier,
    CalibratedTrees,
    CategoricalNB,
    NaiveBayes,
    QuadraticDiscriminantAnalysis,
    TrainingOptions,
    TreeAugmentedNB,
)
from calibayes.backends.dask.frame import EncodedOnWorkers
from calibayes.engines import Dask, Serial
from calibayes.model.table_inputs import open_rows
from tests.engines.cluster import KillingEngine

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

pytestmark = pytest.mark.xdist_group("cluster")  # one cluster for all processes of the tests

ROWS, PARTITIONS = 1500, 5


def frame():
    """Numbers, text with missing values, days, labels and weights, some of them 0."""
    random = np.random.default_rng(1)
    y = random.integers(0, 3, ROWS)
    table = pd.DataFrame(
        {
            "size": np.where(random.random(ROWS) < 0.1, np.nan, random.normal(size=ROWS) + y),
            "color": np.array(["red", "green", "blue"], dtype=object)[(y + random.integers(0, 2, ROWS)) % 3],
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, ROWS), unit="D"),
            "count": random.poisson(1.0 + y),
            "label": np.array(["a", "b", "c"], dtype=object)[y],
            "weight": np.where(np.arange(ROWS) % 50 == 0, 0.0, random.random(ROWS)),
        }
    )
    table.loc[random.random(ROWS) < 0.1, "color"] = None
    return table


def lazy_frame():
    return dd.from_pandas(frame(), npartitions=PARTITIONS)


def leaves(tree):
    if hasattr(tree, "keys"):
        return [array for name in sorted(tree) for array in leaves(tree[name])]
    return [np.asarray(tree)]


def assert_same(one, other):
    for ours, theirs in zip(leaves(one.statistics_), leaves(other.statistics_), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def bits(model):
    return [array.tobytes() for array in leaves(model.statistics_) + leaves(model.parameters_)]


def fitted(cls, engine, table, *labels, **options):
    return cls(engine=engine, **{"max_iter": 2, "stop": None, "random_state": 0, **options}).fit(
        table, *labels
    )


@pytest.mark.parametrize(
    ("cls", "rule"), [(NaiveBayes, "ml"), (NaiveBayes, "rc"), (NaiveBayes, "gdt"), (TreeAugmentedNB, "rc")]
)
def test_a_fit_on_a_data_frame_has_the_statistics_of_the_rows_in_memory(client, cls, rule):
    known = frame()
    features = known.drop(columns=["label", "weight"])
    here = fitted(cls, Serial(), features, known["label"], known["weight"], rule=rule)
    there = fitted(cls, Dask(), lazy_frame(), "label", "weight", rule=rule)
    assert_same(there, here)
    assert there.classes_.tolist() == here.classes_.tolist()
    assert list(there.feature_names_in_) == list(here.feature_names_in_)
    np.testing.assert_allclose(there.predict_proba(features), here.predict_proba(features), rtol=1e-9)


def test_without_the_engine_the_partitions_are_read_here(client):
    known = frame()
    features = known.drop(columns=["label", "weight"])
    here = fitted(NaiveBayes, Serial(), features, known["label"], known["weight"])
    assert bits(fitted(NaiveBayes, Serial(), lazy_frame(), "label", "weight")) == bits(here)


@pytest.mark.parametrize("chunks", [300, 700])
def test_a_fit_on_an_array_has_the_statistics_of_the_rows_in_memory(client, chunks):
    random = np.random.default_rng(2)
    y = random.integers(0, 2, ROWS)
    x = random.normal(size=(ROWS, 4)) + y[:, None]
    lazy = da.from_array(x, chunks=(chunks, 3)), da.from_array(y, chunks=400)
    assert_same(
        fitted(QuadraticDiscriminantAnalysis, Dask(), *lazy),
        fitted(QuadraticDiscriminantAnalysis, Serial(), x, y),
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        CalibratedTrees(max_trees=5, random_state=0),
        BayesClassifier(families=["kernel", "tree"], keep_rows=False, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_that_are_no_sums_over_rows_are_the_same(client, model):
    known = frame().drop(columns=["weight", "day"])
    features, labels = known.drop(columns="label"), known["label"]
    here = clone(model).fit(features, labels).predict_proba(features)
    model = clone(model).set_params(engine=Dask())
    lazy = dd.from_pandas(known, npartitions=PARTITIONS)
    for there in (clone(model).fit(features, labels), model.fit(lazy, y="label")):
        np.testing.assert_allclose(there.predict_proba(features), here, rtol=1e-9, atol=1e-12)


def test_validation_rows_are_the_same(client):
    training, known = TrainingOptions(validation_fraction=0.3, temperature="auto"), frame()
    features = known.drop(columns=["label", "weight"])
    here = fitted(NaiveBayes, Serial(), features, known["label"], training=training)
    there = fitted(NaiveBayes, Dask(), lazy_frame().drop(columns="weight"), "label", training=training)
    assert_same(there, here)
    assert there.temperature_ == pytest.approx(here.temperature_, rel=1e-9)


def test_class_weights_are_used(client):
    known, balanced = frame(), {"class_weight": "balanced"}
    features = known.drop(columns=["label", "weight"])
    here = fitted(NaiveBayes, Serial(), features, known["label"], known["weight"], **balanced)
    assert_same(fitted(NaiveBayes, Dask(), lazy_frame(), "label", "weight", **balanced), here)


def test_a_worker_killed_in_each_pass_changes_no_bit(client, tmp_path):
    """Passes of labels, dates, sums of columns and training: the partition in the middle is lost once in each."""
    first = int(lazy_frame().map_partitions(len).compute().tolist()[0])
    table = lazy_frame().drop(columns="weight")
    engine = KillingEngine(tmp_path, row=first, passes=5)
    survived = fitted(NaiveBayes, engine, table, "label", max_iter=4)
    assert engine.killed == 5
    assert bits(survived) == bits(fitted(NaiveBayes, Dask(), table, "label", max_iter=4))


def test_rows_are_encoded_on_the_workers_and_stay_there(client):
    estimator = CategoricalNB(rule="ml")
    table = lazy_frame()[["count", "label"]]
    _, rows = open_rows(table, "label").rows(estimator, Dask())
    assert rows.is_on_workers
    source = rows.source(*binding_and_weights(rows), rows_per_block=100)
    assert isinstance(source, EncodedOnWorkers)
    places = Dask().each(lambda block: (block.first, len(block.labels)), source)
    assert [first for first, _ in places] == np.cumsum([0, *(n for _, n in places[:-1])]).tolist()
    assert max(n for _, n in places) == 100
    assert sum(n for _, n in places) == ROWS
    with pytest.raises(ValueError, match="batch_size needs rows in the memory of this process"):
        source.batches(10, np.random.default_rng(0))


class Doubled:
    """A binding with one family, whose encoding is twice the numbers."""

    encoders = property(lambda self: {"numbers": self})

    def layout(self):
        return {}

    def encode(self, table):
        return {"numbers": 2 * np.asarray(table.content)}


def binding_and_weights(rows):
    return Doubled(), rows.weight, np.broadcast_to(0.0, len(rows.codes))


def test_rows_that_workers_cannot_read_are_read_here(client, tmp_path):
    known = frame()
    known.to_parquet(tmp_path / "rows.parquet")
    features = known.drop(columns=["label", "weight"])
    here = fitted(NaiveBayes, Serial(), features, known["label"], known["weight"])
    assert_same(fitted(NaiveBayes, Dask(), tmp_path / "rows.parquet", "label", "weight"), here)

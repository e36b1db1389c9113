"""Trees grown on the workers of a Dask cluster: the bits of rows in memory, also when a worker is killed in every round."""

import os
import signal

import numpy as np
import pandas as pd
import pytest

from calibayes import BayesClassifier, CalibratedTrees
from calibayes.ensemble import bayes, many_rows
from calibayes.kernels.growth_rows import BlockPass
from tests.engines.cluster import Dask, distributed, first_time
from tests.seeds import generator

dd = pytest.importorskip("dask.dataframe")
pytestmark = pytest.mark.xdist_group("cluster")
ROWS, TREES = 1500, 6


def table():
    rng = generator(6)
    frame = pd.DataFrame(rng.normal(size=(ROWS, 3)), columns=list("abc"))
    frame["text"] = rng.choice(list("uvw"), ROWS)
    frame["label"] = (frame.a * frame.b + rng.normal(size=ROWS) > 0).astype(int)
    return frame


def trees(engine=None):
    return CalibratedTrees(max_trees=TREES, max_leaves=6, patience=TREES, engine=engine)


def bits(model):
    leaves = model.leaves_
    arrays = (*vars(leaves.forest).values(), leaves.log_factor, leaves.losses)
    return [array.tobytes() for array in (*arrays, model.data_statistics_["trees"]["count"])]


@pytest.fixture(scope="module")
def expected():
    frame = table()
    return bits(trees().fit(frame.drop(columns="label"), frame.label))


@pytest.mark.parametrize("partitions", [1, 4])
def test_trees_are_those_of_rows_in_memory(client, expected, partitions):
    given = dd.from_pandas(table(), npartitions=partitions)
    assert bits(trees().fit(given, "label")) == expected


def test_one_worker_grows_the_same_trees(expected):
    one = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0")
    with one, distributed.Client(one, set_as_default=False) as alone:
        assert bits(trees(Dask(alone)).fit(dd.from_pandas(table(), npartitions=3), "label")) == expected


class KilledInRound:
    """A step of growth that kills its worker at the first block of its round."""

    def __init__(self, step, flag):
        self.step, self.flag = step, flag

    def __call__(self, block):
        if first_time(self.flag):
            os.kill(os.getpid(), signal.SIGKILL)
        return self.step(block)


class KillingInRounds:
    """The Dask engine, with a worker killed in the middle of some rounds, in a later pass of each."""

    is_distributed = True

    def __init__(self, client, folder, rounds):
        self.engine, self.folder, self.rounds, self.killed = Dask(client), folder, rounds, set()

    def total(self, function, source):
        if isinstance(function, BlockPass) and function.plan.requests:
            number = len(function.plan.trees)
            if number in self.rounds - self.killed:
                function = KilledInRound(function, self.folder / f"round-{number}")
                self.killed.add(number)
        return self.engine.total(function, source)

    def each(self, function, source):
        return self.engine.each(function, source)


def test_a_worker_killed_in_each_of_five_rounds_changes_no_bit(client, expected, tmp_path):
    engine = KillingInRounds(client, tmp_path, set(range(5)))
    model = trees(engine).fit(dd.from_pandas(table(), npartitions=4), "label")
    assert len(list(tmp_path.iterdir())) == 5
    assert bits(model) == expected


def test_the_default_learns_from_all_rows_of_a_collection(client, monkeypatch):
    monkeypatch.setattr(bayes, "ONE_FOREST", 1000)
    monkeypatch.setattr(many_rows, "MEMBER_ROWS", 300)
    frame, families = table(), ["tied", "trees"]
    X = frame.drop(columns="label")
    here = BayesClassifier(families=families).fit(X, frame.label)
    there = BayesClassifier(families=families).fit(dd.from_pandas(frame, npartitions=3), "label")
    for name, array in vars(
        here.trees_.forests[0]
    ).items():  # starts are floats, whose last digits depend on partitions
        assert np.array_equal(getattr(there.trees_.forests[0], name), array), name
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), rtol=1e-10)

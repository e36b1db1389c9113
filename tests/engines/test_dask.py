"""The Dask engine: the numbers of the other engines, the same bits for any workers, killed or not, and nothing left over."""

from __future__ import annotations

import gc
import pickle
import sys
import time
from functools import partial
from itertools import groupby

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from calibayes import (
    MultinomialNB,
    NaiveBayes,
    QuadraticDiscriminantAnalysis,
    TrainingOptions,
    TreeAugmentedNB,
)
from calibayes.backends.dask import collections
from calibayes.backends.dask import engine as dask_waiting
from calibayes.backends.dask.engine import dealt
from calibayes.backends.dask.frame import DaskStream
from calibayes.core.protocols import Block
from calibayes.engines import Dask, Serial
from calibayes.tables import row_blocks
from tests.engines.cluster import KillingEngine, distributed, first_time

dd = pytest.importorskip("dask.dataframe")

pytestmark = pytest.mark.xdist_group("cluster")  # one cluster for all processes of the tests

ROWS = 2000
ROWS_PER_BLOCK = 100


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Twenty blocks, so that sums have two levels."""
    rows = property(lambda source: ROWS_PER_BLOCK)
    monkeypatch.setattr(row_blocks.ArraySource, "_rows", rows)


def rng():
    return np.random.default_rng(0)


def labels():
    return rng().integers(0, 3, ROWS)


def mixed_frame():
    """Numbers, levels and missing values."""
    random, y = rng(), labels()
    frame = pd.DataFrame(
        {
            "size": random.normal(size=ROWS) + y,
            "color": np.array(["red", "green", "blue"])[(y + random.integers(0, 2, ROWS)) % 3],
            "age": random.gamma(2.0, size=ROWS),
        }
    ).astype({"color": object})
    frame.loc[random.random(ROWS) < 0.1, "size"] = np.nan
    frame.loc[random.random(ROWS) < 0.1, "color"] = None
    return frame


def numbers():
    return rng().normal(size=(ROWS, 6)) + labels()[:, None] * np.arange(6) / 6


def levels():
    return (rng().integers(0, 3, (ROWS, 5)) + labels()[:, None]) % 4


def counts():
    return csr_array(rng().poisson(0.3 + labels()[:, None] / 4, (ROWS, 12)))


TABLES = {
    NaiveBayes: mixed_frame,
    QuadraticDiscriminantAnalysis: numbers,
    TreeAugmentedNB: levels,
    MultinomialNB: counts,
}


def leaves(tree):
    if isinstance(tree, dict):
        return [array for name in sorted(tree) for array in leaves(tree[name])]
    return [np.asarray(tree)]


def bits(model):
    """All statistics and parameters as bytes."""
    return [array.tobytes() for array in leaves(dict(model.statistics_)) + leaves(dict(model.parameters_))]


def fitted(cls, engine, **options):
    options = {"max_iter": 2, "stop": None, **options}
    return cls(engine=engine, **options).fit(TABLES[cls](), labels())


@pytest.mark.parametrize("rule", ["ml", "rc", "gdt"])
@pytest.mark.parametrize("cls", TABLES, ids=lambda cls: cls.__name__)
def test_dask_gives_the_statistics_of_the_serial_engine(client, cls, rule):
    there, here = (fitted(cls, engine, rule=rule) for engine in (Dask(), Serial()))
    for ours, theirs in zip(leaves(dict(there.statistics_)), leaves(dict(here.statistics_)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    rows = TABLES[cls]()[:100]
    np.testing.assert_allclose(there.predict_proba(rows), here.predict_proba(rows), rtol=1e-9)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_number_of_workers_changes_no_bit(client, workers):
    two = bits(fitted(NaiveBayes, Dask(client)))
    local = distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    with local, distributed.Client(local, set_as_default=False) as other:
        assert bits(fitted(NaiveBayes, Dask(other))) == two


def test_a_worker_killed_in_each_of_five_passes_changes_no_bit(client, tmp_path):
    engine = KillingEngine(tmp_path, row=10 * ROWS_PER_BLOCK, passes=5)
    survived = fitted(QuadraticDiscriminantAnalysis, engine, max_iter=6)
    assert engine.killed == 5
    assert bits(survived) == bits(fitted(QuadraticDiscriminantAnalysis, Dask(), max_iter=6))


def test_the_loss_of_the_only_worker_is_survived(client, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_waiting, "PATIENCE", 0.5)
    one = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0")
    with one, distributed.Client(one, set_as_default=False) as alone:
        engine = KillingEngine(tmp_path, row=10 * ROWS_PER_BLOCK, passes=2, engine=Dask(alone))
        survived = fitted(QuadraticDiscriminantAnalysis, engine)
    assert engine.killed == 2
    assert bits(survived) == bits(fitted(QuadraticDiscriminantAnalysis, Dask()))


class ReadOnce:
    """Blocks of random numbers; the reading of one of them fails at the first time."""

    def __init__(self, flag=None):
        self.flag = flag

    def parts(self):
        return [partial(read_block, i, self.flag if i == 3 else None) for i in range(20)]


def read_block(number, flag):
    if flag is not None and first_time(flag):
        raise OSError("the connection was reset")
    random = np.random.default_rng(number)
    columns, ones = {"x": random.normal(size=(10, 2))}, np.ones(10)
    return Block(columns, random.integers(0, 2, 10), ones, 0 * ones, 10 * number)


def sum_of(block):
    return {"x": block.columns["x"].sum(axis=0)}


def test_a_block_that_fails_to_read_once_is_read_again(client, tmp_path):
    again = Dask().total(sum_of, ReadOnce(tmp_path / "flag"))
    np.testing.assert_array_equal(again["x"], Dask().total(sum_of, ReadOnce())["x"])


def test_without_retries_the_error_of_reading_is_raised(client, tmp_path):
    with pytest.raises(OSError, match="connection was reset"):
        Dask(retries=0).total(sum_of, ReadOnce(tmp_path / "flag"))


def test_each_returns_results_in_the_order_of_the_rows(client):
    assert Dask().each(lambda block: block.first, ReadOnce()) == list(range(0, 200, 10))


def test_a_restart_of_the_cluster_between_passes_changes_no_bit(client):
    def restart(progress):
        if progress.update == 1:
            client.restart()

    training = TrainingOptions(callbacks=[restart])
    assert bits(fitted(QuadraticDiscriminantAnalysis, Dask(), training=training)) == bits(
        fitted(QuadraticDiscriminantAnalysis, Dask())
    )


def tasks_of(client):
    """Number of tasks and results on the cluster."""

    def count(dask_scheduler):
        return len(dask_scheduler.tasks)

    return client.run_on_scheduler(count)


def wait_until_empty(client, seconds=5.0):
    """Number of tasks left on the cluster after at most so many seconds."""
    gc.collect()
    end = time.monotonic() + seconds
    while (left := tasks_of(client)) and time.monotonic() < end:
        time.sleep(0.02)
    return left


def test_nothing_stays_on_the_cluster_after_a_fit(client):
    fitted(NaiveBayes, Dask())
    assert wait_until_empty(client) == 0


def failing(progress):
    raise KeyboardInterrupt


def broken(block):
    raise ZeroDivisionError(f"row {block.first}")


def test_nothing_stays_on_the_cluster_after_ctrl_c(client):
    with pytest.raises(KeyboardInterrupt):
        fitted(NaiveBayes, Dask(), training=TrainingOptions(callbacks=[failing]))
    assert wait_until_empty(client) == 0


def test_an_error_of_a_block_is_raised_and_leaves_nothing_on_the_cluster(client):
    source = ReadOnce()
    with pytest.raises(ZeroDivisionError, match="row"):
        Dask().total(broken, source)
    assert wait_until_empty(client) == 0
    assert Dask().total(sum_of, source)["x"].shape == (2,)


class MeasuringEngine:
    """The serial engine, noting the number of bytes of each function that is sent to workers."""

    def __init__(self):
        self.sizes = []

    def total(self, function, source):
        self.sizes.append(len(cloudpickle.dumps(function)))
        return Serial().total(function, source)

    def each(self, function, source):
        return Serial().each(function, source)


@pytest.mark.parametrize("options", [{}, {"batch_size": 500}, {"validation_fraction": 0.2}])
def test_functions_of_blocks_do_not_contain_the_rows(options):
    engine, X = MeasuringEngine(), numbers()
    fitted(QuadraticDiscriminantAnalysis, engine, training=TrainingOptions(**options))
    assert max(engine.sizes) < X.nbytes / 10


def test_rows_are_sent_once(client):
    with SentBytes(client) as first:
        engine, source = Dask(), ArrayRows()
        engine.total(sum_of, source)
    with SentBytes(client) as second:
        engine.total(sum_of, source)
    assert first.bytes > 8 * ROWS * 6
    assert second.bytes < first.bytes / 5


class ArrayRows(row_blocks.ArraySource):
    """The table of numbers in memory."""

    def __init__(self):
        ones = np.ones(ROWS)
        super().__init__({"x": numbers()}, labels(), ones, 0 * ones)


class SentBytes:
    """Bytes of the graphs that a client sends meanwhile."""

    def __init__(self, client):
        self.client, self.bytes = client, 0

    def __enter__(self):
        send = self.client._send_to_scheduler

        def counting(message):
            graph = message.get("expr_ser")
            if graph is not None:
                self.bytes += sum(memoryview(frame).nbytes for frame in graph.frames)
            send(message)

        self.client._send_to_scheduler = counting
        return self

    def __exit__(self, *error):
        del self.client._send_to_scheduler


def test_the_engine_can_be_cloned_and_pickled(client):
    model = NaiveBayes(engine=Dask(client, split_every=4))
    assert clone(model).engine.client is client
    copied = pickle.loads(pickle.dumps(model)).engine
    assert copied == Dask(client.scheduler.address, split_every=4)
    assert copied.each(sum_of, ReadOnce())[0].keys() == {"x"}


def test_a_scheduler_can_be_given_by_its_address(client):
    local = distributed.LocalCluster(n_workers=1, processes=True, dashboard_address=":0")
    with local:
        engine = Dask(local.scheduler_address)
        assert bits(fitted(NaiveBayes, engine)) == bits(fitted(NaiveBayes, Dask()))
        collections.client_of(engine.client).close()
    assert distributed.get_client() is client


def test_invalid_options_and_missing_clients_are_named(client, monkeypatch):
    with pytest.raises(ValueError, match="split_every must be a whole number from 2 on, got 1"):
        Dask(split_every=1)
    with pytest.raises(ValueError, match=r"client must be a distributed\.Client"):
        Dask(3).total(sum_of, ReadOnce())
    monkeypatch.setattr(distributed, "get_client", no_client)
    with pytest.raises(ValueError, match="there is no Dask client: open one"):
        Dask().total(sum_of, ReadOnce())
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"install 'dask\[dataframe,distributed\]'"):
        Dask().total(sum_of, ReadOnce())


def no_client():
    raise ValueError("No global client found and no address provided")


def test_a_closed_client_is_named():
    local = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    with local, distributed.Client(local, set_as_default=False) as other:
        pass
    with pytest.raises(RuntimeError, match="the Dask client is closed: open a new one"):
        Dask(other).total(sum_of, ReadOnce())


def sum_there():
    return Dask().total(sum_of, ReadOnce())["x"].tobytes()


def test_inside_a_task_the_sum_is_computed_there_with_the_same_bits(client):
    assert client.submit(sum_there).result() == sum_there()


class PartitionSource:
    """The chunks of a Dask data frame, which are read anew in every pass."""

    is_read_once = True

    def __init__(self, stream):
        self.stream = stream

    def lazy_parts(self):
        return self.stream.lazy_parts()


def rows_of(chunk):
    return {"rows": chunk.n, "labels": int(chunk.labels.sum()), "first": chunk.first}


def test_partitions_of_a_data_frame_are_made_on_the_workers_and_dropped(client):
    frame = mixed_frame().assign(label=labels())
    stream = DaskStream(dd.from_pandas(frame, npartitions=20), "label", None)
    sums = Dask().total(rows_of, PartitionSource(stream))
    assert sums["rows"] == ROWS
    assert sums["labels"] == labels().sum()
    assert wait_until_empty(client) == 0


@pytest.mark.parametrize("number", [1, 2, 7, 34, 100])
@pytest.mark.parametrize("threads", [{}, {"a": 1}, {"b": 1, "a": 1}, {"a": 4, "b": 1, "c": 3}])
def test_blocks_are_dealt_in_proportion_to_threads(number, threads):
    """Each worker's blocks are consecutive, and their number is that of its share of the threads, rounded."""
    workers = dealt(number, threads)
    assert len(workers) == number
    runs = [worker for worker, _ in groupby(workers)]
    assert len(runs) == len(set(runs))
    for worker, own in threads.items():
        assert abs(workers.count(worker) - number * own / sum(threads.values())) < 1

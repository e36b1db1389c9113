"""The Dask cluster of the tests of a session."""

import pytest


@pytest.fixture(scope="session")
def client():
    """A client of two worker processes, which are started anew when they are killed.

    Workers are forked from a process that has imported the package, which takes seconds otherwise.
    """
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        distributed.utils.get_mp_context().set_forkserver_preload(["calibayes", "distributed"])
        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
        with cluster, distributed.Client(cluster) as client:
            yield client

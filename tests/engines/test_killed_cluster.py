"""A cluster that loses its scheduler or all of its workers: an error within a bounded time, that says so.

`check.py --attack` runs all cases of `killed_cluster.py`, in processes that are killed.
"""

import numpy as np
import pytest

from calibayes import GaussianNB
from calibayes.backends.dask import engine as dask_engine
from calibayes.backends.dask.collections import naming_lost_scheduler
from calibayes.engines import Dask
from tests.engines.cluster import distributed

pytestmark = pytest.mark.xdist_group("cluster")
X, Y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2


def local(workers):
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=":0"
    )


def test_a_pass_without_any_worker_ends_in_an_error(monkeypatch):
    monkeypatch.setattr(dask_engine, "PATIENCE", 0.1)
    with local(0) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        model = GaussianNB(engine=Dask(client, worker_timeout=0.3))
        with pytest.raises(RuntimeError, match=r"has had no worker for 0\.3 s: start workers and call again"):
            model.fit(X, Y)


def test_a_timeout_that_is_no_time_is_refused():
    for given in (0, -1.0, "long", None):
        with pytest.raises(ValueError, match="worker_timeout must be a positive number of seconds, got"):
            Dask(worker_timeout=given)


class Lost:
    """A client whose connection to the scheduler is lost."""

    status, scheduler_comm = "connecting", None

    class scheduler:
        address = "tcp://127.0.0.1:1"


def test_errors_of_a_lost_scheduler_name_it():
    message = r"scheduler at tcp://127\.0\.0\.1:1 was lost.*open a new client"
    with pytest.raises(RuntimeError, match=message), naming_lost_scheduler(Lost()):
        raise OSError("Timed out")

"""Where sums over blocks run. Any engine gives the same numbers, bit for bit, on the same blocks."""

from joblib import effective_n_jobs

from calibayes.engines.serial import Serial
from calibayes.engines.threads import Threads

__all__ = ["Serial", "Threads", "engine_for"]


def engine_for(n_jobs: int | None) -> Serial | Threads:
    """Serial for one job, threads for more; negative numbers count from the number of cores, as in joblib."""
    threads = jobs(n_jobs)
    return Serial() if threads == 1 else Threads(threads)


def jobs(n_jobs: int | None) -> int:
    """How many threads a number of jobs stands for."""
    return int(effective_n_jobs(n_jobs))

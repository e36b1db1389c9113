"""What happens to a fit on Dask when a worker process is killed in the middle of it: calibayes, XGBoost and LightGBM.

    python -m benchmarks.scale.lost_workers [calibayes] [xgboost] [lightgbm] [--quick]

Each model is fitted three times on a cluster of two worker processes: twice undisturbed, and with a worker killed (SIGKILL)
one second after training tasks have begun; the cluster starts a new worker in its place. Prints whether that fit ends
within a time limit, with which error or result, and how far its predictions differ from the first. XGBoost and LightGBM run in an
environment of their own where they are installed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

LIMIT = 120.0
"""Seconds after which a fit counts as one that hangs."""


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes."""
    random = np.random.default_rng(0)
    y = random.integers(0, 2, n)
    return random.normal(size=(n, 20)) + 0.3 * y[:, None], y


def fit_calibayes(client: Any, n: int) -> Any:
    from calibayes import QuadraticDiscriminantAnalysis
    from calibayes.engines import Dask

    X, y = rows(n)
    model = QuadraticDiscriminantAnalysis(rule="rc", max_iter=20, stop=None, engine=Dask(client))
    return model.fit(X, y).predict_proba(X[:1000])[:, 1]


def lazy_rows(client: Any, n: int) -> tuple[Any, Any]:
    """The rows as Dask arrays on the workers, as tasks that can be computed again."""
    import dask.array as da
    from distributed import wait

    X, y = rows(n)
    lazy = da.from_array(X, chunks=(n // 20, -1)), da.from_array(y, chunks=n // 20)
    kept = client.persist(lazy)
    wait(kept)
    return kept


def fit_xgboost(client: Any, n: int) -> Any:
    from xgboost import dask as xgb

    X, y = lazy_rows(client, n)
    model = xgb.DaskXGBClassifier(n_estimators=200, max_depth=6, tree_method="hist")
    model.client = client
    model.fit(X, y)
    return model.get_booster().inplace_predict(rows(n)[0][:1000])


def fit_lightgbm(client: Any, n: int) -> Any:
    import lightgbm

    X, y = lazy_rows(client, n)
    model = lightgbm.DaskLGBMClassifier(client=client, n_estimators=200, verbose=-1)
    model.fit(X, y)
    return model.to_local().predict_proba(rows(n)[0][:1000])[:, 1]


FITS: dict[str, Callable[[Any, int], Any]] = {
    "calibayes": fit_calibayes,
    "xgboost": fit_xgboost,
    "lightgbm": fit_lightgbm,
}


TRAINING = ("calibayes-pass", "fn-", "_train_part")
"""Beginnings of the names of the tasks in which calibayes, XGBoost and LightGBM train."""


def kill_in_training(client: Any, killed: threading.Event) -> None:
    """Kill a worker process one second after it has begun to train."""
    processes = client.run(os.getpid)
    while True:
        for worker, keys in client.processing().items():
            names = (key[0] if isinstance(key, tuple) else key for key in keys)
            if any(name.startswith(TRAINING) for name in names):
                time.sleep(1.0)
                os.kill(processes[worker], signal.SIGKILL)
                killed.set()
                return
        time.sleep(0.05)


def fit_in_process(name: str, n: int, is_killed: bool, answers: Any) -> None:
    """Fit on a new cluster; the answer is the seconds it took and the predictions, or the error."""
    import distributed

    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client:
        killed = threading.Event()
        if is_killed:
            threading.Thread(target=kill_in_training, args=(client, killed), daemon=True).start()
        start = time.perf_counter()
        try:
            predictions = FITS[name](client, n)
            missed = "no worker was killed" if is_killed and not killed.is_set() else ""
            answers.put((time.perf_counter() - start, np.asarray(predictions), missed))
        except BaseException as error:  # noqa: BLE001
            text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            answers.put((time.perf_counter() - start, None, text))


def outcome(name: str, n: int, *, is_killed: bool) -> tuple[float, np.ndarray | None, str]:
    """Seconds, predictions and error of a fit in a process of its own, which is ended after `LIMIT`."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=fit_in_process, args=(name, n, is_killed, answers))
    process.start()
    try:
        result: tuple[float, np.ndarray | None, str] = answers.get(timeout=LIMIT)
    except Exception:  # noqa: BLE001
        result = (LIMIT, None, "no answer within the time limit: it hangs")
    process.join(10)
    if process.is_alive():
        process.kill()
    return result


def report(name: str, n: int) -> None:
    """Print the outcomes of a fit, of the same again, and of one that loses a worker."""
    seconds, predictions, error = outcome(name, n, is_killed=False)
    print(f"{name}: undisturbed, {error or f'{seconds:.1f} s'}", flush=True)
    if predictions is not None:
        print(
            f"{name}: undisturbed again, {described(outcome(name, n, is_killed=False), predictions)}",
            flush=True,
        )
        killed = outcome(name, n, is_killed=True)
        print(f"{name}: a worker killed in training, {described(killed, predictions)}", flush=True)


def described(result: tuple[float, np.ndarray | None, str], known: np.ndarray) -> str:
    """How a fit ended, compared with known predictions."""
    seconds, predictions, error = result
    if error:
        return f"{seconds:.1f} s, {error}"
    assert predictions is not None
    difference = float(np.abs(predictions - known).max())
    same = "the same bits" if difference == 0 else f"probabilities differ by up to {difference:.2g}"
    return f"ended after {seconds:.1f} s, {same}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help=f"of {', '.join(FITS)}; by default the first")
    parser.add_argument("--quick", action="store_true", help="few rows: seconds")
    options = parser.parse_args()
    for name in options.models or list(FITS)[:1]:
        report(name, 40_000 if options.quick else 400_000)


if __name__ == "__main__":
    sys.exit(main())

"""Time, memory and error of SparseLogBivariateClassifier: `python benchmarks/slb.py` writes the lower part of docs/slb.md.

Times are processor time of one thread and wall-clock time, the best of three where a run is short. Peak memory is that of a
separate process, including Python and the libraries.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from calibayes import SparseLogBivariateClassifier
from calibayes.datasets import is_local, load, numeric_matrix
from calibayes.dependence import HSIC

ROOT = Path(__file__).parents[1]
MARK = "<!-- What follows is written by benchmarks/slb.py. -->"


def timed(function, times=1):
    """Lowest processor and wall-clock seconds, and the last result."""
    processor, clock = [], []
    for _ in range(times):
        processor_start, clock_start = time.process_time(), time.perf_counter()
        result = function()
        processor.append(time.process_time() - processor_start)
        clock.append(time.perf_counter() - clock_start)
    return min(processor), min(clock), result


def correlated_columns(n, d, seed=0):
    """Linear combinations of normal columns, (n, d); every third is cubed, for heavy tails."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    columns[:, ::3] **= 3
    return columns


def hsic_lines(quick):
    lines = [
        "## Time of HSIC for all pairs",
        "",
        "| rows | columns | method | processor, s | wall clock, s |",
        "| --- | --- | --- | --- | --- |",
    ]
    sizes = [(200, 10, HSIC())] if quick else [(1000, 100, HSIC()), (20_000, 10, HSIC())]
    for n, d, measure in sizes:
        columns = correlated_columns(n, d)
        processor, clock, _ = timed(lambda c=columns, m=measure: m.measure(c, np.ones(len(c))), 3)
        method = "exact" if n <= measure.exact_rows else "low-rank factors"
        lines.append(f"| {n} | {d} | {method} | {processor:.2f} | {clock:.2f} |")
    n = 200 if quick else 5000
    columns = correlated_columns(n, 10)
    upper = np.triu_indices(10, 1)
    exact, low_rank = (HSIC(exact_rows=rows).measure(columns, np.ones(n)).statistic[upper] for rows in (n, 0))
    same_order = int(np.argmin(np.r_[np.argsort(-exact) == np.argsort(-low_rank), False]))
    error = np.abs(low_rank / exact - 1).max()
    return [
        *lines,
        "",
        (
            f"At {n} rows and 10 columns low-rank factors have a largest relative error of {error:.1e}, and order the first "
            f"{same_order} of 45 pairs as the exact values do."
        ),
        "",
    ]


def load_numbers(name):
    """Numeric columns and target of a data set."""
    return load_wine(return_X_y=True) if name == "wine" else numeric_matrix(load(name))


def fit_line(name):
    """Fit and predict all rows; called in a separate process."""
    X, y = load_numbers(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        processor, clock, model = timed(lambda: SparseLogBivariateClassifier().fit(X, y))
    predict_processor, predict_clock, _ = timed(lambda: model.predict(X))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = f"{X.shape[0]} | {X.shape[1]} | {len(model.classes_)}"
    seconds = f"{processor:.1f} + {predict_processor:.1f} | {clock:.1f} + {predict_clock:.1f}"
    return f"| {name} | {size} | {seconds} | {memory:.0f} |"


def fit_lines(names):
    lines = [
        "## Time and memory: fit and predict all rows, defaults",
        "",
        "| data | rows | columns | classes | processor, s | wall clock, s | peak memory, MiB |",
    ]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for name in names:
        done = subprocess.run(
            [sys.executable, __file__, "--fit", name], capture_output=True, text=True, check=True
        )
        lines.append(done.stdout.strip())
    return [*lines, ""]


def error_lines(names):
    lines = [
        "## More than two classes: error of 5-fold cross-validation, defaults",
        "",
        "| data | error, % |",
        "| --- | --- |",
    ]
    for name in names:
        X, y = load_numbers(name)
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            is_wrong = cross_val_predict(SparseLogBivariateClassifier(), X, y, cv=folds) != y
        lines.append(f"| {name} | {100 * is_wrong.mean():.1f} |")
    return [*lines, ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes; print only")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fit:
        print(fit_line(given.fit))
        return
    multiclass = ["wine"] if given.quick else ["iris", "wine", "vehicle"]
    large = ["wine"] if given.quick else ["hill-valley", "pulsar", "optdigits"]
    missing = [name for name in multiclass + large if name != "wine" and not is_local(name)]
    load_now = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    lines = [
        f"Made by `python benchmarks/slb.py` with Python {platform.python_version()}, scikit-learn "
        f"{sklearn.__version__}, on {os.cpu_count()} cores with a load average of {load_now:.0f} before the run; "
        "OMP_NUM_THREADS=1." + (f" Not available: {', '.join(missing)}." if missing else ""),
        "",
        *hsic_lines(given.quick),
        *fit_lines([name for name in large if name not in missing]),
        *error_lines([name for name in multiclass if name not in missing]),
    ]
    text = "\n".join(lines).rstrip() + "\n"
    print(text)
    if not given.quick:
        page = ROOT / "docs" / "slb.md"
        head = page.read_text(encoding="utf-8").split(MARK)[0].rstrip()
        page.write_text(f"{head}\n\n{MARK}\n\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main()

"""What SLB takes and how well it decides: `python benchmarks/slb.py` writes the lower part of docs/slb.md.

Times are those of the processor, of one thread, and of the clock beside them, the best of three where a run is short; peak
memory is that of a process of its own and includes Python and the libraries.
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
    """The best processor and clock seconds, and the last result."""
    best = []
    for _ in range(times):
        start, clock = time.process_time(), time.perf_counter()
        result = function()
        best.append((time.process_time() - start, time.perf_counter() - clock))
    return min(a for a, _ in best), min(b for _, b in best), result


def dependent(n, d, seed=0):
    """Columns that are mixtures of normal ones, every third with heavy tails."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    columns[:, ::3] **= 3
    return columns


def hsic_lines(quick):
    lines = [
        "## HSIC of all pairs",
        "",
        "| rows | columns | how | processor, s | clock, s |",
        "| --- | --- | --- | --- | --- |",
    ]
    sizes = [(200, 10, HSIC())] if quick else [(1000, 100, HSIC()), (20_000, 10, HSIC())]
    for n, d, measure in sizes:
        columns = dependent(n, d)
        processor, clock, _ = timed(lambda c=columns, m=measure: m.measure(c, np.ones(len(c))), 3)
        how = "exact" if n <= measure.exact_rows else "thin factors"
        lines.append(f"| {n} | {d} | {how} | {processor:.2f} | {clock:.2f} |")
    n = 200 if quick else 5000
    columns = dependent(n, 10)
    upper = np.triu_indices(10, 1)
    exact, thin = (HSIC(exact_rows=rows).measure(columns, np.ones(n)).statistic[upper] for rows in (n, 0))
    same = int(np.argmin(np.r_[np.argsort(-exact) == np.argsort(-thin), False]))
    worst = np.abs(thin / exact - 1).max()
    return [
        *lines,
        "",
        f"At {n} rows and 10 columns thin factors give the exact values to {worst:.1e} (relatively), and the first {same} of 45 pairs in the same order.",
        "",
    ]


def numbers(name):
    return load_wine(return_X_y=True) if name == "wine" else numeric_matrix(load(name))


def fit_line(name):
    """Run in a process of its own: fit and predict all rows."""
    X, y = numbers(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        processor, clock, model = timed(lambda: SparseLogBivariateClassifier().fit(X, y))
    again, waited, _ = timed(lambda: model.predict(X))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"| {name} | {X.shape[0]} | {X.shape[1]} | {len(model.classes_)} | {processor:.1f} + {again:.1f} | {clock:.1f} + {waited:.1f} | {memory:.0f} |"


def fit_lines(names):
    lines = [
        "## Fit and predict all rows, defaults",
        "",
        "| data | rows | columns | classes | processor, s | clock, s | peak memory, MiB |",
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
        "## Several classes: error of 5-fold cross-validation, defaults",
        "",
        "| data | error, % |",
        "| --- | --- |",
    ]
    for name in names:
        X, y = numbers(name)
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            wrong = cross_val_predict(SparseLogBivariateClassifier(), X, y, cv=folds) != y
        lines.append(f"| {name} | {100 * wrong.mean():.1f} |")
    return [*lines, ""]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing written")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.fit:
        print(fit_line(chosen.fit))
        return
    several = ["wine"] if chosen.quick else ["iris", "wine", "vehicle"]
    large = ["wine"] if chosen.quick else ["hill-valley", "pulsar", "optdigits"]
    missing = [name for name in several + large if name != "wine" and not is_local(name)]
    load_now = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    lines = [
        f"Made by `python benchmarks/slb.py` with Python {platform.python_version()}, scikit-learn "
        f"{sklearn.__version__}, on {os.cpu_count()} cores with a load of {load_now:.0f} from elsewhere; "
        "OMP_NUM_THREADS=1." + (f" Not at hand: {', '.join(missing)}." if missing else ""),
        "",
        *hsic_lines(chosen.quick),
        *fit_lines([name for name in large if name not in missing]),
        *error_lines([name for name in several if name not in missing]),
    ]
    text = "\n".join(lines).rstrip() + "\n"
    print(text)
    if not chosen.quick:
        page = ROOT / "docs" / "slb.md"
        head = page.read_text(encoding="utf-8").split(MARK)[0].rstrip()
        page.write_text(f"{head}\n\n{MARK}\n\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main()

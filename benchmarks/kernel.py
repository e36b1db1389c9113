"""Kernel naive Bayes beside one ``gaussian_kde`` for each class and column: `python benchmarks/kernel.py`.

Both predict the same rows in the same process, and the ratio of their times is what counts. It prints, and writes
nothing unless it is told where: `--out FILE`.
"""

from __future__ import annotations

import argparse
import platform
import time
from pathlib import Path

import numpy as np
import scipy
from scipy.stats import gaussian_kde

from calibayes import KernelNB


def drawn(n, d, k, seed=0):
    """Rows whose columns have a mode or two in each class, and their classes."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    middles = rng.normal(scale=2.0, size=(k, d, 2))
    mode = rng.integers(0, 2, size=(n, d))
    return middles[labels[:, None], np.arange(d), mode] + rng.normal(size=(n, d)), labels


def by_scipy(X, y, new):
    """log p(x, class) by one density for each class and column, and the seconds it took, without the fit."""
    classes = np.unique(y)
    densities = [[gaussian_kde(column) for column in X[y == c].T] for c in classes]
    began = time.perf_counter()
    joint = np.stack(
        [
            np.log(np.mean(y == c)) + sum(np.log(f(x)) for f, x in zip(own, new.T, strict=True))
            for c, own in zip(classes, densities, strict=True)
        ],
        axis=1,
    )
    return joint, time.perf_counter() - began


def ours(X, y, new, repeats=5, **options):
    """The same by KernelNB, least of some times; the fit beside it."""
    began = time.perf_counter()
    model = KernelNB(**options).fit(X, y)
    fit, taken = time.perf_counter() - began, []
    for _ in range(repeats):
        began = time.perf_counter()
        joint = model.predict_joint_log_proba(new)
        taken.append(time.perf_counter() - began)
    return joint, min(taken), fit


MODELS = {
    "grid, as gaussian_kde": {"binning": "grid", "bandwidth": "normal", "prior_rows": 0.0, "rule": "ml"},
    "adaptive bins, ML": {"rule": "ml"},
    "adaptive bins, RC": {},
}


def report(n, d, k, new):
    X, y = drawn(n + new, d, k)
    reference, slow = by_scipy(X[:n], y[:n], X[n:])
    error = np.mean(reference.argmax(axis=1) != y[n:])
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    lines = [
        f"{n} training rows, {new} new ones, {d} columns, {k} classes; {versions}.",
        "",
        "| model | fit s | predict s | times quicker | held-out error % | same decisions % |",
        "| --- | --- | --- | --- | --- | --- |",
        f"| gaussian_kde for each class and column | - | {slow:.3f} | 1 | {100 * error:.1f} | 100 |",
    ]
    for name, options in MODELS.items():
        joint, quick, fit = ours(X[:n], y[:n], X[n:], **options)
        found = joint.argmax(axis=1)
        same, wrong = np.mean(found == reference.argmax(axis=1)), np.mean(found != y[n:])
        lines.append(
            f"| KernelNB: {name} | {fit:.2f} | {quick:.4f} | {slow / quick:.0f} | {100 * wrong:.1f} | {100 * same:.1f} |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--out", type=Path, help="a file to write the table to as well")
    given = parser.parse_args()
    page = report(*((1_000, 10, 3, 500) if given.quick else (10_000, 20, 5, 5_000)))
    print(page)
    if given.out:
        given.out.write_text(f"{page}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Kernel naive Bayes compared with one SciPy ``gaussian_kde`` per class and column: `python benchmarks/kernel.py`.

Both predict the same rows in the same process; the ratio of their times is the result. It prints a table, and writes it to a
file with `--out FILE`.
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


def bimodal_rows(n, d, k, seed=0):
    """Rows (n, d) whose columns have one or two modes in each class, and their classes."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    centers = rng.normal(scale=2.0, size=(k, d, 2))
    mode = rng.integers(0, 2, size=(n, d))
    return centers[labels[:, None], np.arange(d), mode] + rng.normal(size=(n, d)), labels


def scipy_log_joint(X, y, new):
    """log p(x, class) from one density per class and column, and the seconds of prediction."""
    classes = np.unique(y)
    densities = [[gaussian_kde(column) for column in X[y == c].T] for c in classes]
    start = time.perf_counter()
    joint = np.stack(
        [
            np.log(np.mean(y == c)) + sum(np.log(f(x)) for f, x in zip(class_densities, new.T, strict=True))
            for c, class_densities in zip(classes, densities, strict=True)
        ],
        axis=1,
    )
    return joint, time.perf_counter() - start


def kernel_nb_log_joint(X, y, new, repeats=5, **options):
    """log p(x, class) from KernelNB, and the lowest seconds of prediction and those of the fit."""
    start = time.perf_counter()
    model = KernelNB(**options).fit(X, y)
    fit_seconds, predict_seconds = time.perf_counter() - start, []
    for _ in range(repeats):
        start = time.perf_counter()
        joint = model.predict_joint_log_proba(new)
        predict_seconds.append(time.perf_counter() - start)
    return joint, min(predict_seconds), fit_seconds


MODELS = {
    "grid, as gaussian_kde": {"binning": "grid", "bandwidth": "normal", "prior_rows": 0.0, "rule": "ml"},
    "adaptive bins, ML": {"rule": "ml"},
    "adaptive bins, RC": {},
}


def report(n, d, k, new):
    """The comparison as a Markdown table."""
    X, y = bimodal_rows(n + new, d, k)
    reference, scipy_seconds = scipy_log_joint(X[:n], y[:n], X[n:])
    scipy_error = np.mean(reference.argmax(axis=1) != y[n:])
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    lines = [
        f"{n} training rows, {new} test rows, {d} columns, {k} classes; {versions}.",
        "",
        "| model | fit s | predict s | times faster | held-out error % | same predictions % |",
        "| --- | --- | --- | --- | --- | --- |",
        f"| gaussian_kde per class and column | - | {scipy_seconds:.3f} | 1 | {100 * scipy_error:.1f} | 100 |",
    ]
    for name, options in MODELS.items():
        joint, predict_seconds, fit_seconds = kernel_nb_log_joint(X[:n], y[:n], X[n:], **options)
        predicted = joint.argmax(axis=1)
        agreement, error = np.mean(predicted == reference.argmax(axis=1)), np.mean(predicted != y[n:])
        lines.append(
            f"| KernelNB: {name} | {fit_seconds:.2f} | {predict_seconds:.4f} | {scipy_seconds / predict_seconds:.0f} "
            f"| {100 * error:.1f} | {100 * agreement:.1f} |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--out", type=Path, help="file to write the table to")
    given = parser.parse_args()
    page = report(*((1_000, 10, 3, 500) if given.quick else (10_000, 20, 5, 5_000)))
    print(page)
    if given.out:
        given.out.write_text(f"{page}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

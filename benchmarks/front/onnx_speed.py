"""Time of exported models in onnxruntime beside `predict_proba`, each with one thread.

    python -m benchmarks.front.onnx_speed            # 100,000 rows
    python -m benchmarks.front.onnx_speed --quick    # 10,000 rows, in some seconds

Prints the table of docs/onnx.md. Times are the least of several runs.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import onnxruntime
import pandas as pd

from calibayes import (
    GaussianNB,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    NaiveBayes,
    QuadraticDiscriminantAnalysis,
    TreeAugmentedNB,
)
from calibayes.export.onnx import feeds

TRAINING_ROWS, REPEATS, BATCH = 2000, 5, 1000
"""Rows to train on, runs of which the fastest counts, and rows of one call."""


def numbers(n, d=64, k=10, seed=0):
    """Correlated numbers around a mean for each class."""
    rng = np.random.default_rng(seed)
    means, mixing = rng.normal(size=(k, d)), np.eye(d) + rng.normal(size=(d, d)) / d
    y = rng.integers(0, k, n)
    return means[y] + rng.normal(size=(n, d)) @ mixing, y


def counts(n, d=64, k=10, seed=1):
    rng = np.random.default_rng(seed)
    rates = rng.gamma(1.0, size=(k, d))
    y = rng.integers(0, k, n)
    return rng.poisson(rates[y]).astype(float), y


def mixed(n, seed=2):
    """Ten columns of numbers and five of levels, some cells missing, two classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        rng.normal(size=(n, 10)) + 0.3 * y[:, None], columns=[f"number {j}" for j in range(10)]
    )
    for j in range(5):
        codes = (rng.integers(0, 6, n) + y * (rng.random(n) < 0.3)) % 6
        frame[f"level {j}"] = np.array(["red", "green", "blue", "white", "gray", "black"], dtype=object)[
            codes
        ]
    return frame.mask(rng.random(frame.shape) < 0.02), y


MODELS = {
    "`GaussianNB`, 64 columns, 10 classes": (GaussianNB(rule="ml"), numbers),
    "`LinearDiscriminantAnalysis`, 64, 10": (LinearDiscriminantAnalysis(rule="ml"), numbers),
    "`QuadraticDiscriminantAnalysis`, 64, 10": (QuadraticDiscriminantAnalysis(rule="ml"), numbers),
    "`MultinomialNB`, 64, 10": (MultinomialNB(rule="ml"), counts),
    "`NaiveBayes`, 15 mixed columns, 2 classes": (NaiveBayes(rule="ml"), mixed),
    "`TreeAugmentedNB`, 15 mixed columns, 2 classes": (TreeAugmentedNB(rule="ml"), mixed),
}


def least_time(function):
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def batches(X):
    return [X[start : start + BATCH] for start in range(0, len(X), BATCH)]


def measured(model, make, rows):
    """Operations, size, seconds to export and to load, seconds of onnxruntime and of `predict_proba`, largest difference."""
    model.set_params(n_jobs=1).fit(*make(TRAINING_ROWS))
    X = make(rows)[0]
    begin = time.perf_counter()
    exported = model.to_onnx()
    content = exported.SerializeToString()
    exporting = time.perf_counter() - begin
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    begin = time.perf_counter()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    loading = time.perf_counter() - begin
    inputs = [feeds(exported, part) for part in batches(X)]
    found = np.concatenate([session.run(["probabilities"], part)[0] for part in inputs])
    difference = np.abs(found - model.predict_proba(X)).max()
    there = least_time(lambda: [session.run(None, part) for part in inputs])
    here = least_time(lambda: [model.predict_proba(part) for part in batches(X)])
    return len(exported.graph.node), len(content), exporting, loading, there, here, difference


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="10,000 rows instead of 100,000")
    rows = 10_000 if parser.parse_args().quick else 100_000
    print(
        "| model | operations | size, kB | export, s | load, s | onnxruntime, s | `predict_proba`, s | largest difference |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, (model, make) in MODELS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # missing values of wide covariances are not exported
            nodes, size, exporting, loading, there, here, difference = measured(model, make, rows)
        times = " | ".join(f"{value:.3f}" for value in (exporting, loading, there, here))
        print(f"| {name} | {nodes} | {size / 1000:.0f} | {times} | {difference:.0e} |", flush=True)


if __name__ == "__main__":
    main()

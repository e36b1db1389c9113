"""Time of an exported statement in DuckDB beside `predict_proba`: `python -m benchmarks.front.sql`.

Both compute the probabilities of the same rows: `predict_proba` from a data frame in memory, DuckDB from a table of its own,
with the same number of threads. The table has nine columns of numbers, one of them with missing values, and six of text.
``--quick`` uses few rows, and fails if the probabilities differ.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from calibayes import GaussianNB, KernelNB, LinearDiscriminantAnalysis, NaiveBayes, TreeAugmentedNB

NUMBERS = [f"number {j}" for j in range(9)]
TEXTS = [f"text {j}" for j in range(6)]
TRAINING_ROWS = 20_000
TOLERANCE = 1e-9
MODELS: Mapping[str, tuple[Any, list[str]]] = {
    "NaiveBayes": (NaiveBayes(rule="ml"), NUMBERS + TEXTS),
    "KernelNB on a grid": (KernelNB(rule="ml", binning="grid"), NUMBERS + TEXTS),
    "TreeAugmentedNB": (TreeAugmentedNB(rule="ml"), NUMBERS + TEXTS),
    "GaussianNB": (GaussianNB(rule="ml"), NUMBERS),
    "LinearDiscriminantAnalysis": (LinearDiscriminantAnalysis(rule="ml"), NUMBERS),
}


def table(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, texts of 5 to 55 levels, and two classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    columns: dict[str, Any] = {name: rng.normal(size=n) + y * rng.normal() for name in NUMBERS}
    columns[NUMBERS[0]][rng.random(n) < 0.1] = np.nan
    for j, name in enumerate(TEXTS):
        columns[name] = np.array([f"level {i}" for i in range(5 + 10 * j)], dtype=object)[
            rng.integers(0, 5 + 10 * j, n)
        ]
    return pd.DataFrame(columns), y


def seconds(function: Any) -> tuple[float, Any]:
    """Time of one call, and its result."""
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def compared(model: Any, X: pd.DataFrame, connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """Times and the largest difference of the probabilities."""
    of_statement, statement = seconds(lambda: model.to_sql("visits"))
    of_query, columns = seconds(lambda: connection.execute(statement).fetchnumpy())
    of_model, expected = seconds(lambda: model.predict_proba(X))
    found = np.stack([np.asarray(column) for column in columns.values()], axis=1)
    return {
        "kB": len(statement) / 1e3,
        "to_sql": of_statement,
        "DuckDB": of_query,
        "predict_proba": of_model,
        "difference": float(np.abs(found - expected).max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = table(5_000 if options.quick else options.rows)
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {os.cpu_count() or 1}")
        connection.execute("CREATE TABLE visits AS SELECT * FROM X")
        rows = {}
        for name, (model, columns) in MODELS.items():
            if options.quick and name not in ("NaiveBayes", "GaussianNB"):
                continue
            fitted = model.fit(X[columns][:TRAINING_ROWS], y[:TRAINING_ROWS])
            rows[name] = compared(fitted, X[columns], connection)
    results = pd.DataFrame(rows).T
    print(f"{len(X)} rows, times in seconds")
    print(results.to_string(float_format="{:.3g}".format))
    if results["difference"].max() > TOLERANCE:
        raise SystemExit(f"probabilities differ by more than {TOLERANCE:g}")


if __name__ == "__main__":
    main()

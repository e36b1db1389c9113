"""What each optional package is for, once: for `check.py --oldest`, which installs the oldest declared version of each.

It needs no pytest. A failure ends it with a traceback.
"""

import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import calibayes as cb
from calibayes.datasets import load_penguins

FRAME = load_penguins().frame
ROWS = FRAME.drop(columns="species")
MODEL = cb.NaiveBayes(rule="ml").fit(FRAME, y="species")


def check_table(table, folder):
    """A fit to another kind of table predicts what the fit to the data frame does."""
    model = cb.NaiveBayes(rule="ml").fit(table, y="species")
    np.testing.assert_allclose(model.predict_proba(ROWS), MODEL.predict_proba(ROWS), atol=1e-9)
    assert model.score(table, "species") == MODEL.score(FRAME, "species")


def parquet(folder):
    FRAME.to_parquet(folder / "penguins.parquet")
    check_table(folder / "penguins.parquet", folder)


def arrow(folder):
    import pyarrow as pa

    FRAME.to_feather(folder / "penguins.arrow")
    for table in (pa.Table.from_pandas(FRAME), folder / "penguins.arrow"):
        check_table(table, folder)


def polars(folder):
    import polars as pl

    frame = pl.from_pandas(FRAME)
    for table in (frame, frame.lazy(), pl.scan_parquet(folder / "penguins.parquet")):
        check_table(table, folder)


def duckdb(folder):
    import duckdb

    check_table(duckdb.sql(f"select * from '{folder / 'penguins.parquet'}'"), folder)


def dask(folder):
    import dask.dataframe as dd
    from dask.distributed import Client

    frame = dd.from_pandas(FRAME, npartitions=3)
    check_table(frame, folder)
    check_table(dd.read_parquet(folder / "penguins.parquet"), folder)
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None):
        model = cb.NaiveBayes(rule="ml", engine=cb.engines.Dask()).fit(frame, y="species")
        probabilities = model.predict_proba(frame.drop(columns="species"))
        np.testing.assert_allclose(probabilities.compute(), MODEL.predict_proba(ROWS), atol=1e-9)


def plots(folder):
    from calibayes.plots import ReliabilityDisplay

    drawn = ReliabilityDisplay.from_estimator(MODEL, ROWS, FRAME["species"])
    drawn.figure_.savefig(folder / "figure.svg")
    assert (folder / "figure.svg").stat().st_size > 1000


def sql(folder):
    import duckdb

    statement = MODEL.to_sql("ROWS", dialect="duckdb")
    found = duckdb.query_df(ROWS, "ROWS", str(statement)).df()
    assert len(found) == len(ROWS)


def onnx(folder):
    import onnx

    onnx.checker.check_model(MODEL.to_onnx(), full_check=True)


def main():
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for check in (parquet, arrow, polars, duckdb, dask, plots, sql, onnx):
            begin = time.perf_counter()
            check(Path(folder))
            print(f"{time.perf_counter() - begin:6.2f} s  {check.__name__}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

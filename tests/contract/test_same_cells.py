"""The same cells give the same model from every source: instants of a time zone, and decimals."""

from decimal import Decimal
from functools import cache

import dask
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather

from calibayes import NaiveBayes
from tests.seeds import generator

ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Etc/GMT+5")
N = 120


@cache
def table_of(zone):
    """A table of Arrow with instants of a time zone, decimals with and without missing cells, and labels."""
    rng = generator(70)
    y = rng.integers(0, 2, N)
    hours = rng.integers(0, 400, N) * 24 + rng.normal(9 + 6 * y, 3, N).astype(int)
    units = (rng.normal(size=N) * 1e9).astype(int) + 400_000_000 * y
    decimals = [Decimal(int(unit)).scaleb(-9) for unit in units]
    gaps = np.arange(N) // 10 % 3 == 1
    return pa.table(
        {
            "seen": pa.array(1.6e9 + 3600.0 * hours, mask=gaps)
            .cast(pa.int64())
            .cast(pa.timestamp("s", zone)),
            "price": pa.array(decimals, pa.decimal128(18, 9)),
            "cost": pa.array(decimals[::-1], pa.decimal128(18, 9), mask=gaps),
            "label": pa.array(np.where(y, "yes", "no")),
        }
    )


def as_objects(table, folder):
    """A data frame of Python objects: dates with a time zone, and decimals."""
    columns = {name: pd.Series(table[name].to_pylist(), dtype=object) for name in table.column_names}
    return pd.DataFrame(columns)


def as_pandas(table, folder):
    return table.to_pandas()


def as_arrow_types(table, folder):
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def as_polars(table, folder):
    return pl.from_arrow(table)


def as_lazy_frame(table, folder):
    return pl.from_arrow(table).lazy()


def as_arrow(table, folder):
    return table


def as_reader(table, folder):
    return table.to_reader


def as_parquet(table, folder):
    pd.DataFrame(table.to_pandas(types_mapper=pd.ArrowDtype)).to_parquet(
        folder / "table.parquet", row_group_size=9
    )
    return folder / "table.parquet"


def as_feather(table, folder):
    feather.write_feather(table, folder / "table.feather", chunksize=9)
    return folder / "table.feather"


def as_dask(table, folder):
    """Partitions of ten rows, some of which have missing cells alone; by default Dask makes text of decimals."""
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_pandas(table.to_pandas(), npartitions=12)


def as_dask_of_arrow_types(table, folder):
    return dd.from_pandas(as_arrow_types(table, folder), npartitions=12)


WITH_ZONE = (
    *(
        as_objects,
        as_pandas,
        as_arrow_types,
        as_polars,
        as_lazy_frame,
        as_arrow,
        as_reader,
        as_parquet,
        as_feather,
    ),
    *(as_dask, as_dask_of_arrow_types),
)


def as_csv(table, folder):
    """Instants with the offset of their zone at that time."""
    table.to_pandas().to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


def as_csv_of_a_database(table, folder):
    """Offsets of whole hours without minutes, as databases write them."""
    duckdb_of(table, "UTC").write_csv(str(folder / "export.csv"))
    return folder / "export.csv"


def duckdb_of(table, session):
    connection = duckdb.connect()
    connection.execute(f"SET TimeZone = '{session}'")
    connection.register("given", table)
    connection.execute("CREATE TABLE stored AS SELECT * FROM given")
    return connection.table("stored")


def as_duckdb(session):
    return lambda table, folder: duckdb_of(table, session)


WITHOUT_ZONE = {
    "CSV": as_csv,
    "CSV of a database": as_csv_of_a_database,
    **{f"DuckDB in {session}": as_duckdb(session) for session in ZONES[:3]},
}
"""Sources that have instants without the name of a time zone: they are read as UTC."""


def predicted(model, given, new):
    found = model.fit(given, "label").predict_proba(new)
    return np.asarray(found.compute() if hasattr(found, "compute") else found)


def without_labels(given):
    """The rows of a source that has its columns in memory; others leave out the labels themselves."""
    if isinstance(given, pd.DataFrame | dd.DataFrame):
        return given.drop(columns="label")
    if isinstance(given, pl.DataFrame):
        return given.drop("label")
    return given.drop_columns("label") if isinstance(given, pa.Table) else given


@cache
def expected(zone):
    frame = as_objects(table_of(zone), None)
    return predicted(NaiveBayes(rule="ml"), frame, frame.drop(columns="label"))


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("source", WITH_ZONE, ids=lambda source: source.__name__)
def test_every_source_with_time_zones_gives_the_same_model(source, zone, tmp_path):
    given = source(table_of(zone), tmp_path)
    found = predicted(NaiveBayes(rule="ml"), given, without_labels(given))
    np.testing.assert_allclose(found, expected(zone), rtol=0, atol=1e-12)


@pytest.mark.parametrize("zone", ZONES[:3])
@pytest.mark.parametrize("source", WITHOUT_ZONE)
def test_instants_without_a_time_zone_are_those_of_utc(source, zone, tmp_path):
    given = WITHOUT_ZONE[source](table_of(zone), tmp_path)
    model = NaiveBayes(rule="ml")
    np.testing.assert_allclose(predicted(model, given, given), expected("UTC"), rtol=0, atol=1e-12)
    assert model.conversion_.converters[0].zone == "UTC"
    labels = np.array(table_of(zone)["label"].to_pylist())
    assert model.score(given, "label") == np.mean(model.classes_[expected("UTC").argmax(axis=1)] == labels)


def test_local_hours_of_duckdb_need_a_conversion():
    relation = duckdb_of(table_of("UTC"), "Europe/Berlin")
    local = relation.project("seen AT TIME ZONE 'Asia/Kolkata' AS seen, price, cost, label")
    found = predicted(NaiveBayes(rule="ml"), local, local)
    frame = as_objects(table_of("Asia/Kolkata"), None)
    frame["seen"] = table_of("Asia/Kolkata").to_pandas()["seen"].dt.tz_localize(None)
    plain = predicted(NaiveBayes(rule="ml"), frame, frame.drop(columns="label"))
    np.testing.assert_allclose(found, plain, rtol=0, atol=1e-12)


OF_DECIMALS = {**{source.__name__: source for source in WITH_ZONE}, **WITHOUT_ZONE}


@pytest.mark.parametrize("source", OF_DECIMALS)
def test_decimals_are_rounded_to_the_nearest_number(source, tmp_path):
    table = table_of("UTC").select(["price", "cost", "label"])
    given = OF_DECIMALS[source](table, tmp_path)
    columns = {
        name: [np.nan if cell is None else float(cell) for cell in table[name].to_pylist()]
        for name in ("price", "cost")
    }
    frame = pd.DataFrame(columns)
    levels = NaiveBayes(rule="ml", kinds={"price": "categorical", "cost": "categorical"}).fit(given, "label")
    known = [np.unique(column[~np.isnan(column)]) for column in frame.to_numpy().T]
    (encoder,) = levels.fitted_.binding.encoders.values()
    for found, cells in zip(encoder.levels, known, strict=True):
        np.testing.assert_array_equal(found, cells)

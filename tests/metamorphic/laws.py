"""Metamorphic laws: changes of a table, or of the way it is read, that must leave the predictions of a model alone.

Each law is a function of a fitted model that returns other probabilities of the new rows, classes in the order of the model.
A law that does not hold for all estimators by nature names the others with the reason, in `EXCEPTIONS`.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import get_tags

import calibayes
from tests.metamorphic.tables import LawTable

TOLERANCE = 1e-6
"""Difference of probabilities by rounding, which calibration and stopping rules may enlarge."""
LARGEST_ENLARGED = 1e-3
"""Largest difference that can be explained by rounding errors that training enlarges; `run.enlarged_rounding` measures it."""
ZONES = ("UTC", "America/New_York", "Asia/Kolkata")


class NotApplicable(Exception):
    """The law says nothing about this model, such as one that is not exported."""


class Trained(NamedTuple):
    """A model fitted to a table."""

    model: Any
    table: LawTable

    def again(self, training: Any, labels: Any, new: Any, weights: np.ndarray | None = None) -> np.ndarray:
        """Probabilities of the same estimator fitted to other rows, classes in ascending order."""
        model = clone(self.model).fit(
            training, labels, **({} if weights is None else {"sample_weight": weights})
        )
        return np.asarray(model.predict_proba(new))


# -- Changes of the table ------------------------------------------------------------------------------------


def class_names(trained, rng):
    """Classes have other names, in another order."""
    classes = np.unique(trained.table.labels)
    letters = rng.permutation(list("qwertyuiopasdfghjklzxcvbnm"))[: len(classes)]
    names = np.array([f"{letter}{name}" for letter, name in zip(letters, classes, strict=True)])
    codes = np.searchsorted(classes, trained.table.labels)
    probabilities = trained.again(trained.table.training, names[codes], trained.table.new)
    return probabilities[:, np.searchsorted(np.sort(names), names)]


def row_order(trained, rng):
    """Training rows stand in another order."""
    table = trained.table
    order = rng.permutation(len(table.labels))
    return trained.again(table.training.iloc[order].reset_index(drop=True), table.labels[order], table.new)


def column_order(trained, rng):
    """Columns stand in another order."""
    table = trained.table
    order = rng.permutation(table.training.shape[1])
    return trained.again(table.training.iloc[:, order], table.labels, table.new.iloc[:, order])


def _with_column(trained, rng, training: Any, new: Any) -> np.ndarray:
    table = trained.table
    frames = [table.training.copy(), table.new.copy()]
    place = int(rng.integers(frames[0].shape[1] + 1))
    for frame, cell in zip(frames, (training, new), strict=True):
        frame.insert(place, "further", cell)
    return trained.again(frames[0], table.labels, frames[1])


def constant_column(trained, rng):
    """There is a further column with one number."""
    numbers = trained.table.training.select_dtypes("number").to_numpy()
    has_counts_alone = numbers.size > 0 and bool(np.nanmin(numbers) >= 0)
    number = float(rng.choice([0.0, 1.0, 1.0 if has_counts_alone else -7.5]))
    return _with_column(trained, rng, number, number)


def constant_text(trained, rng):
    """There is a further column with one level."""
    if not get_tags(trained.model).input_tags.string or isinstance(trained.model, calibayes.PosteriorMixture):
        raise NotApplicable("it, or one of its members, reads numbers alone")
    return _with_column(trained, rng, "same", "same")


def missing_column(trained, rng):
    """There is a further column without values."""
    if not get_tags(trained.model).input_tags.allow_nan:
        raise NotApplicable("it refuses missing values")
    return _with_column(trained, rng, np.nan, np.nan)


def powers_of_two(trained, rng):
    """Each column of numbers is multiplied by a power of two."""
    table = trained.table
    frames = [table.training.copy(), table.new.copy()]
    for name in table.training.columns[[kind.kind == "f" for kind in table.training.dtypes]]:
        factor = 2.0 ** int(rng.integers(-12, 12))
        for frame in frames:
            frame[name] = frame[name] * factor
    return trained.again(frames[0], table.labels, frames[1])


# -- The same rows in another way ----------------------------------------------------------------------------


def row_copies(table: LawTable, rng: np.random.Generator) -> np.ndarray:
    """How often each row stands in the table of the law "duplicates"."""
    return rng.integers(1, 4, len(table.labels)).astype(float)


def duplicates(trained, rng):
    """Rows stand several times, or once with a weight: returns the difference between both."""
    table = trained.table
    times = row_copies(table, rng)
    rows = np.repeat(np.arange(len(times)), times.astype(int))
    repeated = trained.again(table.training.iloc[rows].reset_index(drop=True), table.labels[rows], table.new)
    weighted = trained.again(table.training, table.labels, table.new, times)
    return trained.model.predict_proba(table.new) + (weighted - repeated)


def pieces(trained, rng):
    """New rows are predicted in pieces."""
    new = trained.table.new
    ends = np.sort(rng.integers(1, len(new), 3))
    parts = [part for part in np.split(np.arange(len(new)), ends) if len(part)]
    return np.concatenate([trained.model.predict_proba(new.iloc[part]) for part in parts])


def saved(trained, rng):
    """The model is saved and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        calibayes.save(trained.model, path)
        return calibayes.load(path).predict_proba(trained.table.new)


def by_sql(trained, rng):
    """Probabilities come from a statement in DuckDB."""
    import duckdb

    statement, refuses_gaps = _exported(trained.model, "to_sql", "new_rows", dialect="duckdb")
    new_rows = trained.table.new
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone='Asia/Kolkata'")
        connection.execute(
            "PRAGMA disable_optimizer"
        )  # it takes minutes for thousands of trees (docs/sql.md)
        connection.register("new_rows", new_rows)
        return _where_given(connection.execute(statement).df().to_numpy(), trained, refuses_gaps)


def by_onnx(trained, rng):
    """Probabilities come from an ONNX graph."""
    import onnxruntime

    from calibayes.export.onnx import feeds

    exported, refuses_gaps = _exported(trained.model, "to_onnx")
    session = onnxruntime.InferenceSession(exported.SerializeToString(), providers=["CPUExecutionProvider"])
    return _where_given(session.run(None, feeds(exported, trained.table.new))[1], trained, refuses_gaps)


def _where_given(found: np.ndarray, trained: Trained, refuses_gaps: bool) -> np.ndarray:
    """Exported probabilities; if the export has warned of it, rows with missing values may have none (docs/sql.md)."""
    if not refuses_gaps:
        return found
    has_none = np.isnan(found).all(axis=1) & trained.table.new.isna().any(axis=1).to_numpy()
    return np.where(has_none[:, None], trained.model.predict_proba(trained.table.new), found)


def _exported(model: Any, method: str, *given: Any, **options: Any) -> tuple[Any, bool]:
    """The exported model, and whether a warning says that rows with missing values have no probabilities."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exported = getattr(model, method)(*given, **options)
        except (AttributeError, TypeError) as error:
            raise NotApplicable(f"this model has no {method}") from error
    return exported, any("missing values" in str(warning.message) for warning in caught)


def polars(trained, rng):
    import polars as pl

    table = trained.table
    return trained.again(pl.from_pandas(table.training), table.labels, pl.from_pandas(table.new))


def arrow(trained, rng):
    import pyarrow as pa

    with_labels, new = (
        pa.Table.from_pandas(frame, preserve_index=False) for frame in _labeled(trained.table)
    )
    return trained.again(with_labels, "label", new)


def parquet(trained, rng):
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / f"{part}.parquet") for part in ("training", "new")]
        for frame, path in zip(_labeled(trained.table), paths, strict=True):
            frame.to_parquet(path, row_group_size=50, index=False)
        return trained.again(paths[0], "label", paths[1])


def duckdb_in(zone: str) -> Callable[[Trained, np.random.Generator], np.ndarray]:
    def law(trained, rng):
        import duckdb

        with duckdb.connect() as connection:
            connection.execute(f"SET TimeZone='{zone}'")
            frames = _labeled(trained.table)
            for name, frame in zip(("training", "new"), frames, strict=True):
                connection.register(f"{name}_frame", frame)
                connection.execute(f"create table {name}_rows as select * from {name}_frame")
            relations = [connection.table(f"{name}_rows") for name in ("training", "new")]
            return trained.again(relations[0], "label", relations[1])

    return law


def dask(trained, rng):
    import dask.dataframe as dd

    with_labels, new = (dd.from_pandas(frame, npartitions=3) for frame in _labeled(trained.table))
    model = clone(trained.model).fit(with_labels, "label")
    return np.asarray(model.predict_proba(new).compute())


def _labeled(table: LawTable) -> tuple[pd.DataFrame, pd.DataFrame]:
    return table.training.assign(label=table.labels), table.new


Law = Callable[[Trained, np.random.Generator], np.ndarray]
LAWS: dict[str, Law] = {
    "class names": class_names,
    "row order": row_order,
    "column order": column_order,
    "constant column": constant_column,
    "constant text": constant_text,
    "all-missing column": missing_column,
    "powers of two": powers_of_two,
    "duplicates": duplicates,
    "pieces": pieces,
    "saved": saved,
    "SQL": by_sql,
    "ONNX": by_onnx,
    "polars": polars,
    "Arrow": arrow,
    "Parquet": parquet,
    **{f"DuckDB in {zone}": duckdb_in(zone) for zone in ZONES},
    "Dask": dask,
}

CODES = "its columns are codes of categories, from 0 to the largest one, as in scikit-learn"
COUNTS = "its columns are counts of events of one kind, to which a further column adds; counts have no unit"
FLAGS = "a column of flags has two levels, and both have pseudo-counts, as in scikit-learn"
FROZEN = "a class freezes if an update would make all of its columns invalid, and that of a constant column is always valid"
SEEDS = "rows are shuffled before they are dealt to folds: another order, or other copies of rows, is another seed"
SMOOTHING = "var_smoothing is a share of the largest variance of all columns, as in scikit-learn"
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("constant column", "CategoricalNB"): CODES,
    ("powers of two", "CategoricalNB"): CODES,
    ("constant column", "BernoulliNB"): FLAGS,
    ("constant column", "MultinomialNB"): COUNTS,
    ("constant column", "ComplementNB"): COUNTS,
    ("powers of two", "MultinomialNB"): COUNTS,
    ("powers of two", "ComplementNB"): COUNTS,
    ("powers of two", "PoissonNB"): COUNTS,
    ("powers of two", "GaussianNB"): SMOOTHING,
    ("constant column", "PoissonNB"): FROZEN,
    ("row order", "TradeOffCV"): SEEDS,
    ("row order", "LogUnivariateClassifier"): SEEDS,
    ("row order", "SparseLogBivariateClassifier"): SEEDS,
    ("duplicates", "TradeOffCV"): SEEDS,
    ("duplicates", "LogUnivariateClassifier"): SEEDS,
    ("duplicates", "SparseLogBivariateClassifier"): SEEDS,
    ("powers of two", "TradeOffCV"): SMOOTHING,
}
"""(law, name of the estimator) -> why the law does not hold."""

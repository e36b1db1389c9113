"""Kinds of tables: what a person passes as X, y and sample_weight, as one of few kinds of input.

A table in memory passes as it is. Files, Arrow data, queries and Dask collections are read in chunks, arrays on a device (PyTorch,
CuPy, ..., if scikit-learn's ``array_api_dispatch`` is on) are computed there. Each kind is a class with the same few methods
(`TableInput`), whose module is imported when such an X is passed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias, cast

import numpy as np
from sklearn import get_config
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_consistent_length

from calibayes.core.notices import is_collecting
from calibayes.core.protocols import Array, Engine
from calibayes.engines import computing
from calibayes.kernels.dispatch import OnDevice, most_threads
from calibayes.model import checked_rows
from calibayes.model.checked_rows import AS_GIVEN, Reading, Rows, TrainingRows, read_weight, require_labels
from calibayes.model.delegates import feature
from calibayes.model.training_rows import TRAINING, TrainingReference
from calibayes.tables.read import dask_kind, is_streamed, taken_out
from calibayes.tables.table import Table

OfTable: TypeAlias = Callable[[Table, Engine], Any]
"""A function of a table in memory and an engine with one value, or one row of values, for each row of the table."""


@dataclass(eq=False)
class TableInput:
    """A table that a person passes as X, with its labels and weights; the base of a class for each kind of table.

    A subclass reads its rows into memory (`in_memory`) and can do the rest in better ways: train on all rows without
    reading them into memory (`rows`), choose where computations run (`engine`), predict part by part (`map`), return
    results as another kind of array (`returned`). Objects of a subclass may be passed as X themselves.
    """

    X: Any
    y: Any = None
    sample_weight: Any = None

    refers_to_X: ClassVar[bool] = False
    """Whether X alone can be opened again: otherwise models refer to this object, not to X, as their training table."""

    def labeled(self, y: Any, sample_weight: Any = None) -> Self:
        """This table with other labels and weights: arrays, or names of its columns."""
        return replace(self, y=y, sample_weight=sample_weight)

    def in_memory(self) -> InMemory:
        """The same rows in memory, or some of them if they are too many."""
        raise NotImplementedError(f"{type(self).__name__} has no method in_memory()")

    def engine(self, estimator: Any) -> AbstractContextManager[Engine]:
        """The engine of a call of an estimator; inside, computations use its number of threads.

        An estimator without a parameter ``engine`` uses the threads of its caller unless it has ``n_jobs``.
        """
        n_jobs = getattr(estimator, "n_jobs", None)
        if hasattr(estimator, "engine"):
            return computing(estimator.engine, n_jobs)
        return computing(None, most_threads() if n_jobs is None else n_jobs)

    def rows(self, reader: Any, engine: Engine, how: Reading = AS_GIVEN) -> tuple[Array, TrainingRows]:
        """Classes and training rows; ``reader`` notes their columns. Rows of weight zero are left out."""
        return self.in_memory().rows(reader, engine, how)

    def map(self, model: Any, method: str, function: OfTable) -> Any:
        """The values of a prediction method of a fitted model for all rows, by a function of a table in memory."""
        return self.in_memory().map(model, method, function)

    def returned(self, result: Any) -> Any:
        """A result that was computed in memory, as the kind of array that belongs to this table."""
        return result

    def accuracy(self, model: Any) -> float:
        """The share of the rows, by weight, whose class is predicted."""
        return self.in_memory().accuracy(model)

    def place(self) -> dict[str, Any]:
        """Attributes of an estimator that say where its training rows are, if they are on a device."""
        return {}

    def kept(self, rows: TrainingRows) -> dict[str, Any]:
        """Attributes that an estimator has after `fit`: a record of the table, its place, a reference to what was given.

        Models that are trained inside another call, such as members of an ensemble, refer to nothing.
        """
        state = {"training_table_": rows.described(), **self.place()}
        if not is_collecting():
            table = self.X if self.refers_to_X else self
            state[TRAINING] = TrainingReference(table, self.y, self.sample_weight)
        return state


@dataclass(eq=False)
class InMemory(TableInput):
    """A table in memory: an array, a list of rows, a data frame or a `Table`."""

    refers_to_X = True

    def in_memory(self) -> InMemory:
        return self

    def rows(self, reader: Any, engine: Engine | None = None, how: Reading = AS_GIVEN) -> tuple[Array, Rows]:
        if self.y is None:
            require_labels(reader, self.y)
        table = checked_rows.read_table(reader, self.X, reset=how.reset)
        target = checked_rows.read_target(self.y, how.unlabeled, how.classes, how.fewest_classes)
        check_consistent_length(target.codes, np.empty(table.n))
        is_weighted = self.sample_weight is not None
        weight = read_weight(self.sample_weight, table.n) if is_weighted else np.ones(table.n)
        rows = Rows(table, target.codes, weight, np.arange(table.n))
        if is_weighted:
            rows = rows.only(weight > 0)
        if how.reset:
            rows = rows._replace(table=checked_rows.convert(reader, rows.table))
        if how.class_weight is not None:
            factors = checked_rows.class_factors(how.class_weight, target.classes, rows.codes, rows.weight)
            rows = rows.times(factors)
        if is_weighted or how.class_weight is not None:
            checked_rows.check_total_weight(rows.weight, how.most_weight, how.least_weight)
        return target.classes, rows

    def map(self, model: Any, method: str, function: OfTable) -> Any:
        table = checked_rows.new_table(model, self.X)
        with self.engine(model) as engine:
            return self.returned(function(table, engine))

    def accuracy(self, model: Any) -> float:
        predicted = on_numpy(model.predict(self.X))
        return float(accuracy_score(self.y, predicted, sample_weight=self.sample_weight))


def open_rows(X: Any, y: Any = None, sample_weight: Any = None) -> TableInput:
    """What a person passes as X, y and sample_weight; columns of a data frame that are named are taken out."""
    if isinstance(X, TableInput):
        return X.labeled(y, sample_weight)
    if get_config()["array_api_dispatch"]:
        opened: TableInput | None = feature("device").open_with_dispatch(X, y, sample_weight)
        if opened is not None:
            return opened
    is_array = isinstance(X, np.ndarray | Table) and not isinstance(X, np.memmap)
    if is_array or not is_streamed(X):
        named = isinstance(y, str) or isinstance(sample_weight, str)
        return InMemory(*(taken_out(X, y, sample_weight) if named else (X, y, sample_weight)))
    kind: TableInput = feature("dask" if dask_kind(X) else "streams").open_input(X, y, sample_weight)
    return kind


def in_memory(X: Any, y: Any, sample_weight: Any = None) -> tuple[Any, Any, Any]:
    """Table, labels and weights in memory: those of files and streams are read, columns that are named are taken out."""
    read = open_rows(X, y, sample_weight).in_memory()
    return read.X, read.y, read.sample_weight


def accuracy(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """The share of rows, by weight, whose class a model predicts, wherever the rows are."""
    require_labels(model, y)
    return open_rows(X, y, sample_weight).accuracy(model)


# -- Arrays on a device ------------------------------------------------------------------------------------------


def on_numpy(values: Any) -> Any:
    """An array on a device as NumPy array; anything else unchanged."""
    return feature("device").to_numpy(values) if checked_rows.is_dispatched(values) else values


def labels_at(classes: Array, codes: Any) -> Any:
    """The labels (n,) of class codes; on the device of the codes if they are numbers."""
    if not isinstance(codes, OnDevice):
        return np.asarray(classes[cast(Any, codes)])
    return feature("device").labels_on_device(classes, codes)

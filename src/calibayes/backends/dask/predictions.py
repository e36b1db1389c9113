"""Dask collections as tables of estimators: trained on where they are, predicted lazily.

The predictions for a Dask collection are a lazy Dask array, computed partition by partition on the workers.
"""

from __future__ import annotations

import copy
import importlib
from contextlib import AbstractContextManager
from typing import Any
from uuid import uuid4

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, validate_data

from calibayes.backends.dask.collections import (
    Unhashed,
    client_of_collections,
    has_current_client,
    naming_lost_scheduler,
    unwrapped,
)
from calibayes.backends.dask.engine import Dask, gathered
from calibayes.core.protocols import Array, Engine
from calibayes.engines import computing
from calibayes.model.table_inputs import OfTable
from calibayes.streams.stream_input import StreamInput
from calibayes.tables.read import dask_kind, refuse_lazy

FLAT = ("predict", "score_samples")
"""Methods with one value for each row."""
BY_CLASS = ("predict_proba", "predict_log_proba", "predict_joint_log_proba", "decision_function")
"""Methods with one value for each row and class."""
OF_THIS_PROCESS = ("engine", "n_jobs", "verbose")
"""Parameters that say how to compute here, which the model on the workers does without."""


class DaskInput(StreamInput):
    """A Dask data frame or array."""

    def engine(self, estimator: Any) -> AbstractContextManager[Engine]:
        """The engine of the estimator, or the current cluster if it has none."""
        is_free = getattr(estimator, "engine", None) is None
        if is_free and hasattr(estimator, "engine") and has_current_client():
            return computing(Dask(), estimator.n_jobs)
        return super().engine(estimator)

    def map(self, model: Any, method: str, function: OfTable) -> Any:
        """The predictions as a lazy Dask array."""
        if method not in (*FLAT, *BY_CLASS):
            refuse_lazy(self.X)
        return predicted_lazily(model, method, self.X)

    def accuracy(self, model: Any) -> float:
        rows, *roles = _columns_taken_out(self.X, self.y, self.sample_weight)
        given = (model.predict(rows), *roles)
        predicted, labels, weight = (part if dask_kind(part) is None else _computed(part) for part in given)
        return float(accuracy_score(labels, predicted, sample_weight=weight))


def open_input(X: Any, y: Any, sample_weight: Any) -> DaskInput:
    """The kind of table that a Dask collection is."""
    return DaskInput(X, y, sample_weight)


def _computed(collection: Any) -> Any:
    """The values of a Dask collection."""
    if (client := client_of_collections()) is None:
        return collection.compute()
    with naming_lost_scheduler(client):
        return gathered(client, client.compute(collection))


def _columns_taken_out(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """A Dask collection without the columns that are named, and these columns. Raises ValueError if there is none."""
    names = [name for name in (y, sample_weight) if isinstance(name, str)]
    columns = list(X.columns) if dask_kind(X) == "frame" else []
    if lacking := [name for name in names if name not in columns]:
        listed = ", ".join(map(str, columns)) or "without names"
        raise ValueError(f"there is no column {lacking[0]!r}; the columns are {listed}")
    values = (X[part] if isinstance(part, str) else part for part in (y, sample_weight))
    return X.drop(columns=names) if names else X, *values


def predicted_lazily(model: Any, name: str, X: Any) -> Any:
    """The predictions of each partition. The model is one task of the graph, whose result the others use."""
    from dask.delayed import delayed

    check_is_fitted(model)
    is_frame = dask_kind(X) == "frame"
    given = importlib.import_module("dask.dataframe.dispatch").make_meta(X) if is_frame else X
    validate_data(model, given, reset=False, skip_check_array=True)
    empty = np.empty((0, *_width(model, name)), dtype=_type(model, name, given))
    key = f"calibayes-model-{uuid4().hex}"
    wrapped = Unhashed(_for_workers(model), key)
    sent = delayed(unwrapped)(wrapped, dask_key_name=key)
    if is_frame:
        # Dask fuses the task of a single partition with all that it needs, and cannot if the model is one of it.
        sent = wrapped if X.npartitions == 1 else sent
        return X.map_partitions(_predicted, sent, name, meta=empty)
    rows, columns = X.rechunk({1: -1}), {} if empty.ndim == 2 else {"drop_axis": 1}
    chunks = (rows.chunks[0], *((width,) for width in empty.shape[1:]))
    return rows.map_blocks(_predicted, sent, name, dtype=empty.dtype, meta=empty, chunks=chunks, **columns)


def _predicted(rows: Any, model: Any, name: str) -> Array:
    """The predictions for a partition, which may be empty."""
    model = unwrapped(model) if isinstance(model, Unhashed) else model
    if len(rows):
        return np.asarray(getattr(model, name)(rows))
    return np.empty((0, *_width(model, name)), dtype=_type(model, name, rows))


def _for_workers(model: Any) -> Any:
    """A copy of a model that computes where it is called, in one thread."""
    sent = copy.copy(model)
    for name in OF_THIS_PROCESS:
        if hasattr(sent, name):
            setattr(sent, name, 0 if name == "verbose" else None)
    return sent


def _width(model: Any, name: str) -> tuple[int, ...]:
    """Number of values for each row: () for one, (k,) for one of each class."""
    k = len(model.classes_)
    return () if name in FLAT or (name == "decision_function" and k == 2) else (k,)


def _type(model: Any, name: str, rows: Any) -> Any:
    """The type of the predictions: that of the classes, or floats, in single precision for some models of such columns."""
    if name == "predict":
        return model.classes_.dtype
    is_frame = hasattr(rows, "columns")
    if not all(dtype == np.float32 for dtype in (rows.dtypes if is_frame else [rows.dtype])):
        return np.dtype(np.float64)
    row = np.zeros((1, rows.shape[1]), dtype=np.float32)
    return np.asarray(getattr(model, name)(type(rows)(row, columns=rows.columns) if is_frame else row)).dtype

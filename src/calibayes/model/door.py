"""The door for tables: methods of estimators take what a person passes as X through here.

A table in memory passes as it is. Files, Arrow data, queries and Dask collections are read in chunks, arrays on a device (PyTorch,
CuPy, ..., if scikit-learn's ``array_api_dispatch`` is on) are computed there. The modules for these are imported when such an X is
passed; `calibayes.tables.kinds` recognizes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np
from sklearn import get_config

from calibayes.core.protocols import Array, Engine
from calibayes.engines import computing
from calibayes.kernels.dispatch import OnDevice
from calibayes.model.delegates import feature
from calibayes.model.labels import require_labels
from calibayes.tables.kinds import OpenedTable, dask_kind, is_streamed, taken_out

METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "predict_joint_log_proba",
    "score_samples",
    "decision_function",
)
"""Methods of one value or one row of values for each row of the table."""
HOME = "_home"
"""Attribute of an estimator: where its training rows are, if they are on a device."""

Estimator = TypeVar("Estimator")
Method = TypeVar("Method", bound=Callable[..., Any])


# -- Rows of a training -----------------------------------------------------------------------------------------


def in_memory(X: Any, y: Any, sample_weight: Any = None) -> tuple[Any, Any, Any]:
    """Table, labels and weights in memory: those of files and streams are read, columns that are named are taken out.

    Of a source with very many rows some are read, by their number.
    """
    return in_memory_and_beyond(X, y, sample_weight)[0]


def in_memory_and_beyond(X: Any, y: Any, sample_weight: Any = None) -> tuple[tuple[Any, Any, Any], Any]:
    """`in_memory`, and all rows of the source (`StreamedRows`) if these are not all."""
    if not is_streamed(X):
        return taken_out(X, y, sample_weight), None
    return feature("streams").read_into_memory(X, y, sample_weight)


@contextmanager
def computing_for(estimator: Any, X: Any) -> Iterator[Engine]:
    """The engine of a call with a table X: that of the estimator, of a device, or of the cluster of a Dask collection."""
    given = estimator.engine
    if given is None and dask_kind(X) is not None and feature("dask").has_current_client():
        given = feature("dask_engine").Dask()
    if isinstance(X, OpenedTable):
        with computing(None, estimator.n_jobs):
            yield cast(Any, X).engine(given)
    else:
        with computing(given, estimator.n_jobs) as engine:
            yield engine


# -- Predictions for files, streams and Dask collections ---------------------------------------------------------


def predicting_lazily(cls: type[Estimator]) -> type[Estimator]:
    """A class that predicts files, streams and Dask collections: all methods named in `METHODS`, its own and inherited."""
    for name in METHODS:
        method = getattr(cls, name, None)
        if isinstance(method, FunctionType) and not hasattr(method, "is_lazy_for_dask"):
            setattr(cls, name, by_partition(method))
    changed: Any = cls
    score = getattr(cls, "score", None)
    if isinstance(score, FunctionType) and not hasattr(score, "is_lazy_for_dask"):
        changed.score = _of_computed(score)
    return cls


def _of_computed(score: Callable[..., float]) -> Callable[..., float]:
    """A score of tables with named labels, and of tables that are not in memory."""

    @wraps(score)
    def compute(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        require_labels(self, y)
        if not is_streamed(X):
            return score(self, *taken_out(X, y, sample_weight))
        if dask_kind(X) is None:
            return float(feature("stream_predictions").accuracy_by_chunk(self, X, y, sample_weight))
        return float(feature("dask_predictions").score_of_collection(self, X, y, sample_weight))

    compute.is_lazy_for_dask = True  # type: ignore[attr-defined]
    return compute


def by_partition(method: Method) -> Method:
    """A prediction method that reads files and streams, and returns a lazy Dask array for a Dask collection."""

    @wraps(method)
    def predict(self: Any, X: Any) -> Any:
        if not is_streamed(X):
            return method(self, X)
        if dask_kind(X) is None:
            return feature("stream_predictions").predicted_by_chunk(self, method, X)
        return feature("dask_predictions").predicted_lazily(self, method.__name__, X)

    predict.is_lazy_for_dask = True  # type: ignore[attr-defined]
    return predict  # type: ignore[return-value]


# -- Arrays on a device ------------------------------------------------------------------------------------------


def is_dispatched(X: Any) -> bool:
    """Whether X is an array on a device, and scikit-learn is to compute there."""
    return bool(get_config().get("array_api_dispatch")) and bool(feature("device").is_on_device(X))


def on_numpy(values: Any) -> Any:
    """An array on a device as NumPy array; anything else unchanged."""
    return feature("device").to_numpy(values) if is_dispatched(values) else values


def refuse_on_device(estimator: Any, X: Any) -> None:
    """Raises TypeError if X is on a device and the estimator does not compute there."""
    if isinstance(X, OpenedTable) or is_dispatched(X):
        advice = feature("device").ADVICE
        raise TypeError(f"{type(estimator).__name__} cannot read an X on a device. {advice}")


def fit_on_device(method: Method) -> Method:
    """Decorator of `fit` and `partial_fit`: X may be on a device, y and sample weights anywhere."""

    @wraps(method)
    def fit(self: Any, X: Any, y: Any = None, *args: Any, **options: Any) -> Any:
        if not get_config().get("array_api_dispatch"):
            return method(self, X, y, *args, **options)
        device = feature("device")
        table = device.DeviceTable(X) if device.is_on_device(X) else X
        others = {name: on_numpy(value) for name, value in options.items()}
        method(self, table, on_numpy(y), *map(on_numpy, args), **others)
        if table is not X:
            setattr(self, HOME, device.home_of(table.placement))
        return self

    return cast(Method, fit)


def on_device(method: Method) -> Method:
    """Decorator of methods of a fitted estimator with the only argument X, and options."""

    @wraps(method)
    def of_table(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not get_config().get("array_api_dispatch") or isinstance(X, OpenedTable):
            return method(self, X, *args, **options)
        device = feature("device")
        device.require_same_home(self, X, method.__name__)
        if not device.is_on_device(X):
            return method(self, X, *args, **options)
        table = device.DeviceTable(X)
        return table.returned(method(self, table, *args, **options))

    return cast(Method, of_table)


def at_home(estimator: Any, value: Any) -> Any:
    """A NumPy array, or a list of them, as arrays of the library and device of the training rows."""
    home = getattr(estimator, HOME, None)
    return value if home is None else feature("device").returned_home(home, value)


class array_property(property):
    """A fitted attribute: a property whose array is of the library and device of the training rows."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        value = super().__get__(instance, owner)
        return value if instance is None else at_home(instance, value)


def labels_at(classes: Array, codes: Any) -> Any:
    """The labels (n,) of class codes; on the device of the codes if they are numbers."""
    if not isinstance(codes, OnDevice):
        return np.asarray(classes[cast(Any, codes)])
    return feature("device").labels_on_device(classes, codes)


def numpy_classes(estimator: Any) -> Array:
    """The class labels of a fitted estimator as a NumPy array."""
    classes = estimator.classes_
    return classes if isinstance(classes, np.ndarray) else feature("device").to_numpy(classes)

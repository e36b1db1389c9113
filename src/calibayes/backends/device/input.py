"""X on a device (PyTorch, CuPy, ...) in the methods of estimators, if scikit-learn's ``array_api_dispatch`` is on.

The results of methods that accept such an X (`calibayes.model.table_inputs`) are arrays of the library and device of X.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from calibayes.backends.device.array import (
    DeviceArray,
    Placement,
    dense,
    is_on_device,
    placement_of,
    to_numpy,
)
from calibayes.backends.device.engine import DeviceEngine
from calibayes.core.protocols import Array, Engine
from calibayes.model.attributes import HOME
from calibayes.model.checked_rows import AS_GIVEN, Reading, Rows, new_table, refuse_on_device
from calibayes.model.estimator import holding
from calibayes.model.table_inputs import InMemory, OfTable, TableInput
from calibayes.tables.read import is_streamed, taken_out
from calibayes.tables.table import Table

SUPPORTED = (
    "GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, GenerativeLogisticRegression, CategoricalNB, "
    "BernoulliNB, MultinomialNB, ComplementNB and CalibratedTrees"
)
ADVICE = f"What runs on a device: {SUPPORTED}. Everything accepts a NumPy array, such as X.cpu().numpy()"


@dataclass(frozen=True)
class Home:
    """The names of an array library and a device: the arrays of a fitted estimator are returned there."""

    library: str
    device: str

    def placement(self) -> Placement | None:
        """The library and device; None if they are not available here."""
        try:
            xp = import_module(self.library)
        except ImportError:
            return None
        if self.library.endswith("torch"):  # accepts names of devices
            return Placement(xp, self.device)
        devices = xp.__array_namespace_info__().devices()
        return next((Placement(xp, device) for device in devices if str(device) == self.device), None)


def home_of(place: Placement) -> Home:
    return Home(place.xp.__name__, str(place.device))


class HostInput(InMemory):
    """A table in memory while arrays on devices are dispatched: an estimator that was trained on a device refuses it."""

    def map(self, model: Any, method: str, function: OfTable) -> Any:
        if not isinstance(self.X, Table):
            _require_same_home(model, self.home(), method)
        return super().map(model, method, function)

    def home(self) -> Home | None:
        """Where the table is; None for the memory of the host."""
        return None


@dataclass(eq=False)
class DeviceInput(HostInput):
    """A table X on a device, y and sample weights anywhere."""

    def __post_init__(self) -> None:
        self.y, self.sample_weight = _on_host(self.y), _on_host(self.sample_weight)
        self.values = dense(self.X)
        self.placement = placement_of(self.X)

    def home(self) -> Home | None:
        return home_of(self.placement)

    @cached_property
    def host(self) -> Array:
        """The table as a NumPy array."""
        return to_numpy(self.values)

    @contextmanager
    def engine(self, estimator: Any) -> Iterator[Engine]:
        """The engine for this table. Raises ValueError if the estimator has another one."""
        if (given := getattr(estimator, "engine", None)) is not None:
            raise ValueError(
                f"engine must be None for an X on a device, where it is computed, got {given!r}. {ADVICE}"
            )
        with super().engine(estimator):
            yield DeviceEngine(self.placement, (self.host, self.values))

    def rows(self, reader: Any, engine: Engine | None = None, how: Reading = AS_GIVEN) -> tuple[Array, Rows]:
        return InMemory(self._readable(reader), self.y, self.sample_weight).rows(reader, engine, how)

    def map(self, model: Any, method: str, function: OfTable) -> Any:
        _require_same_home(model, self.home(), method)
        table = new_table(model, self._readable(model))
        with self.engine(model) as engine:
            return self.returned(function(table, engine))

    def _readable(self, estimator: Any) -> Array:
        """The table on the host. Raises TypeError if the estimator does not compute on a device."""
        if not get_tags(estimator).array_api_support:
            refuse_on_device(estimator)
        return self.host

    def returned(self, result: Any) -> Any:
        """A result as an array of the library and device of X; labels that are no numbers stay in NumPy."""
        return result.values if isinstance(result, DeviceArray) else _placed(self.placement, result)

    def place(self) -> dict[str, Any]:
        return {HOME: self.home()}


def open_with_dispatch(X: Any, y: Any, sample_weight: Any) -> TableInput | None:
    """The kind of table of X while arrays on devices are dispatched; None for files, streams and collections."""
    if is_on_device(X):
        return DeviceInput(X, y, sample_weight)
    return None if is_streamed(X) else HostInput(*taken_out(X, _on_host(y), _on_host(sample_weight)))


def _on_host(values: Any) -> Any:
    return to_numpy(values) if is_on_device(values) else values


def _require_same_home(estimator: Any, given: Home | None, method: str) -> None:
    """Raises scikit-learn's ValueError if X is of another library or on another device than the training rows."""
    trained = vars(estimator).get(HOME)
    if given == trained or not hasattr(estimator, "fitted_"):
        return
    raise ValueError(
        f"Inputs passed to {type(estimator).__name__}.{method}() must use the same namespace and the same device as those "
        f"passed to fit(). Training: {_described(trained)}; {method}: {_described(given)}. Move X there, or the estimator "
        "with sklearn.utils._array_api.move_estimator_to(estimator, xp, device)"
    )


def _described(home: Home | None) -> str:
    return "NumPy" if home is None else f"{home.library} on {home.device}"


# -- fitted attributes ---------------------------------------------------------------------------------------------


def moved(estimator: Any, convert: Callable[[Array], Any]) -> Any:
    """A copy of an estimator whose arrays are returned where ``convert`` moves arrays to."""
    copied = holding(estimator, estimator.fitted_)
    vars(copied).pop(HOME, None)
    converted = convert(np.zeros(1))
    if is_on_device(converted):
        setattr(copied, HOME, home_of(placement_of(converted)))
    return copied


def returned_home(home: Home, value: Any) -> Any:
    """A NumPy array, or a list of them, as arrays of the library and device of the training rows, if they are available."""
    place = home.placement()
    if place is None:
        return value
    if isinstance(value, list):
        return [returned_home(home, part) for part in value]
    return _placed(place, value)


def _placed(place: Placement, value: Any) -> Any:
    """A NumPy array of numbers as one of the library and device; anything else as it is."""
    is_array = type(value) is np.ndarray and value.dtype.kind in "fiub"
    return place.array(value) if is_array else value


def labels_on_device(classes: Array, codes: DeviceArray) -> Any:
    """The labels (n,) of class codes on a device; there if they are numbers."""
    if classes.dtype.kind not in "fiub":
        return classes[codes.to_host()]
    return DeviceArray(codes.placement.array(classes), codes.placement)[codes]

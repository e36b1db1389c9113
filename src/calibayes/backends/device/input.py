"""X on a device (PyTorch, CuPy, ...) in the methods of estimators, if scikit-learn's ``array_api_dispatch`` is on.

Methods that accept such an X (`calibayes.model.door`) get a `DeviceTable`; their results are arrays of the library and device
of X.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from calibayes.backends.device.array import DeviceArray, Placement, is_on_device, placement_of, to_numpy
from calibayes.backends.device.engine import DeviceEngine
from calibayes.core.protocols import Array, Engine
from calibayes.model.door import HOME
from calibayes.tables.kinds import OpenedTable

Method = TypeVar("Method", bound=Callable[..., Any])
SUPPORTED = (
    "GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, GenerativeLogisticRegression, CategoricalNB, "
    "BernoulliNB, MultinomialNB and ComplementNB"
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


class DeviceTable(OpenedTable):
    """A table X on a device."""

    def __init__(self, values: Any) -> None:
        self.values = values.detach() if hasattr(values, "detach") else values
        self.placement = placement_of(values)

    @cached_property
    def host(self) -> Array:
        """The table as a NumPy array."""
        return to_numpy(self.values)

    def engine(self, given: Engine | None) -> DeviceEngine:
        """The engine for this table. Raises ValueError if the estimator has another one."""
        if given is not None:
            raise ValueError(
                f"engine must be None for an X on a device, where it is computed, got {given!r}. {ADVICE}"
            )
        return DeviceEngine(self.placement, (self.host, self.values))

    def returned(self, result: Any) -> Any:
        """A result as an array of the library and device of X; labels that are no numbers stay in NumPy."""
        if isinstance(result, DeviceArray):
            return result.values
        is_array = type(result) is np.ndarray and result.dtype.kind in "fiub"
        return self.placement.array(result) if is_array else result


def require_same_home(estimator: Any, X: Any, method: str) -> None:
    """Raises scikit-learn's ValueError if X is of another library or on another device than the training rows."""
    trained = getattr(estimator, HOME, None)
    given = home_of(placement_of(X)) if is_on_device(X) else None
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
    copied = estimator.holding(estimator.fitted_)
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
    is_array = type(value) is np.ndarray and value.dtype.kind in "fiub"
    return place.array(value) if is_array else value


def labels_on_device(classes: Array, codes: DeviceArray) -> Any:
    """The labels (n,) of class codes on a device; there if they are numbers."""
    if classes.dtype.kind not in "fiub":
        return classes[codes.to_host()]
    return DeviceArray(codes.placement.array(classes), codes.placement)[codes]

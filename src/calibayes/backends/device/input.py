"""X on a device (PyTorch, CuPy, ...) in the methods of estimators, if scikit-learn's ``array_api_dispatch`` is on.

`fit_on_device` and `on_device` wrap the methods that accept such an X: inside they get a `DeviceTable`, outside their
results are arrays of the library and device of X. Without ``array_api_dispatch`` the methods are called as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, wraps
from importlib import import_module
from typing import Any, TypeVar, cast

import numpy as np
from sklearn import get_config

from calibayes.backends.dask.collections import dask_kind, has_current_client
from calibayes.backends.device.array import DeviceArray, Placement, is_on_device, placement_of, to_numpy
from calibayes.backends.device.engine import DeviceEngine
from calibayes.core.protocols import Array, Engine
from calibayes.engines import Dask, computing
from calibayes.model.parameters import HOME

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


class DeviceTable:
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


def is_dispatched(X: Any) -> bool:
    """Whether X is an array on a device, and scikit-learn is to compute there."""
    return bool(get_config().get("array_api_dispatch")) and is_on_device(X)


def on_numpy(values: Any) -> Any:
    """An array on a device as NumPy array; anything else unchanged."""
    return to_numpy(values) if is_dispatched(values) else values


@contextmanager
def computing_for(estimator: Any, X: Any) -> Iterator[Engine]:
    """The engine of a call with a table X: that of the estimator, of a device, or of the cluster of a Dask collection."""
    given = estimator.engine
    if given is None and dask_kind(X) is not None and has_current_client():
        given = Dask()
    with computing(None if isinstance(X, DeviceTable) else given, estimator.n_jobs) as engine:
        yield X.engine(given) if isinstance(X, DeviceTable) else engine


def refuse_on_device(estimator: Any, X: Any) -> None:
    """Raises TypeError if X is on a device and the estimator does not compute there."""
    if isinstance(X, DeviceTable) or is_dispatched(X):
        raise TypeError(f"{type(estimator).__name__} cannot read an X on a device. {ADVICE}")


def fit_on_device(method: Method) -> Method:
    """Decorator of `fit` and `partial_fit`: X may be on a device, y and sample weights anywhere."""

    @wraps(method)
    def fit(self: Any, X: Any, y: Any = None, *args: Any, **options: Any) -> Any:
        if not get_config().get("array_api_dispatch"):
            return method(self, X, y, *args, **options)
        table = DeviceTable(X) if is_on_device(X) else X
        others = {name: on_numpy(value) for name, value in options.items()}
        method(self, table, on_numpy(y), *map(on_numpy, args), **others)
        if isinstance(table, DeviceTable):
            setattr(self, HOME, home_of(table.placement))
        return self

    return cast(Method, fit)


def on_device(method: Method) -> Method:
    """Decorator of methods of a fitted estimator with the only argument X, and options."""

    @wraps(method)
    def of_table(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not get_config().get("array_api_dispatch") or isinstance(X, DeviceTable):
            return method(self, X, *args, **options)
        require_same_home(self, X, method.__name__)
        if not is_on_device(X):
            return method(self, X, *args, **options)
        table = DeviceTable(X)
        return table.returned(method(self, table, *args, **options))

    return cast(Method, of_table)


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


def at_home(estimator: Any, value: Any) -> Any:
    """A NumPy array, or a list of them, as arrays of the library and device of the training rows."""
    home = getattr(estimator, HOME, None)
    place = None if home is None else home.placement()
    if place is None:
        return value
    if isinstance(value, list):
        return [at_home(estimator, part) for part in value]
    is_array = type(value) is np.ndarray and value.dtype.kind in "fiub"
    return place.array(value) if is_array else value


class array_property(property):
    """A fitted attribute: a property whose array is of the library and device of the training rows."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        value = super().__get__(instance, owner)
        return value if instance is None else at_home(instance, value)


def labels_at(classes: Array, codes: Any) -> Any:
    """The labels (n,) of class codes; on the device of the codes if they are numbers."""
    if not isinstance(codes, DeviceArray):
        return np.asarray(classes[codes])
    if classes.dtype.kind not in "fiub":
        return classes[codes.to_host()]
    return DeviceArray(codes.placement.array(classes), codes.placement)[codes]


def numpy_classes(estimator: Any) -> Array:
    """The class labels of a fitted estimator as a NumPy array."""
    classes = estimator.classes_
    return to_numpy(classes) if is_on_device(classes) else classes

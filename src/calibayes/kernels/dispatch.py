"""How kernels run: native code (C++), NumPy or another array library, and threads.

Twins. A kernel with a native version consists of two functions. ``native_<name>(module, ...)`` calls the extension
module and returns NotImplemented for arrays it does not support; the NumPy function of the same arguments is the
reference. ``@twin(native_<name>)`` on the NumPy function combines both into one callable, a `Twin`: the native version
runs if the extension is loaded and supports the arguments, the NumPy version otherwise. Callers see no difference
beyond rounding. `TWINS` lists all of them for the tests.

Environment variable. ``CALIBAYES_NATIVE`` is read once, on import: "0" disables the native kernels; "baseline", "avx2"
or "avx512" selects that instruction set. If it is unset or empty, the best instruction set of the processor is used.

Array forms. Native code takes NumPy matrices (`is_matrix`) whose rows are contiguous (`row_major`), and contiguous
arrays of float64 (`as_float64`) and int64 (`as_int64`), all of them aligned in memory.

Threads. `map_items` and `map_ranges` run loops over items or ranges of rows in parallel, within `thread_limit`.
Ranges do not depend on the number of threads, so neither do sums. Native functions whose loops take less than a
millisecond share them among a team of native threads (`native_team`).

Arrays on a device (PyTorch, CuPy and other libraries with the array API) are `OnDevice` objects. A kernel whose first
argument is one calls its device version, registered by `device_version` (see `calibayes.backends.device`). A kernel
without a native version that has a device version is marked by ``@portable``.
"""

from __future__ import annotations

import importlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import update_wrapper, wraps
from typing import Any, Generic, ParamSpec, TypeVar

import array_api_compat.numpy
import numpy as np
from array_api_compat import array_namespace

from calibayes.core.named_arrays import map_leaves
from calibayes.core.protocols import Array

ENVIRONMENT_VARIABLE = "CALIBAYES_NATIVE"

Arguments = ParamSpec("Arguments")
Function = TypeVar("Function", bound=Callable[..., Any])
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass
class NativeKernels:
    """The native kernels in use, if any."""

    module: Any
    """The extension module; None if the NumPy versions are in use."""
    reason: str
    """Why the NumPy versions are in use; empty if the extension is loaded."""
    is_missing: bool = False
    """Whether the extension could not be loaded although the environment variable does not switch it off."""

    @property
    def instruction_set(self) -> str | None:
        """The instruction set in use; None if the NumPy versions are in use."""
        return None if self.module is None else str(self.module.level())

    @property
    def advice(self) -> str:
        """What to do if the extension is missing; else empty."""
        return (
            f"The native kernels of calibayes are {self.reason}. NumPy is used instead: slower, with the same results to "
            "rounding. To build them, install a C++ compiler and then calibayes again "
            f"(pip install --force-reinstall --no-cache-dir); to use NumPy without this note, set {ENVIRONMENT_VARIABLE}=0."
            if self.is_missing
            else ""
        )


def load_native(setting: str) -> NativeKernels:
    """Load the extension module for a value of the environment variable.

    Raises ValueError if the extension is built and the value is not one of its instruction sets.
    """
    if setting == "0":
        return NativeKernels(None, f"{ENVIRONMENT_VARIABLE}=0")
    try:
        module = importlib.import_module("calibayes.kernels.native._native")
    except ImportError as error:
        return NativeKernels(None, f"not built: {error}", is_missing=True)
    if setting and not module.choose(setting):
        choices = ", ".join(module.levels())
        raise ValueError(f"{ENVIRONMENT_VARIABLE} must be 0 or one of {choices}, got {setting!r}")
    return NativeKernels(module, "")


native_kernels = load_native(os.environ.get(ENVIRONMENT_VARIABLE, ""))


class OnDevice:
    """Base class of arrays on a device."""

    __slots__ = ()

    def to_host(self) -> Array:
        """The same numbers as a NumPy array."""
        raise NotImplementedError


def on_host(value: Any) -> Any:
    """An array on a device as a NumPy array; anything else unchanged."""
    return value.to_host() if isinstance(value, OnDevice) else value


def hosted(arrays: Any) -> Any:
    """Named arrays, nested to any depth, with NumPy arrays instead of those on a device."""
    return map_leaves(on_host, arrays)


DEVICE_VERSIONS: dict[str, Callable[..., Any]] = {}
"""The device versions of kernels, by the name of the kernel."""


def device_version(kernel: Callable[..., Any]) -> Callable[[Function], Function]:
    """Decorator: the version of a kernel for arrays on a device."""

    def register(version: Function) -> Function:
        DEVICE_VERSIONS[_full_name(kernel)] = version
        return version

    return register


def _full_name(kernel: Callable[..., Any]) -> str:
    return f"{kernel.__module__}.{kernel.__name__}"


def _run_on_device(kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The device version of a kernel. Raises TypeError if it has none."""
    if (version := DEVICE_VERSIONS.get(_full_name(kernel))) is None:
        raise TypeError(f"{kernel.__name__} cannot be computed with arrays on a device")
    return version(*args, **kwargs)


def portable(kernel: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorator: a kernel without a native version that has a device version."""

    @wraps(kernel)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if isinstance(args[0], OnDevice):
            return _run_on_device(kernel, *args, **kwargs)
        return kernel(*args, **kwargs)

    return call


class Twin(Generic[Arguments, Result]):
    """A kernel with a NumPy and a native version. The native version returns NotImplemented for unsupported arguments."""

    def __init__(self, numpy: Callable[Arguments, Result], native: Callable[..., Any]) -> None:
        self.numpy, self.native = numpy, native
        update_wrapper(self, numpy)

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if isinstance(args[0], OnDevice):
            return _run_on_device(self.numpy, *args, **kwargs)
        if native_kernels.module is not None:
            answer = self.native(native_kernels.module, *args, **kwargs)
            if answer is not NotImplemented:
                return answer
        return self.numpy(*args, **kwargs)

    def __reduce__(self) -> str:
        """A twin is pickled by its name, as functions are: it has taken the place of the NumPy function."""
        return str(self.__qualname__)  # type: ignore[attr-defined]


TWINS: dict[str, Twin[..., Any]] = {}
"""All kernels with a native version, by the name of the NumPy function."""


def twin(native: Callable[..., Any]) -> Callable[[Callable[Arguments, Result]], Twin[Arguments, Result]]:
    """Decorator: combine a NumPy kernel with ``native``, a function of the extension module and the same arguments."""

    def combine(numpy: Callable[Arguments, Result]) -> Twin[Arguments, Result]:
        pair = Twin(numpy, native)
        TWINS[numpy.__name__] = pair
        return pair

    return combine


def is_matrix(array: Any, kinds: str) -> bool:
    """Whether this is a two-dimensional NumPy array that native code can read.

    ``kinds`` are the accepted values of ``dtype.kind``, such as "iu". The byte order must be the machine's and items
    must have 1, 2, 4 or 8 bytes; float16 is not supported.
    """
    if type(array) is not np.ndarray or array.ndim != 2:
        return False
    dtype = array.dtype
    return dtype.kind in kinds and dtype.isnative and dtype.itemsize in (1, 2, 4, 8) and dtype != np.float16


def row_major(matrix: Array) -> Array:
    """The matrix itself if the cells of each row are contiguous in memory, else a C-contiguous copy."""
    size = matrix.dtype.itemsize
    contiguous = matrix.shape[1] < 2 or matrix.strides[1] == size
    aligned = matrix.strides[0] >= 0 and matrix.strides[0] % size == 0 and matrix.flags.aligned
    return matrix if contiguous and aligned else matrix.copy(order="C")


def as_float64(array: Any) -> Array:
    """The array as C-contiguous, aligned float64, without a copy if it is."""
    return as_aligned(np.ascontiguousarray(array, dtype=np.float64))


def numbers_given(name: str, given: Any) -> Array:
    """The value of a parameter as float64. Raises ValueError, with the parameter's name, if it has anything but numbers."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number or an array of numbers, got {given!r}") from None


def as_int64(array: Any) -> Array:
    """The array as C-contiguous, aligned int64, without a copy if it is."""
    return as_type(array, np.int64)


def as_type(array: Any, kind: type[np.generic] | np.dtype[Any]) -> Array:
    """The array as C-contiguous and aligned, of another type, without a copy if it is."""
    return as_aligned(np.ascontiguousarray(array, dtype=kind))


def as_aligned(array: Array) -> Array:
    """The array itself if its items are aligned in memory, else a copy."""
    return array if array.flags.aligned else array.copy()


CODE_TYPES = (np.int8, np.int16, np.int32)


def code_type(levels: int) -> type[np.signedinteger]:
    """The narrowest type for the codes of this many levels and -1."""
    return next(kind for kind in CODE_TYPES if levels <= np.iinfo(kind).max + 1)


def namespace(*arrays: Any) -> Any:
    """The array API namespace that the arrays share (NumPy, PyTorch, CuPy, ...)."""
    # The general look-up costs more than a sum over a small array, so plain NumPy arrays skip it.
    if all(type(array) is np.ndarray for array in arrays):
        return array_api_compat.numpy
    return array_namespace(*arrays)


# -- Loops in parallel threads -------------------------------------------------------------------------------

RANGE_BYTES = 2**22
"""Approximate size of a range of rows in bytes."""


_jobs: ContextVar[int] = ContextVar("jobs", default=1)
"""Number of threads that a loop may use."""
_pools: ContextVar[dict[int, Executor]] = ContextVar("pools")
"""Idle thread pools by their number of threads. Worker threads do not inherit the variable, so that no worker waits for
a task in its own pool."""


_teams: ContextVar[dict[int, Any]] = ContextVar("teams")
"""Teams of native threads by their number. Worker threads do not inherit the variable either."""
MOST_NATIVE_THREADS = 1024
"""Most threads of a team."""


@contextmanager
def thread_limit(number: int) -> Iterator[None]:
    """Context in which loops may use up to ``number`` threads."""
    token = _jobs.set(number)
    try:
        yield
    finally:
        _jobs.reset(token)


@contextmanager
def reused_threads(number: int) -> Iterator[None]:
    """`thread_limit` with pools that are kept between loops: starting one takes longer than a pass over a small table."""
    pools: dict[int, Executor] = {}
    tokens = _jobs.set(number), _pools.set(pools), _teams.set({})
    try:
        yield
    finally:
        _jobs.reset(tokens[0])
        _pools.reset(tokens[1])
        _teams.reset(tokens[2])
        for pool in pools.values():
            pool.shutdown()


def native_team(module: Any, *, alone: bool = False) -> Any:
    """Threads of the extension, as many as a loop may use, or the calling one alone: for loops of less than a millisecond."""
    number, teams = 1 if alone else min(_jobs.get(), MOST_NATIVE_THREADS), _teams.get(None)
    if teams is None:
        return module.Team(number)
    if number not in teams:
        teams[number] = module.Team(number)
    return teams[number]


@contextmanager
def thread_pool(number: int) -> Iterator[Executor]:
    """A pool of ``number`` threads: a kept one inside `reused_threads`, else a new one."""
    pools = _pools.get(None)
    if pools is None:
        with ThreadPoolExecutor(number) as pool:
            yield pool
    else:
        if number not in pools:
            pools[number] = ThreadPoolExecutor(number)
        yield pools[number]


def most_threads() -> int:
    """Number of threads that a loop may use here."""
    return _jobs.get()


def map_items(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``function(item)`` for each item, in the order of the items, in parallel within `thread_limit`."""
    return list(ordered_map(function, items))


def ordered_map(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """`map_items` as an iterator, so that results need not be stored all at once.

    Items that are no sequence, such as parts of a file that are being read, are taken a few at a time.
    """
    if _jobs.get() == 1 or (isinstance(items, Sequence) and len(items) < 2):
        yield from map(function, items)
        return
    with thread_pool(_jobs.get()) as pool:
        if isinstance(items, Sequence):
            yield from pool.map(function, items)
        else:
            yield from _few_at_a_time(pool, function, items, 2 * _jobs.get())


def _few_at_a_time(
    pool: Executor, function: Callable[[Item], Result], items: Iterable[Item], most: int
) -> Iterator[Result]:
    """Results in the order of the items, of which at most so many are taken before their results are used."""
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def map_ranges(function: Callable[[slice], Result], n: int, row_bytes: int) -> list[Result]:
    """``function(rows)`` for consecutive slices of n rows of about `RANGE_BYTES` bytes, in order; at least one slice."""
    size = max(RANGE_BYTES // max(row_bytes, 1), 1)
    ranges = [slice(start, min(start + size, n)) for start in range(0, max(n, 1), size)]
    return list(ordered_map(function, ranges))

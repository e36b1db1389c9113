"""Let each allocation of the native kernels fail in turn; run with the library of allocations.cpp preloaded.

    LD_PRELOAD=LIBRARY python -m tests.faults.allocation_run

On 20 rows, the n-th allocation fails: in every kernel for each n until there is none, in fit and predict of every estimator
for a few n. The call must end in MemoryError, leave the estimator as it was, and succeed with the same result when repeated.
"""

from __future__ import annotations

import ctypes
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from calibayes.kernels.dispatch import native_kernels
from tests.contract.test_scikit_learn import ESTIMATORS
from tests.kernels.native_cases import CASES

LIBRARY = ctypes.CDLL(None)
ROWS = 20
CASES_PER_KERNEL = 8
FAILURES_PER_FIT = 3
MOST = 2_000
"""More allocations than any call makes."""


class Numbered:
    """The extension module; of the allocations that its functions make, number ``fails_at`` fails."""

    def __init__(self, module: Any, fails_at: int) -> None:
        self.module, self.fails_at, self.made = module, fails_at, 0

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.module, name)
        return self._counted(function) if callable(function) else function

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            LIBRARY.calibayes_fail_at(self.fails_at - self.made)
            try:
                return function(*args, **options)
            finally:
                self.made += LIBRARY.calibayes_stop()

        return call


def with_failure(call: Callable[[], Any], number: int) -> tuple[Any, bool]:
    """The result of a call whose allocation of this number fails, and whether there was such an allocation."""
    module, native_kernels.module = native_kernels.module, Numbered(native_kernels.module, number)
    try:
        result = call()
        assert native_kernels.module.made < number, "a failed allocation was not reported"
        return result, False
    except MemoryError:
        return None, True
    finally:
        native_kernels.module = module


def equal(left: Any, right: Any) -> bool:
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    left, right = np.asarray(left), np.asarray(right)
    return np.array_equal(left, right, equal_nan=left.dtype.kind == "f")


def attempt(call: Callable[[], Any], expected: Any, number: int, check: Callable[[], None]) -> bool:
    """Whether an allocation of this number failed. After it has, `check` holds and the call succeeds as before."""
    result, failed = with_failure(call, number)
    check()
    assert equal(call() if failed else result, expected), f"another result at allocation {number}"
    return failed


def in_new_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Run a function where the memory that kernels keep for each thread is not allocated yet."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result()


def every_failure(call: Callable[[], Any]) -> int:
    """Let each allocation of a call fail, until there are no more; returns their number."""
    expected = call()
    for number in range(1, MOST):
        if not in_new_thread(attempt, call, expected, number, lambda: None):
            return number - 1
    raise AssertionError(f"more than {MOST} allocations")


def allocations(call: Callable[[], Any]) -> int:
    """The number of allocations of a call."""
    module, native_kernels.module = native_kernels.module, (counter := Numbered(native_kernels.module, 0))
    try:
        call()
        return counter.made
    finally:
        native_kernels.module = module


def some_failures(call: Callable[[], Any], check: Callable[[], None]) -> int:
    """Let the first, the last and some other allocations of a call fail; returns how many."""
    expected, made = call(), in_new_thread(allocations, call)
    numbers = np.unique(np.linspace(1, made, FAILURES_PER_FIT).astype(int)) if made else []
    return sum(in_new_thread(attempt, call, expected, int(number), check) for number in numbers)


def kernels() -> int:
    """Failures in all kernels."""
    total = 0
    for name, case in CASES.items():
        rng = np.random.default_rng(0)
        every = list(case.make(rng, ROWS, 4, 3))
        chosen = [every[i] for i in np.linspace(0, len(every) - 1, CASES_PER_KERNEL).astype(int)]
        made = [every_failure(partial(case.kernel, *args)) for args in chosen]
        print(f"{name}: {sum(made)} failed allocations", flush=True)
        total += sum(made)
    return total


def estimators() -> int:
    """Failures in fit and predict of all estimators, which hold the same objects afterwards."""
    X = np.random.default_rng(0).poisson(2.0, (ROWS, 4)).astype(float)
    y = np.arange(ROWS) % 2
    total = 0
    for estimator in ESTIMATORS:
        quick = {"max_iter": 3} if "max_iter" in estimator.get_params() else {}
        model = clone(estimator).set_params(**quick).fit(X, y)
        output = "predict_proba" if hasattr(model, "predict_proba") else "transform"
        other, held = clone(model), dict(vars(model))

        def refit(other: Any = other, output: str = output) -> Any:
            return getattr(other.fit(X, y), output)(X)

        def unchanged(model: Any = model, held: Any = held) -> None:
            assert vars(model).keys() == held.keys()
            assert all(vars(model)[name] is held[name] for name in held)

        failed = some_failures(refit, unchanged)
        failed += some_failures(lambda model=model, output=output: getattr(model, output)(X), unchanged)
        _, in_fit = in_new_thread(with_failure, lambda model=model: model.fit(X, 1 - y), 1)
        if in_fit:
            unchanged()
        print(f"{type(estimator).__name__}: {failed} failed allocations", flush=True)
        total += failed
    return total


def main() -> int:
    warnings.simplefilter("ignore")
    assert native_kernels.module is not None, native_kernels.reason
    in_kernels, in_estimators = kernels(), estimators()
    assert in_kernels > 100, in_kernels
    assert in_estimators > 50, in_estimators
    print(f"{in_kernels + in_estimators} failed allocations, each ended in MemoryError")
    return 0


if __name__ == "__main__":
    sys.exit(main())

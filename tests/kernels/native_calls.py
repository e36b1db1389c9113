"""Random calls of the functions of the native extension: each ends in a result, TypeError, ValueError or MemoryError.

    python -m tests.kernels.native_calls --calls 200000 --first 0

Valid arguments are changed: other shapes, types, strides, byte orders, read-only memory, values out of range, NaN, sizes of
which no array could be full, results that share memory with arguments. `python -m tests.sanitize` runs the calls on an
extension that stops at invalid accesses to memory. A process that dies has printed the number of the call before.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tests.sanitize  # noqa: F401 - replaces the extension if it is told to

# isort: split
import numpy as np

from calibayes.kernels.dispatch import native_kernels
from tests.kernels.native_cases import CASES
from tests.kernels.test_native_border import LAYOUTS, Recorder, copied, malformed
from tests.seeds import SEED

CALLS_OF_ARGUMENTS = 40
"""Random calls of one set of valid arguments."""
EXPECTED = (TypeError, ValueError, MemoryError)
MOST_MEMORY = 8 * 2**30
HUGE = (2**26, 2**31 - 1, 2**31, 2**40, 2**61)
ODD_TYPES = ("c16", "?", "f2", "S3", "U2", "O", "M8[s]", "V5", ">f8", ">i8", "u1", "i8", "f8", "i4")
ODD_FLOATS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e19, -1e19, 5e-324, -0.0, -1.0, 2.0**53)
ODD_SCALARS = (
    0,
    -1,
    2**31,
    2**63 - 1,
    -(2**63),
    2**70,
    0.5,
    np.nan,
    np.inf,
    -np.inf,
    None,
    "x",
    b"x",
    True,
    [],
)

Change = Callable[[np.random.Generator, list[Any]], None]


def _arrays(args: Sequence[Any]) -> list[int]:
    return [i for i, arg in enumerate(args) if isinstance(arg, np.ndarray)]


def _some_array(rng: np.random.Generator, args: Sequence[Any]) -> int:
    return int(rng.choice(_arrays(args)))


def malform(rng: np.random.Generator, args: list[Any]) -> None:
    """Another shape, type, layout or integer of an argument."""
    i = int(rng.integers(len(args)))
    args[i] = malformed(rng, args[i])


def set_scalar(rng: np.random.Generator, args: list[Any]) -> None:
    """An odd number, or something else, instead of a number or an array."""
    scalars = [i for i, arg in enumerate(args) if not isinstance(arg, np.ndarray)]
    where = scalars if scalars and rng.random() < 0.8 else range(len(args))
    args[int(rng.choice(where))] = ODD_SCALARS[rng.integers(len(ODD_SCALARS))]


def set_numbers(rng: np.random.Generator, args: list[Any]) -> None:
    """NaN, infinite and very large numbers, also in several cells."""
    floats = [i for i in _arrays(args) if args[i].dtype.kind == "f" and args[i].size]
    for i in floats[: int(rng.integers(1, 4))]:
        array = args[i].copy()
        cells = rng.integers(array.size, size=int(rng.integers(1, 6)))
        array.flat[cells] = rng.choice(ODD_FLOATS, len(cells)).astype(array.dtype)
        args[i] = array


def set_integers(rng: np.random.Generator, args: list[Any]) -> None:
    """Integers at the ends of their type, also all of them."""
    integers = [i for i in _arrays(args) if args[i].dtype.kind in "iu" and args[i].size]
    if not integers:
        return
    i = int(rng.choice(integers))
    ends, array = np.iinfo(args[i].dtype), args[i].copy()
    value = (ends.min, ends.max, ends.max - 1, 0, 1, array.max() + (array.max() < ends.max))[rng.integers(6)]
    if rng.random() < 0.2:
        array[...] = value
    else:
        array.flat[rng.integers(array.size)] = value
    args[i] = array


def set_type(rng: np.random.Generator, args: list[Any]) -> None:
    """The same bytes, or as many items, of another type."""
    i, kind = _some_array(rng, args), np.dtype(ODD_TYPES[rng.integers(len(ODD_TYPES))])
    args[i] = np.zeros(args[i].shape, kind)


def set_layout(rng: np.random.Generator, args: list[Any]) -> None:
    """Another memory layout; strides that are no multiple of the items' size, too."""
    i = _some_array(rng, args)
    if not args[i].size or args[i].dtype.kind not in "iuf":
        return
    if rng.random() < 0.3 and args[i].ndim:
        packed = np.zeros(args[i].shape, dtype=[("value", args[i].dtype), ("between", "u1")])
        packed["value"] = args[i]
        args[i] = packed["value"]
        return
    args[i] = LAYOUTS[rng.integers(len(LAYOUTS))](args[i])


def share_memory(rng: np.random.Generator, args: list[Any]) -> None:
    """Two arguments in the same memory: one is a view of the other's bytes, or of both together, at some distance."""
    where = [i for i in _arrays(args) if args[i].size and args[i].dtype.kind in "iuf"]
    if len(where) < 2:
        return
    i, j = (int(number) for number in rng.choice(where, 2, replace=False))
    distance = int(rng.integers(0, 3)) * 8
    memory = np.zeros(distance + max(args[i].nbytes, args[j].nbytes) + 8, dtype=np.uint8)
    for number, start in ((j, distance), (i, 0)):
        array = args[number]
        view = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        view[...] = array
        args[number] = view


def resize(rng: np.random.Generator, args: list[Any], sizes: Sequence[int] = (0, 1, 2, 3, 7, 70)) -> None:
    """Another size of every axis of one size, in all arguments."""
    every = sorted({size for i in _arrays(args) for size in args[i].shape})
    if not every:
        return
    old, new = int(rng.choice(every)), int(rng.choice(sizes))
    for i in _arrays(args):
        shape = tuple(new if size == old else size for size in args[i].shape)
        if shape != args[i].shape and not _is_full_and_large(shape):
            same = tuple(
                slice(0, min(size, before)) for size, before in zip(shape, args[i].shape, strict=True)
            )
            array = np.zeros(shape, args[i].dtype)
            array[same] = args[i][same]
            args[i] = array


def _is_full_and_large(shape: tuple[int, ...]) -> bool:
    product = 1
    for size in shape:
        product *= max(size, 1)
    return product >= 2**59 if 0 in shape else product > 2**20


def set_huge(rng: np.random.Generator, args: list[Any]) -> None:
    """An axis without items, and another one of a size of which no array could be full."""
    resize(rng, args, (0,))
    resize(rng, args, HUGE)


CHANGES: tuple[Change, ...] = (
    *(malform, malform, set_scalar, set_numbers, set_integers, set_integers),
    *(set_type, set_layout, share_memory, share_memory, resize, set_huge),
)


def is_sanitized() -> bool:
    """Whether the address sanitizer is loaded, which ends the process if memory cannot be allocated."""
    return "asan" in os.environ.get("LD_PRELOAD", "")


def changes() -> tuple[Change, ...]:
    return tuple(change for change in CHANGES if not (change is set_huge and is_sanitized()))


def valid_calls(rng: np.random.Generator) -> list[tuple[str, tuple[Any, ...]]]:
    """The calls of the extension that a kernel makes for some valid arguments."""
    name = tuple(CASES)[rng.integers(len(CASES))]
    sizes = int(rng.integers(0, 40)), int(rng.integers(1, 12)), int(rng.integers(1, 20))
    every = list(CASES[name].make(rng, *sizes))
    recorder = Recorder()
    for number in rng.permutation(len(every))[:2]:
        CASES[name].kernel.native(recorder, *copied(every[number]))
    return recorder.calls


def random_calls(number: int) -> Iterator[tuple[str, list[Any]]]:
    """Changed calls, all from the seed with this number."""
    rng, every = np.random.default_rng([SEED, number]), changes()
    calls = valid_calls(rng)
    for _ in range(CALLS_OF_ARGUMENTS if calls else 0):
        function, valid = calls[rng.integers(len(calls))]
        args = list(copied(valid))
        for _ in range(int(rng.integers(1, 4))):
            _changed(every[rng.integers(len(every))], rng, args)
        yield function, args


def _changed(change: Change, rng: np.random.Generator, args: list[Any]) -> None:
    """Apply a change, if NumPy can make it of what was changed before."""
    with np.errstate(all="ignore"), contextlib.suppress(ValueError, TypeError, IndexError, MemoryError):
        if _arrays(args) and not any(size > 2**20 for i in _arrays(args) for size in args[i].shape):
            change(rng, args)


def outcomes(numbers: Iterator[int], least: int) -> Counter[str]:
    """How at least so many calls ended."""
    counts: Counter[str] = Counter()
    for number in numbers:
        if counts.total() >= least:
            break
        print(number, end="\r", file=sys.stderr, flush=True)  # the last one is that of a process that dies
        for function, args in random_calls(number):
            try:
                getattr(native_kernels.module, function)(*args)
                counts["result"] += 1
            except EXPECTED as error:
                counts[type(error).__name__] += 1
    return counts


def limit_memory() -> None:
    """Let allocations beyond a limit fail, instead of taking all memory of the machine."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first seed")
    given = parser.parse_args(arguments)
    if not is_sanitized():
        limit_memory()
    counts = outcomes(iter(range(given.first, sys.maxsize)), given.calls)
    print(f"\n{counts.total()} random calls: {dict(counts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

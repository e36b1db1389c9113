"""Encoded rows between passes: in memory up to a budget, beyond it in a temporary file that has no name."""

from __future__ import annotations

import errno
import os
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.read import ENVIRONMENT_VARIABLE, memory_budget

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a full disk, a used quota and a file that is too large for its file system."""
GAP_ROWS = 64
"""Chosen rows that lie closer together than this are read in one go."""


class _File:
    """A temporary file without a name, or on Windows one that is deleted when it is closed."""

    def __init__(self, folder: str | None) -> None:
        self.folder = folder or tempfile.gettempdir()
        self._file = tempfile.TemporaryFile(dir=self.folder, prefix="calibayes-", buffering=0)  # noqa: SIM115
        self._lock, self.size = Lock(), 0
        weakref.finalize(self, self._file.close)  # once no array needs it any more

    def reserve(self, size: int) -> int:
        """The place of a new region of ``size`` bytes. Raises OSError if the disk is full."""
        start = self.size
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file.fileno(), start, max(size, 1))
        except OSError as error:
            if error.errno in FULL:  # other errors: the file system cannot reserve space
                raise self._full(size) from error
        self.size += size
        return start

    def _full(self, size: int) -> OSError:
        return OSError(
            f"{size} bytes for encoded rows do not fit into {self.folder}: free some space, choose another folder by the "
            f"environment variable TMPDIR, or keep more in memory by {ENVIRONMENT_VARIABLE}"
        )

    def read(self, start: int, size: int) -> bytearray:
        """The bytes from a place on."""
        content = bytearray(size)
        view, done = memoryview(content), 0
        while done < size:
            count = self._read_into(view[done:], start + done)
            if count == 0:
                raise OSError(f"the temporary file in {self.folder} has lost its end")
            done += count
        return content

    def write(self, start: int, content: memoryview) -> None:
        """Store bytes at a place. Raises OSError if the disk is full."""
        done = 0
        try:
            while done < len(content):
                done += self._write_from(content[done:], start + done)
        except OSError as error:
            if error.errno in FULL:
                raise self._full(len(content)) from error
            raise OSError(f"encoded rows cannot be written into {self.folder}: {error}") from error

    def _read_into(self, view: memoryview, place: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [view], place)
        with self._lock:
            self._file.seek(place)
            return self._file.readinto(view) or 0

    def _write_from(self, view: memoryview, place: int) -> int:
        if hasattr(os, "pwrite"):
            return os.pwrite(self._file.fileno(), view, place)
        with self._lock:
            self._file.seek(place)
            return self._file.write(view) or 0


@dataclass(frozen=True, eq=False)
class OnDisk:
    """Rows in a region of a temporary file."""

    file: _File
    start: int
    """Place of the first byte."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Array:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step > 0:
                return self._rows(start, stop)[::step]
            rows = np.arange(start, stop, step)
        if np.ndim(rows) == 0:
            place = range(len(self))[rows]
            return self._rows(place, place + 1)[0]
        return self._chosen(np.asarray(rows))

    def _rows(self, start: int, stop: int) -> Array:
        count = max(stop - start, 0)
        content = self.file.read(self.start + start * self._row_bytes, count * self._row_bytes)
        return np.frombuffer(content, dtype=self.dtype).reshape(count, *self.shape[1:])

    def _chosen(self, rows: Array) -> Array:
        """Rows at any positions (or where booleans are true), read in runs of close ones, in ascending order."""
        is_mask = rows.dtype == np.bool_
        places = np.flatnonzero(rows) if is_mask else np.where(rows < 0, rows + len(self), rows)
        if len(places) and not (places.min() >= 0 and places.max() < len(self)):
            raise IndexError(f"rows from {places.min()} to {places.max()} of an array of {len(self)} rows")
        result = np.empty((len(places), *self.shape[1:]), dtype=self.dtype)
        order = np.argsort(places, kind="stable")
        runs = np.flatnonzero(np.diff(places[order], prepend=-GAP_ROWS - 1) > GAP_ROWS)
        for positions in np.split(order, runs[1:]) if len(places) else ():
            first, last = places[positions[0]], places[positions[-1]]
            result[positions] = self._rows(int(first), int(last) + 1)[places[positions] - first]
        return result

    def __setitem__(self, rows: slice, values: Array) -> None:
        """Store consecutive rows; threads may store different ones at a time."""
        start, stop, _ = rows.indices(len(self))
        cells = np.ascontiguousarray(values, dtype=self.dtype)
        if cells.shape != (stop - start, *self.shape[1:]):
            raise ValueError(f"rows of shape {cells.shape} from {start} on in an array of shape {self.shape}")
        if cells.size:
            content = memoryview(cells.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
            self.file.write(self.start + start * self._row_bytes, content)

    @property
    def _row_bytes(self) -> int:
        return prod(self.shape[1:]) * self.dtype.itemsize


KeptArray: TypeAlias = Array | OnDisk


class KeptArrays:
    """Arrays of encoded rows, kept as long as they are used.

    The first ones are in memory, up to a budget of bytes; the others are regions of one temporary file, which is not
    mapped into memory and is gone when the process ends, in whatever way.

    Parameters
    ----------
    budget : int, optional
        By default `memory_budget`.
    folder : str, optional
        By default that of the `tempfile` module: the environment variable TMPDIR, else /tmp.

    Examples
    --------
    >>> array = KeptArrays(budget=0).allocate((3, 2), np.uint8)
    >>> array[1:3] = np.array([[1, 2], [3, 4]])
    >>> array[1:].tolist(), array[np.array([2, 1])].tolist()
    ([[1, 2], [3, 4]], [[3, 4], [1, 2]])
    """

    def __init__(self, budget: int | None = None, folder: str | None = None) -> None:
        self._left = memory_budget() if budget is None else budget
        self._folder = folder
        self._file: _File | None = None

    def allocate(self, shape: Sequence[int], dtype: Any) -> KeptArray:
        """An array of zeros. Raises OSError if it neither fits into the budget nor on the disk."""
        kind = np.dtype(dtype)
        size = prod(shape) * kind.itemsize
        if size <= self._left:
            self._left -= size
            return np.zeros(tuple(shape), dtype=kind)
        if self._file is None:
            self._file = _File(self._folder)
        return OnDisk(self._file, self._file.reserve(size), tuple(shape), kind)

"""File operations that fail by number: opening, reading, writing, renaming and deleting files in one folder."""

from __future__ import annotations

import _pyio
import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import Any

ERRORS = {
    "open": errno.EACCES,
    "read": errno.EIO,
    "write": errno.ENOSPC,
    "replace": errno.EACCES,
    "unlink": errno.EACCES,
}
"""The functions of `os` that fail, with the error that each raises."""


class Interrupted(BaseException):
    """The process is ended between two operations; no code may catch this."""


class FileOperations:
    """Counts the operations of this thread on files in a folder; number ``fails_at`` fails.

    Other files, and other threads such as those of a Dask cluster, may get the number of a file that was closed here.
    """

    def __init__(self, folder: Path, fails_at: int, *, interrupts: bool) -> None:
        self.thread = get_ident()
        self.folder, self.fails_at, self.interrupts = str(folder), fails_at, interrupts
        self.count, self.failed, self.files = 0, "", set[int]()

    def wrapped(self, name: str) -> Callable[..., Any]:
        """The function of `os` of this name, which counts and may fail."""
        function = getattr(os, name)

        def call(first: Any, *rest: Any, **options: Any) -> Any:
            if get_ident() != self.thread or not self._is_ours(first):
                return function(first, *rest, **options)
            self.count += 1
            if self.count == self.fails_at:
                self._fail(name, function, first, rest)
            result = function(first, *rest, **options)
            if name == "open":
                self.files.add(result)
            return result

        return call

    def closing(self, close: Callable[[int], None]) -> Callable[[int], None]:
        """`os.close`, after which the number of the file may be that of another one."""

        def call(number: int) -> None:
            if get_ident() == self.thread:
                self.files.discard(number)
            close(number)

        return call

    def _is_ours(self, first: Any) -> bool:
        """Whether it is a file of the folder. A folder itself is opened after a file is in place, and may fail to."""
        if isinstance(first, int):
            return first in self.files
        return os.fspath(first).startswith(self.folder) and not os.path.isdir(first)

    def _fail(self, name: str, function: Callable[..., Any], first: Any, rest: tuple[Any, ...]) -> None:
        """Raise an error; a failed write has written half of its bytes."""
        self.failed = name
        if name == "write":
            function(first, rest[0][: len(rest[0]) // 2])
        if self.interrupts:
            raise Interrupted
        raise OSError(ERRORS[name], f"{name} number {self.count} failed")


@contextmanager
def failing(folder: Path, fails_at: int, *, interrupts: bool) -> Iterator[FileOperations]:
    """Context in which an operation fails. Files are opened by Python's own implementation, which calls `os`."""
    operations = FileOperations(folder, fails_at, interrupts=interrupts)
    replaced = [(os, name, operations.wrapped(name)) for name in ERRORS]
    replaced += [
        (builtins, "open", _pyio.open),
        (io, "open", _pyio.open),
        (os, "close", operations.closing(os.close)),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in replaced]
    try:
        for module, name, function in replaced:
            setattr(module, name, function)
        yield operations
    finally:
        for module, name, function in before:
            setattr(module, name, function)

"""Files that are replaced as a whole: whoever reads one sees the old content or the new one, never a part."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO
from uuid import uuid4

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock

FULL = {errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC)}
"""Errors of writing, which Python raises without the name of the file."""


@contextmanager
def replaced_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file that takes the place of ``path`` when the block ends without an error.

    It is written beside the target, flushed to the disk and renamed. After an error the old file is as it was, and the
    new one is removed. If the process is killed it stays, as ``.NUMBER-NUMBER.part``, until the next file for the same
    ``path`` is written (on systems with file locks, so not on Windows). Permissions are those that the process gives to new files. If ``path`` is a symbolic link, the file
    that it points to is replaced.

    Raises FileNotFoundError if its folder does not exist, and FileExistsError if it is there and no regular file.
    """
    target = _target(os.fsdecode(path))
    start = f".{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}-"
    _remove_left_parts(target.parent, start)
    with _naming(target, start), ExitStack() as closing:
        part, descriptor = _new_part(target.parent, start)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if sys.platform != "win32":
                    closing.callback(os.close, os.dup(descriptor))  # locked until the file has its name
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, target)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise
    _flush_folder(target.parent)


@contextmanager
def _naming(target: Path, start: str) -> Iterator[None]:
    """Let errors of the part, which nobody knows, and of a full disk name the file that was to be written."""
    try:
        yield
    except OSError as error:
        is_of_part = os.fsdecode(error.filename or "").startswith(str(target.with_name(start)))
        if is_of_part or (error.filename is None and error.errno in FULL):
            raise OSError(error.errno, error.strerror, str(target)) from error
        raise


def _remove_left_parts(folder: Path, start: str) -> None:
    """Remove what processes that were killed have left: files of this start of a name that no process has locked."""
    if sys.platform == "win32":
        return
    left = []
    with suppress(OSError), os.scandir(folder) as entries:  # a folder may be writable and not readable
        left = [entry.path for entry in entries if entry.name.startswith(start)]
    for path in left:
        with suppress(OSError):  # BlockingIOError if it is locked
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                flock(descriptor, LOCK_EX | LOCK_NB)
                os.unlink(path)
            finally:
                os.close(descriptor)


def _new_part(folder: Path, start: str) -> tuple[Path, int]:
    """A new file, locked where the system has locks, and open for writing; another process may remove it before it is locked."""
    while True:
        part = folder / f"{start}{uuid4().hex}.part"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with suppress(OSError):
            if sys.platform != "win32":
                flock(descriptor, LOCK_EX)
        if part.exists():
            return part, descriptor
        os.close(descriptor)


def require_replaceable(path: str | os.PathLike[str]) -> None:
    """Raises OSError if `replaced_file` cannot write there; a nameless file is made beside it."""
    with TemporaryFile(dir=_target(os.fsdecode(path)).parent):
        pass


def _target(path: str) -> Path:
    """The file to replace."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(target.parent))
    is_folder = not path or path.endswith(os.sep) or target.is_dir()
    if is_folder or (target.exists() and not target.is_file()):
        raise FileExistsError(errno.EEXIST, "not the name of a file that can be replaced", path)
    return target


def _flush_folder(folder: Path) -> None:
    """Write the new name to the disk, where the system allows to open a folder."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

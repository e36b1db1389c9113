"""Files that are replaced as a whole: whoever reads one sees the old content or the new one, never a part."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO
from uuid import uuid4


@contextmanager
def replaced_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file that takes the place of ``path`` when the block ends without an error.

    It is written beside the target, flushed to the disk and renamed. After an error the old file is as it was, and the
    new one is removed; after a crash of the process it stays, as ``.NUMBER.part``. Permissions are those that the process
    gives to new files. If ``path`` is a symbolic link, the file that it points to is replaced.

    Raises FileNotFoundError if its folder does not exist, and FileExistsError if it is there and no regular file.
    """
    target = _target(os.fsdecode(path))
    part = target.with_name(f".{uuid4().hex}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    _flush_folder(target.parent)


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

"""The unit of computation: a task with a result that is cached under a key."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import joblib

import calibayes
from calibayes.datasets import find_file
from calibayes.datasets.bundled import BUNDLED
from calibayes.datasets.download import file_checksum
from calibayes.datasets.loading import cache_folder
from calibayes.datasets.openml import cached_file

WITHOUT_EFFECT = ("cli", "compare", "plots", "ranks.py", "testing")
"""Parts of the package that do not affect results; in ``experiments`` only ``procedures`` affects them."""


class Task(Protocol):
    """A computation; a frozen dataclass, so that equal tasks of several tables are computed once."""

    def inputs(self) -> tuple[str, ...]:
        """Names of the data sets, or of files in the data folder, that the task reads."""

    def run(self) -> dict[str, Any]:
        """The result, in types that JSON can represent."""


def task_key(task: Task) -> str:
    """Key of the cached result: a hash of the task, the data it reads and the code that computes."""
    data = tuple(_checksum(_file(name)) for name in task.inputs())
    return str(joblib.hash((type(task).__name__, task, data, code_checksum()), hash_name="sha1"))


def _file(name: str) -> Path | None:
    """The file of a data set; None for those in the package."""
    in_folder = find_file(name) or find_file(name, ending="")
    return in_folder if in_folder is not None or name in BUNDLED else cached_file(name, cache_folder())


def _checksum(path: Path | None) -> str:
    return "bundled" if path is None else _checksum_of(path, path.stat().st_mtime_ns)


@cache
def _checksum_of(path: Path, modified: int) -> str:
    """Cached by the time of modification, so that each file is read once."""
    return file_checksum(path)


@cache
def code_checksum() -> str:
    """Checksum of the source code that results depend on."""
    root = Path(calibayes.__file__).parent
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
    checksum = hashlib.sha256()
    for name in names:
        top, _, below = name.partition("/")
        if top in WITHOUT_EFFECT or (top == "experiments" and not below.startswith("procedures/")):
            continue
        checksum.update(name.encode() + (root / name).read_bytes())
    return checksum.hexdigest()

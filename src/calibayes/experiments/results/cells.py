"""The smallest piece of a table that is computed, kept and found again."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import joblib

import calibayes
from calibayes.datasets import find
from calibayes.datasets.download import digest
from calibayes.datasets.loading import cache_folder
from calibayes.datasets.published import cached
from calibayes.datasets.shipped import SHIPPED

NOT_COMPUTING = ("cli", "compare.py", "plots", "ranks.py", "testing")
"""Parts of the package whose changes leave results as they are; so does all of experiments but its protocols."""


class Cell(Protocol):
    """Something to compute; a frozen dataclass, so that equal cells of several tables are computed once."""

    def inputs(self) -> tuple[str, ...]:
        """Names of the data sets it reads, or of files in their folder."""

    def run(self) -> dict[str, Any]:
        """The result, as JSON has it."""


def key(cell: Cell) -> str:
    """The name under which a result is kept: it changes with the cell, with the data and with the code."""
    data = tuple(_sum(_file(name)) for name in cell.inputs())
    return str(joblib.hash((type(cell).__name__, cell, data, fingerprint()), hash_name="sha1"))


def _file(name: str) -> Path | None:
    """The file that a data set is read from; None for those that ship."""
    in_folder = find(name) or find(name, ending="")
    return in_folder if in_folder is not None or name in SHIPPED else cached(name, cache_folder())


def _sum(path: Path | None) -> str:
    return "shipped" if path is None else _sum_of(path, path.stat().st_mtime_ns)


@cache
def _sum_of(path: Path, changed: int) -> str:
    return digest(path)


@cache
def fingerprint() -> str:
    """Sum of the code that results depend on."""
    root = Path(calibayes.__file__).parent
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
    together = hashlib.sha256()
    for name in names:
        top, _, below = name.partition("/")
        if top in NOT_COMPUTING or (top == "experiments" and not below.startswith("protocols/")):
            continue
        together.update(name.encode() + (root / name).read_bytes())
    return together.hexdigest()

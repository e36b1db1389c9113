"""MissingIsValue the outside how far learning has come."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from calibayes.learn.history import Entry


class Progress(NamedTuple):
    """What a callback is given after each accepted state."""

    update: int
    limit: int
    entry: Entry


Callback: TypeAlias = Callable[[Progress], bool | None]
"""Called with the progress; a true answer stops learning."""


@dataclass(frozen=True)
class PrintProgress:
    """One line for each state on the standard error stream."""

    name: str

    def __call__(self, progress: Progress) -> None:
        entry = progress.entry
        print(
            f"[{self.name}] update {progress.update}/{progress.limit}  error {entry.error:.4f}  "
            f"soft error {entry.soft_error:.4f}  log loss {entry.log_loss:.4f}  step {entry.step:.3g}  "
            f"frozen {entry.frozen}  {entry.seconds:.2f} s",
            file=sys.stderr,
            flush=True,
        )

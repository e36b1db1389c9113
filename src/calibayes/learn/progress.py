"""What callbacks receive after each update."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from calibayes.learn.run import Entry


class Progress(NamedTuple):
    """Passed to a callback after each accepted state."""

    update: int
    limit: int
    entry: Entry


Callback: TypeAlias = Callable[[Progress], bool | None]
"""Called with the progress; a true result stops training."""

"""Which columns have too many distinct numbers, as far as a process has seen."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.summaries import column

_seen: dict[str, dict[int, Array | None]] = {}
"""Key of a survey -> position of a column -> its distinct numbers so far, None if they are too many."""
MOST_SURVEYS = 8
"""Surveys that are remembered in a process."""


def _new_key() -> str:
    return f"{np.random.SeedSequence().entropy:x}"


@dataclass(frozen=True)
class SeenNumbers:
    """The distinct numbers of the blocks that a process has counted in one survey of a table.

    It makes counting faster, and changes no count: as soon as the blocks of this process show that a column has too many
    distinct numbers, those of further blocks need not be found.
    """

    key: str = field(default_factory=_new_key)

    def exceeds(self, j: int) -> bool:
        """Whether column j is known to have too many distinct numbers."""
        return j in self._columns() and self._columns()[j] is None

    def add(self, j: int, numbers: Array | None) -> None:
        """Add the distinct numbers of a block; None if they are too many."""
        before = self._columns().get(j, np.zeros(0))
        if before is None or numbers is None:
            self._columns()[j] = None
        elif len(before) + len(numbers) > column.MOST_DISTINCT:
            together = np.union1d(before, numbers)
            self._columns()[j] = together if len(together) <= column.MOST_DISTINCT else None
        elif len(numbers) > len(before):
            self._columns()[j] = numbers

    def _columns(self) -> dict[int, Array | None]:
        if self.key not in _seen:
            while len(_seen) >= MOST_SURVEYS:
                _seen.pop(next(iter(_seen)))
        return _seen.setdefault(self.key, {})

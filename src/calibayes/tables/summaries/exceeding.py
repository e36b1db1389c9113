"""Which columns have too many distinct numbers, as far as a process has seen."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.levels.distinct_sample import DistinctSample, distinct_sample
from calibayes.tables.summaries import column

_seen: dict[str, dict[int, Array | int]] = {}
"""Key of a survey -> position of a column -> its distinct numbers so far; if they are too many, the most zeros with which
the hashes of a sample of them begin."""
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
        return isinstance(self._columns().get(j), int)

    def add(self, j: int, numbers: Array | None) -> None:
        """Add the distinct numbers of a block; None if they are too many."""
        before = self._columns().get(j, np.zeros(0))
        if isinstance(before, int):
            return
        if numbers is None:
            self._columns()[j] = 0
        elif len(before) + len(numbers) > column.MOST_DISTINCT:
            together = np.union1d(before, numbers)
            self._columns()[j] = together if len(together) <= column.MOST_DISTINCT else 0
        elif len(numbers) > len(before):
            self._columns()[j] = numbers

    def sample(self, j: int, numbers: Array) -> DistinctSample:
        """A sample of the distinct numbers of a block of column j, which has too many of them.

        Hashes begin with at least as many zeros as those of earlier blocks: a sample of all rows needs no fewer.
        """
        before = self._columns().get(j)
        zeros = before if isinstance(before, int) else 0
        sampled = distinct_sample(numbers, column.MOST_SAMPLED, zeros)
        self._columns()[j] = max(zeros, sampled.zeros)
        return sampled

    def _columns(self) -> dict[int, Array | int]:
        if self.key not in _seen:
            while len(_seen) >= MOST_SURVEYS:
                _seen.pop(next(iter(_seen)))
        return _seen.setdefault(self.key, {})

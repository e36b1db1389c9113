"""Several blocks at a time, in threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from calibayes.core.block import Block
from calibayes.core.protocols import Source
from calibayes.core.tree import total
from calibayes.engines.blas import one_thread
from calibayes.kernels.threads import each, in_turn, jobs


@dataclass(frozen=True)
class Threads:
    """``jobs`` threads; the sums are added in the order of the rows, so their number leaves no trace."""

    jobs: int = 2

    def total(self, function: Callable[[Block], Mapping[str, Any]], source: Source) -> Any:
        with one_thread(), jobs(self.jobs):
            return total(in_turn(lambda load: function(load()), source.parts()))

    def each(self, function: Callable[[Block], Any], source: Source) -> list[Any]:
        """What a function says of each block, in the order of the rows. One block has all threads to itself."""
        with one_thread(), jobs(self.jobs):
            return each(lambda load: function(load()), source.parts())

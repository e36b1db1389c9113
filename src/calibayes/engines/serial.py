"""One block after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from calibayes.core.block import Block
from calibayes.core.protocols import Source
from calibayes.core.tree import total
from calibayes.engines.blas import one_thread


@dataclass(frozen=True)
class Serial:
    """Everything in the calling thread."""

    def total(self, function: Callable[[Block], Mapping[str, Any]], source: Source) -> Any:
        with one_thread():
            return total(function(load()) for load in source.parts())

    def each(self, function: Callable[[Block], Any], source: Source) -> list[Any]:
        """What a function says of each block, in the order of the rows."""
        with one_thread():
            return [function(load()) for load in source.parts()]

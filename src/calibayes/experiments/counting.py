"""How often one method does better than another."""

from __future__ import annotations

from collections.abc import Iterable


def better_equal_worse(pairs: Iterable[tuple[float, float]]) -> tuple[int, int, int]:
    """How often the first of two errors is lower, equal, higher.

    >>> better_equal_worse([(0.1, 0.2), (0.3, 0.3)])
    (1, 1, 0)
    """
    signs = [(a > b) - (a < b) for a, b in pairs]
    return signs.count(-1), signs.count(0), signs.count(1)

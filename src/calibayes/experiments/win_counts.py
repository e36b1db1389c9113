"""Count how often one method is better than another."""

from __future__ import annotations

from collections.abc import Iterable


def count_better_equal_worse(pairs: Iterable[tuple[float, float]]) -> tuple[int, int, int]:
    """Number of pairs of errors whose first is lower than, equal to, higher than the second.

    >>> count_better_equal_worse([(0.1, 0.2), (0.3, 0.3)])
    (1, 1, 0)
    """
    signs = [(a > b) - (a < b) for a, b in pairs]
    return signs.count(-1), signs.count(0), signs.count(1)

"""Words for the messages of checks."""

from __future__ import annotations

from collections.abc import Sequence

from calibayes.tables.text import listed


def quoted(names: Sequence[str], most: int = 5) -> str:
    """Names in quotation marks, at most so many; then how many more there are.

    >>> quoted(["a", "b", "c"], most=2)
    "'a', 'b', ... and 1 more"
    """
    return listed([repr(name) for name in names], most)


def percent(share: float) -> str:
    """A share in percent, with one decimal below ten.

    >>> percent(0.256), percent(0.0123)
    ('26 %', '1.2 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"

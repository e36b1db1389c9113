"""Formatting of names and numbers in the messages of the checks."""

from __future__ import annotations

from collections.abc import Sequence

from calibayes.tables.text import listed


def quoted(names: Sequence[str], most: int = 5) -> str:
    """Quoted names, at most ``most`` of them, followed by the number of further names.

    >>> quoted(["a", "b", "c"], most=2)
    "'a', 'b', ... and 1 more"
    """
    return listed([repr(name) for name in names], most)


def percent(share: float) -> str:
    """A share in percent, with one decimal below 10 % and above 99 %.

    >>> percent(0.256), percent(0.0123), percent(0.998), percent(1.0)
    ('26 %', '1.2 %', '99.8 %', '100 %')
    """
    digits = 1 if share < 0.0995 or 0.99 < share < 0.9995 else 0
    return f"{100 * share:.{digits}f} %"

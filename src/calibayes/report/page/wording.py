"""Formatting of numbers and names on the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from calibayes.report.page.markup import Markup, element
from calibayes.tables.text import counted

NAME_LENGTH = 60
"""Most characters of a name or value on the page."""
TITLE_LENGTH = 300
"""Most characters of the tooltip of a shortened name."""
HUGE = 1e9
"""Numbers from this one on are written in scientific notation."""
THIN, NOTHING, MINUS = "\u202f", "\u2013", "\u2212"
"""A narrow no-break space, the dash that replaces an unknown number, and the minus sign."""


def count(number: float) -> str:
    """An integer with commas as thousands separators.

    >>> count(207), count(48842)
    ('207', '48,842')
    """
    return f"{int(number):,}"


def counts(number: int, noun: str, plural: str | None = None) -> str:
    """An integer with commas as thousands separators, and its noun."""
    return f"{count(number)} {counted(number, noun, plural).partition(' ')[2]}"


def percent(share: float, digits: int = 1) -> str:
    """A share in percent; a dash for NaN.

    >>> percent(0.1234), percent(float("nan"))
    ('12.3\\u202f%', '\u2013')
    """
    return NOTHING if math.isnan(share) else f"{100 * share:.{digits}f}{THIN}%"


def number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits; large numbers are rounded to integers.

    >>> number(0.30861), number(12345.6), number(2.0), number(1.5e-9)
    ('0.309', '12,346', '2', '1.5e-09')
    """
    if not math.isfinite(value):
        return _not_finite(value)
    if 10**digits <= abs(value) < HUGE:
        return count(round(value))
    return f"{value:.{digits}g}"


def fixed(value: float, digits: int) -> str:
    """A number with so many decimals, for columns of numbers; scientific notation if it is huge, a dash for NaN.

    >>> fixed(0.25, 3), fixed(2.5e12, 3)
    ('0.250', '2.5e+12')
    """
    if not math.isfinite(value):
        return _not_finite(value)
    return f"{value:.{digits}f}" if abs(value) < HUGE else f"{value:.3g}"


def _not_finite(value: float) -> str:
    return NOTHING if math.isnan(value) else ("∞" if value > 0 else f"{MINUS}∞")


def signed(value: float) -> str:
    """A number with its sign."""
    return f"{value:+.2f}".replace("-", MINUS)


def one_line(text: Any) -> str:
    """A value as one line of text."""
    return str(text).replace("\r\n", "↵").replace("\n", "↵").replace("\r", "↵").replace("\t", " ")


def shortened(text: Any, most: int = NAME_LENGTH) -> str:
    """A name or value, cut to at most so many characters.

    >>> shortened("a" * 20, 5)
    'aaaa…'
    """
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def named(text: Any, most: int = NAME_LENGTH) -> Markup:
    """A name from the table: shortened, and isolated from the text direction around it."""
    line = one_line(text)
    is_cut = len(line) > most
    title = f"{shortened(line, TITLE_LENGTH)} ({counts(len(line), 'character')})" if is_cut else None
    return element("bdi", shortened(line, most) or "(empty)", class_="name", title=title)


def sentence_list(names: Sequence[str]) -> str:
    """Names joined by commas and "and".

    >>> sentence_list(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))

"""What people read: warnings that are collected during a call and given once, notes on the log, tables of plain text."""

from __future__ import annotations

import html
import logging
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

INNER_PACKAGES = ("calibayes", "sklearn", "joblib", "pickle")
"""Packages whose frames are skipped: a warning is attributed to the first line outside of them."""

_collected: ContextVar[Counter[tuple[str | Warning, type[Warning]]] | None] = ContextVar(
    "collected", default=None
)


@cache
def note_once(message: str) -> None:
    """Write a message to the log "calibayes", at the first call with it in this process.

    It reaches the standard error stream unless logging is configured otherwise. For facts about the installation, which
    must be seen and yet must not fail where warnings are errors.
    """
    logging.getLogger("calibayes").warning(message)


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Give a warning, or note it for the end of the call that collects warnings. A warning object has its own category."""
    collected = _collected.get()
    if collected is None:
        _emit(message, category)
    else:
        collected[message, category] += 1


@contextmanager
def collected_warnings() -> Iterator[None]:
    """Inside, warnings are noted; at the end each is given once, with how often it occurred.

    The outermost of nested collections gives them. If the call fails, only its exception is seen.
    """
    if _collected.get() is not None:
        yield
        return
    collected: Counter[tuple[str | Warning, type[Warning]]] = Counter()
    token = _collected.set(collected)
    try:
        yield
    finally:
        _collected.reset(token)
    for (message, category), times in collected.items():
        _emit(f"{message} ({times} times)" if times > 1 else message, category)


def is_collecting() -> bool:
    """Whether warnings are being collected: this code is run inside another call of the library."""
    return _collected.get() is not None


@contextmanager
def discarded_warnings() -> Iterator[None]:
    """Inside, warnings of this package are not given: for trainings that repeat one whose warnings were given."""
    token = _collected.set(Counter())
    try:
        yield
    finally:
        _collected.reset(token)


def _emit(message: str | Warning, category: type[Warning]) -> None:
    warnings.warn(message, category, stacklevel=_levels_to_caller())


def _levels_to_caller() -> int:
    """The stacklevel, counted from `_emit`, of the first frame outside of the inner packages."""
    frame, level = sys._getframe(2), 2
    while frame.f_back is not None and _is_inner(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    return level


def _is_inner(module: str) -> bool:
    return module.partition(".")[0] in INNER_PACKAGES or module == "contextlib"


# -- Plain text for people: tables with aligned columns, and counts with their noun ---------------------------


class PlainText(str):
    """Text of several lines that is displayed as it is: by `print`, at Python's prompt and in notebooks.

    >>> PlainText("name  kind\\nage   numeric")
    name  kind
    age   numeric
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self)}</pre>"


def text_table(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as text with left-aligned columns, two spaces apart; all lines have the same number of cells.

    >>> print(text_table([("name", "kind"), ("age", "numeric"), ("town", "categorical")]))
    name  kind
    age   numeric
    town  categorical
    """
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def shortened(lines: Sequence[Sequence[str]], most: int = 20) -> str:
    """A `text_table` with a header and at most so many further lines; then how many more there are."""
    more = len(lines) - 1 - most
    return text_table(lines[: most + 1]) + (f"\n... and {more} more" if more > 0 else "")


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names with commas, at most so many; then how many more there are.

    >>> listed(["a", "b", "c"], most=2)
    'a, b, ... and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f", ... and {more} more" if more > 0 else "")


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun, in the plural (by default with an s) unless the number is 1.

    >>> counted(1, "level"), counted(3, "level"), counted(3, "class", "classes")
    ('1 level', '3 levels', '3 classes')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"

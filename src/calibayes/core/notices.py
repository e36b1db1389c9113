"""Warnings that are collected during a call and given once, at the line of the caller's own code; notes on the log."""

from __future__ import annotations

import logging
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
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

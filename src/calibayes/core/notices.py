"""What people read: warnings that are collected during a call and given once, notes on the log, tables of plain text."""

from __future__ import annotations

import html
import logging
import shutil
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeAlias

INNER_PACKAGES = ("calibayes", "sklearn", "joblib", "pickle")
"""Packages whose frames are skipped: a warning is attributed to the first line outside of them."""

Warnings: TypeAlias = Counter[tuple[str | Warning, type[Warning]]]
_collected: ContextVar[Warnings | None] = ContextVar("collected", default=None)


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
    collected: Warnings = Counter()
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


def printable(text: Any) -> str:
    """A name or value of a table on one line, with characters that are not printable escaped as by `repr`.

    Names of columns, levels and classes may come from strangers: escape sequences would change the terminal, line breaks and
    marks of direction what a reader believes to be the text of this package. Everything that is printed passes here.

    >>> print(printable("a\\x1b[31m\\nb"))
    a\\x1b[31m\\nb
    """
    name = str(text)
    return name if name.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def text_table(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as text with left-aligned columns, two spaces apart; all lines have the same number of cells.

    >>> print(text_table([("name", "kind"), ("age", "numeric"), ("town", "categorical")]))
    name  kind
    age   numeric
    town  categorical
    """
    shown = [list(map(printable, line)) for line in lines]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in shown]
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def shortened(lines: Sequence[Sequence[str]], most: int = 20) -> str:
    """A `text_table` with a header and at most so many further lines; then how many more there are."""
    more = len(lines) - 1 - most
    return text_table(lines[: most + 1]) + (f"\n... and {more} more" if more > 0 else "")


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names with commas, at most so many, as `printable` text; then how many more there are.

    >>> listed(["a", "b", "c"], most=2)
    'a, b, ... and 1 more'
    """
    more = len(names) - most
    return ", ".join(map(printable, names[:most])) + (f", ... and {more} more" if more > 0 else "")


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun, in the plural (by default with an s) unless the number is 1.

    >>> counted(1, "level"), counted(3, "level"), counted(3, "class", "classes")
    ('1 level', '3 levels', '3 classes')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


# -- Progress of long work on the standard error stream: a bar on a terminal, lines elsewhere ------------------

BAR_WIDTH = 24
"""Characters of the bar."""
TREES_PER_REPORT = 10


class ProgressReporter:
    """Reports how much of a task is done.

    Parameters
    ----------
    name : str
        Name of the task, usually of the estimator.
    verbose : bool or None
        Whether to report; None reports if the standard error stream is a terminal.
    parts : int
        Number of parts of the task, taken as equally long.
    interval : float
        Least seconds between two reports.
    """

    def __init__(self, name: str, verbose: bool | None, parts: int = 1, interval: float = 0.0) -> None:
        self._name, self._parts, self._interval = name, parts, interval
        self._enabled = sys.stderr.isatty() if verbose is None else bool(verbose)
        self._began = self._last = time.monotonic()
        self._part, self._label, self._has_bar = 0, "", False

    def begin_part(self, part: int, label: str) -> None:
        """Begin a part of the task."""
        self._part, self._label = part, f"{label}, "

    def report(self, text: str, share: float) -> None:
        """Report a message when that share of the current part is done."""
        now = time.monotonic()
        if not self._enabled or now - self._last < self._interval:
            return
        self._last = now
        done = min((self._part + share) / max(self._parts, 1), 1.0)
        self._write(f"{self._label}{text}  {now - self._began:.1f} s", done)

    def count(self, text: str, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` items of the current part are done."""
        self.report(f"{text} {done}/{total}", done / max(total, 1))

    def after_update(self, progress: Any) -> None:
        """A callback for training: one report for each update."""
        entry = progress.entry
        self.report(
            f"update {progress.update}/{progress.limit}  error {entry.error:.4f}  "
            f"soft error {entry.soft_error:.4f}  log loss {entry.log_loss:.4f}  step {entry.step:.3g}  "
            f"frozen {entry.frozen}",
            progress.update / max(progress.limit, 1),
        )

    def after_tree(self, trees: int, loss: float, most: int) -> None:
        """Report every tenth tree of a growth, of ``most`` at most, with the log loss of held-out rows."""
        if trees % TREES_PER_REPORT == 0:
            self.report(f"tree {trees}, log loss {loss:.4f} on held-out rows", trees / most)

    def close(self) -> None:
        """End the line of the bar."""
        if self._has_bar:
            print(file=sys.stderr, flush=True)

    def _write(self, text: str, done: float) -> None:
        if not sys.stderr.isatty():
            print(f"[{self._name}] {text}", file=sys.stderr, flush=True)
            return
        self._has_bar = True
        filled, columns = round(BAR_WIDTH * done), shutil.get_terminal_size().columns
        line = f"[{self._name}] {'#' * filled}{'.' * (BAR_WIDTH - filled)} {100 * done:3.0f} %  {text}"
        print(f"\r{line[: columns - 1].ljust(columns - 1)}", end="", file=sys.stderr, flush=True)

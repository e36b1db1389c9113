"""Progress on the standard error stream, after a second, if it is a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

DELAY = 1.0
"""Seconds after which progress is shown."""
errors = Console(stderr=True)


class Work:
    """What is being done."""

    def __init__(self, progress: Progress, text: str, total: float | None) -> None:
        self._progress, self._task = progress, progress.add_task(text, total=total)

    def update(self, text: str, done: float | None = None) -> None:
        """Show another text, and how much of the total is done."""
        self._progress.update(self._task, description=text, completed=done)


@contextmanager
def working(text: str, total: float | None = None) -> Iterator[Work]:
    """Show what is being done, and how long it has taken, from the first second on."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    bar = (BarColumn(),) if total is not None else ()
    progress = Progress(*columns, *bar, console=errors, transient=True)
    timer = Timer(DELAY, progress.start if errors.is_terminal else _nothing)
    timer.daemon = True
    timer.start()
    try:
        yield Work(progress, text, total)
    finally:
        timer.cancel()
        timer.join()
        if progress.live.is_started:
            progress.stop()


def _nothing() -> None:
    pass

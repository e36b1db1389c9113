"""Progress reports of steps that may take longer than a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from calibayes.estimators.interface.progress import ProgressReporter

Report = Callable[[str, int, int], None]
"""Reports progress: text, number of items done, number of all items."""

SECONDS_BETWEEN_REPORTS = 1.0


@contextmanager
def progress_reports(name: str, verbose: bool | None) -> Iterator[Report]:
    """Inside, progress is reported at most once a second, not within the first one; None: only on a terminal."""
    reporter = ProgressReporter(name, verbose, interval=SECONDS_BETWEEN_REPORTS)
    try:
        yield reporter.count
    finally:
        reporter.close()

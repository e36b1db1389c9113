"""Progress of what takes longer than a second."""

from __future__ import annotations

import sys
import time


class Announcer:
    """Lines on the standard error stream, at most one a second and none within the first.

    Parameters
    ----------
    name : str
        Who speaks.
    verbose : bool or None
        None speaks where a person watches: where the stream is a terminal.
    """

    def __init__(self, name: str, verbose: bool | None) -> None:
        self._name = name
        self._speaks = sys.stderr.isatty() if verbose is None else bool(verbose)
        self._start = self._last = time.monotonic()

    def __call__(self, what: str, done: int, of: int) -> None:
        """Say how far something has come, if it is time to."""
        now = time.monotonic()
        if self._speaks and now - self._last >= 1.0:
            self._last = now
            print(
                f"[{self._name}] {what} {done}/{of}, {now - self._start:.0f} s", file=sys.stderr, flush=True
            )

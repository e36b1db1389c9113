"""How far something has come that has several parts, for a person who watches."""

from __future__ import annotations

import shutil
import sys
import time

WIDTH = 24
"""Of the bar, in characters."""


class Bar:
    """A bar that is drawn over itself on a terminal; elsewhere a line for each step.

    Parameters
    ----------
    name : str
        Who speaks.
    parts : int
        How many parts there are, taken for equally long.
    speaks : bool
    """

    def __init__(self, name: str, parts: int, speaks: bool) -> None:
        self._name, self._parts, self._speaks = name, parts, speaks
        self._began = time.monotonic()
        self._part, self._told = 0, ""

    def enter(self, part: int, what: str) -> None:
        """Begin a part."""
        self._part, self._told = part, what

    def step(self, text: str, share: float) -> None:
        """Say what was found, when that share of the part is done."""
        if self._speaks:
            done = min((self._part + share) / max(self._parts, 1), 1.0)
            self._write(f"{self._told}, {text}  {time.monotonic() - self._began:.1f} s", done)

    def close(self) -> None:
        """Leave the last state of the bar where it is."""
        if self._speaks and sys.stderr.isatty():
            print(file=sys.stderr, flush=True)

    def _write(self, said: str, done: float) -> None:
        if not sys.stderr.isatty():
            print(f"[{self._name}] {said}", file=sys.stderr, flush=True)
            return
        full, columns = round(WIDTH * done), shutil.get_terminal_size().columns
        line = f"[{self._name}] {'#' * full}{'.' * (WIDTH - full)} {100 * done:3.0f} %  {said}"
        print(f"\r{line[: columns - 1].ljust(columns - 1)}", end="", file=sys.stderr, flush=True)

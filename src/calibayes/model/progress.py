"""Progress of long work on the standard error stream: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import shutil
import sys
import time

from calibayes.learn.run import Progress

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

    def after_update(self, progress: Progress) -> None:
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

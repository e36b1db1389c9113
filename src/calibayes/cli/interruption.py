"""Ctrl-C, noted when it arrives: a KeyboardInterrupt alone is lost where a library ignores exceptions, as in a callback."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_interrupted = threading.Event()


@contextmanager
def noting_interruptions() -> Iterator[None]:
    """Note Ctrl-C while the block runs, and raise KeyboardInterrupt as usual. Other handlers of the signal are kept."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    _interrupted.clear()
    signal.signal(signal.SIGINT, _note_and_raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _interrupted.clear()


def raise_noted_interruption() -> None:
    """Raises KeyboardInterrupt if Ctrl-C was pressed since the command began."""
    if _interrupted.is_set():
        raise KeyboardInterrupt


def _note_and_raise(number: int, frame: Any) -> None:
    _interrupted.set()
    signal.default_int_handler(number, frame)

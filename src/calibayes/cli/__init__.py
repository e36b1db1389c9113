"""The command line interface, ``calibayes``. The application is imported when it is needed."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibayes.cli.application import app

__all__ = ["app", "ending_at_once", "main"]


def main() -> None:
    """Run the command. Ctrl-C ends it with the exit code 130, also while modules are imported."""
    with ending_at_once(signal.default_int_handler):
        from calibayes.cli.application import app
    try:
        app()
    except KeyboardInterrupt:  # before the application notes Ctrl-C, or after
        _end()


@contextmanager
def ending_at_once(handler: Any) -> Iterator[None]:
    """Let Ctrl-C end the process while modules are imported, if ``handler`` is what it calls now.

    A KeyboardInterrupt could be ignored by what is imported, or become another error; nothing is written in the meantime.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not handler:
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _end(*_: Any) -> None:
    os.write(2, b"interrupted; no file was changed\n")
    os._exit(130)


if not TYPE_CHECKING:  # otherwise a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name != "app":
            raise AttributeError(f"module 'calibayes.cli' has no attribute {name!r}")
        from calibayes.cli.application import app

        return app

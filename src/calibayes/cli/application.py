"""The group of all commands: what every command does with errors, warnings, interruptions and ``--debug``."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from calibayes.cli.interruption import noting_interruptions
from calibayes.cli.printing import print_error, print_text

DONE, INTERNAL_ERROR, WRONG_USE, INTERRUPTED, CLOSED_OUTPUT = 0, 1, 2, 130, 141
EXIT_CODES = {
    DONE: "done",
    INTERNAL_ERROR: "internal error",
    WRONG_USE: "wrong use or input",
    INTERRUPTED: "interrupted (Ctrl-C)",
    CLOSED_OUTPUT: "the reader of the output closed it",
}
DEBUG_OPTION, DEBUG_VARIABLE = "--debug", "CALIBAYES_DEBUG"
USER_ERRORS = (ValueError, TypeError, OSError, ImportError)
"""Errors whose message says what is wrong with what was given; all others are errors of this program."""
NOT_FOR_USERS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning, ImportWarning)
errors = Console(stderr=True)


class Interruption(Exception):
    """Ctrl-C, or a closed output, of which typer would make an exit without a message."""

    def __init__(self, code: int) -> None:
        super().__init__(EXIT_CODES[code])
        self.code = code


class Commands(TyperGroup):
    """The group of all commands. Errors are one line on the standard error stream; exit codes are in ``EXIT_CODES``."""

    def main(self, args: Sequence[str] | None = None, **options: Any) -> Any:  # type: ignore[override]
        given = list(sys.argv[1:] if args is None else args)
        words = [word for word in given if word != DEBUG_OPTION]
        debug = words != given or os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")
        if not options.pop("standalone_mode", True):
            return super().main(words, standalone_mode=False, **options)
        sys.exit(
            exit_code(lambda: super(Commands, self).main(words, standalone_mode=False, **options), debug)
        )

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interruption(INTERRUPTED) from None
        except BrokenPipeError:
            raise Interruption(CLOSED_OUTPUT) from None


def exit_code(call: Callable[[], Any], debug: bool) -> int:
    """Run a command; print its warnings and errors. Returns the exit code."""
    try:
        with warnings.catch_warnings(), noting_interruptions():
            warnings.simplefilter("always")
            for category in NOT_FOR_USERS:
                warnings.simplefilter("ignore", category)
            warnings.showwarning = _warning_printer()
            result = call()
            sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001, each becomes a message and an exit code
        if debug and not isinstance(error, Interruption) and not _is_of_usage(error):
            traceback.print_exc()
        return _code_of(error)
    return result if isinstance(result, int) else DONE


def _code_of(error: BaseException) -> int:
    """Print an error. Returns its exit code."""
    if isinstance(error, BrokenPipeError) or getattr(error, "code", None) == CLOSED_OUTPUT:
        _discard_output()
        return CLOSED_OUTPUT
    if isinstance(error, KeyboardInterrupt | Interruption | typer.Abort):
        print_text(errors, "interrupted; no file was changed")
        return INTERRUPTED
    if _is_of_usage(error):
        return _code_of_usage(error)
    if isinstance(error, USER_ERRORS):
        print_error(errors, one_line(str(error)))
        return WRONG_USE
    text = f"internal error: {type(error).__name__}: {error}"
    print_error(
        errors, one_line(f"{text}; run the command again with {DEBUG_OPTION} and report what it prints")
    )
    return INTERNAL_ERROR


def _is_of_usage(error: BaseException) -> bool:
    """Whether an error is one of click (which typer may bring along): an unknown option, a missing argument."""
    return hasattr(error, "format_message")


def _code_of_usage(error: Any) -> int:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        print_text(errors, context.get_help())
        return WRONG_USE
    advice = "" if context is None else f"; see {context.command_path} --help"
    print_error(errors, one_line(error.format_message().rstrip(".")) + advice)
    return WRONG_USE


def one_line(text: str) -> str:
    """A message without line breaks."""
    return " ".join(text.split())


def _warning_printer() -> Callable[..., None]:
    """A function that prints a warning, each text once."""
    printed: set[str] = set()

    def show(message: Warning | str, *_: Any) -> None:
        text = one_line(str(message))
        if text not in printed:
            printed.add(text)
            print_text(errors, f"warning: {text}")

    return show


def _discard_output() -> None:
    """Let Python flush what is left of the output to nowhere when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def examples(*lines: str) -> str:
    """The last paragraph of a help text: examples, one per line, and the exit codes."""
    codes = ", ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items())
    shown = "\n".join(f"  {line}" for line in lines)
    return f"\b\nExamples:\n{shown}\n\nExit codes: {codes}."


def note(text: str) -> None:
    """Print a note on the standard error stream."""
    print_text(errors, f"note: {one_line(text)}")

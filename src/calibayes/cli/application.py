"""The application ``calibayes``: what every command does with errors, warnings, interruptions and ``--debug``."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib import import_module
from threading import Timer
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable
from rich.text import Text
from typer import Option
from typer.core import TyperCommand, TyperGroup

from calibayes._version import __version__
from calibayes.cli import ending_at_once
from calibayes.core.notices import printable

# -- Ctrl-C, noted when it arrives: a KeyboardInterrupt alone is lost where a library ignores exceptions, as in a callback

_interrupted = threading.Event()


@contextmanager
def noting_interruptions() -> Iterator[None]:
    """Note Ctrl-C while the block runs, and raise KeyboardInterrupt as usual. Other handlers of the signal are kept.

    An error after Ctrl-C, such as that of an import that was interrupted, is an interruption, too.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    _interrupted.clear()
    signal.signal(signal.SIGINT, _note_and_raise)
    try:
        yield
    except Exception:
        raise_noted_interruption()
        raise
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


# -- Print messages that contain text of files, such as column names, and tables of any width ----------------

console, errors = Console(), Console(stderr=True)
WIDEST = 10_000
"""More characters than any table needs."""


def print_text(text: str, to: Console = console, style: str | None = None) -> None:
    """Print lines of `printable` text; long lines are left to the terminal to wrap."""
    shown = "\n".join(map(printable, text.split("\n")))
    to.print(shown, style=style, markup=False, highlight=False, soft_wrap=True)


def print_error(message: str) -> None:
    """Print an error message."""
    errors.print("error:", style="red", end=" ")
    print_text(message, errors)


def print_json(content: Any) -> None:
    """Print JSON for programs on standard output, in ASCII; numbers that are not finite are null."""
    text = json.dumps(_finite(content), indent=2)
    print(text.replace("\x7f", "\\u007f"))


def _finite(content: Any) -> Any:
    """Content for JSON: NumPy's values as Python's, numbers that are not finite as None."""
    if hasattr(content, "tolist"):
        content = content.tolist()
    if isinstance(content, Mapping):
        return {str(name): _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content if isinstance(content, bool | int | float | str | None) else str(content)


def print_table(table: RichTable, to: Console = console) -> None:
    """Print a table: wrapped in a terminal, else (in a file or pipe) as wide as it needs."""
    if not to.is_terminal:
        needed = Measurement.get(to, to.options.update(width=WIDEST), table).maximum
        to = Console(file=to.file, width=max(to.width, needed))
    to.print(table)


def print_rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; the first column is text, the others are numbers."""
    table = RichTable(box=SIMPLE, padding=(0, 1, 0, 0), show_edge=False)
    for number, head in enumerate(heads):
        table.add_column(Text(printable(head)), justify="right" if number else "left", overflow="fold")
    for name, *numbers in rows:
        table.add_row(Text(printable(name)), *numbers)
    print_table(table)


# -- The group of all commands: what every command does with errors, warnings, interruptions and ``--debug``

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
COMMANDS = {
    "compare": (
        "training",
        "Cross-validate each model with each training rule on the same folds and rank them by held-out log loss.",
    ),
    "fit": ("training", "Train a model on the labeled rows of a table, and save it."),
    "predict": ("predicting", "Predict the class of each row of a table with a saved model."),
    "evaluate": ("predicting", "Compare the predictions of a saved model with the true classes of a table."),
    "explain": (
        "predicting",
        "Print what each column contributes to the predictions: over all rows, or for single rows (--row).",
    ),
    "sample": ("information", "Draw random rows from a saved model of p(x, class), as CSV with a header."),
    "report": (
        "reporting",
        "Write one HTML page about a table: its columns, models ranked by cross-validation, and the best model in detail.",
    ),
    "inspect": (
        "information",
        "Print what a model file contains, from its header: no tensor is read, and no model is loaded.",
    ),
    "datasets": (
        "information",
        "List the data sets that are known by name, or write one of them as a table with its target as last column.",
    ),
    "reproduce": (
        "reproducing",
        "Run the experiments of the papers and compare the results with the published numbers.",
    ),
    "info": (
        "information",
        "Print the versions of calibayes and its dependencies, and the kernels and threads in use.",
    ),
}
"""Name of a command -> module that has ``NAME_command`` and ``NAME_EXAMPLES``, and the first sentence of its help."""


class Interruption(Exception):
    """Ctrl-C, or a closed output, of which typer would make an exit without a message."""

    def __init__(self, code: int) -> None:
        super().__init__(EXIT_CODES[code])
        self.code = code


class LaterCommand(TyperCommand):
    """A command whose module, with what it needs, is imported when the command is used; the list of commands needs none."""

    def __init__(self, name: str, module: str, summary: str) -> None:
        super().__init__(name, help=summary)
        self.module = module

    @cached_property
    def command(self) -> Any:
        """The command with its parameters."""
        with ending_at_once(_note_and_raise):
            module = import_module(f"calibayes.cli.{self.module}")
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        examples = getattr(module, f"{str(self.name).upper()}_EXAMPLES")
        alone.command(self.name, epilog=examples)(getattr(module, f"{self.name}_command"))
        return typer.main.get_command(alone)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        return self.command.make_context(*arguments, **options)


class Commands(TyperGroup):
    """The group of all commands. Errors are one line on the standard error stream; exit codes are in ``EXIT_CODES``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: LaterCommand(name, *entry) for name, entry in COMMANDS.items()}

    def main(self, args: Sequence[str] | None = None, **options: Any) -> Any:  # type: ignore[override]
        given = list(sys.argv[1:] if args is None else args)
        words = [word for word in given if word != DEBUG_OPTION]
        debug = words != given or os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")
        if not options.pop("standalone_mode", True):
            return super().main(words, standalone_mode=False, **options)
        call = lambda: super(Commands, self).main(words, standalone_mode=False, **options)
        sys.exit(exit_code(call, debug))

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
        print_text("interrupted; no file was changed", errors)
        return INTERRUPTED
    if _is_of_usage(error):
        return _code_of_usage(error)
    if isinstance(error, USER_ERRORS):
        print_error(one_line(str(error)))
        return WRONG_USE
    advice = f"run the command again with {DEBUG_OPTION} and report what it prints"
    print_error(one_line(f"internal error: {type(error).__name__}: {error}; {advice}"))
    return INTERNAL_ERROR


def _is_of_usage(error: BaseException) -> bool:
    """Whether an error is one of click (which typer may bring along): an unknown option, a missing argument."""
    return hasattr(error, "format_message")


def _code_of_usage(error: Any) -> int:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        print_text(context.get_help(), errors)
        return WRONG_USE
    advice = "" if context is None else f"; see {context.command_path} --help"
    print_error(one_line(error.format_message().rstrip(".")) + advice)
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
            print_text(f"warning: {text}", errors)

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
    print_text(f"note: {one_line(text)}", errors)


# -- Progress on the standard error stream, after a second, if it is a terminal ------------------------------

DELAY = 1.0
"""Seconds after which progress is shown."""
progress_console = Console(stderr=True)


@contextmanager
def working(text: str, total: float | None = None) -> Iterator[Callable[..., None]]:
    """Show what is being done, and how long it has taken, from the first second on.

    Yields a function that shows another text and, if it is given, how much of the total is done.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    bar = (BarColumn(),) if total is not None else ()
    progress = Progress(*columns, *bar, console=progress_console, transient=True)
    timer = Timer(DELAY, progress.start if progress_console.is_terminal else lambda: None)
    timer.daemon = True
    timer.start()
    try:
        task = progress.add_task(printable(text), total=total)
        yield lambda text, done=None: progress.update(task, description=printable(text), completed=done)
    finally:
        timer.cancel()
        timer.join()
        if progress.live.is_started:
            progress.stop()


# -- The application ``calibayes`` ---------------------------------------------------------------------------

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    help="Generative classifiers with discriminative training.",
    epilog=examples(
        "calibayes datasets penguins -o penguins.csv",
        "calibayes compare penguins.csv --target species --model LDA,QDA",
        "calibayes fit penguins.csv --target species -o penguins.safetensors",
        "calibayes predict penguins.safetensors penguins.csv -o predictions.csv",
    ),
)


def _print_version(requested: bool) -> None:
    if requested:
        console.print(f"calibayes {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    debug: Annotated[
        bool,
        Option(
            DEBUG_OPTION, help=f"Print the traceback of an error; at any place. Also: {DEBUG_VARIABLE}=1."
        ),
    ] = False,
) -> None:
    """Generative classifiers with discriminative training."""

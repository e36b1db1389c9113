"""Print messages that contain text of files, such as column names, and tables of any width."""

from __future__ import annotations

import unicodedata

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable

WIDEST = 10_000
"""More characters than any table needs."""


def printable(text: str) -> str:
    """The text without control characters, which could change the terminal (escape sequences), or its direction."""
    return "".join(
        character
        for character in text
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs")
    )


def print_text(console: Console, text: str, style: str | None = None) -> None:
    """Print a message as it is, without control characters; long lines are left to the terminal to wrap."""
    console.print(printable(text), style=style, markup=False, highlight=False, soft_wrap=True)


def print_error(console: Console, error: BaseException) -> None:
    """Print an error message."""
    console.print("error:", style="red", end=" ")
    print_text(console, str(error))


def print_table(console: Console, table: RichTable) -> None:
    """Print a table: wrapped in a terminal, else (in a file or pipe) as wide as it needs."""
    if console.is_terminal:
        console.print(table)
        return
    options = console.options.update(width=WIDEST)
    wide = Console(
        file=console.file, width=max(console.width, Measurement.get(console, options, table).maximum)
    )
    wide.print(table)

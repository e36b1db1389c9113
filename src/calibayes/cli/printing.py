"""Print messages that contain text of files, such as column names, and tables of any width."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

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


def print_error(console: Console, message: str) -> None:
    """Print an error message."""
    console.print("error:", style="red", end=" ")
    print_text(console, message)


def print_json(content: Any) -> None:
    """Print JSON for programs on standard output, in ASCII; numbers that are not finite are null."""
    text = json.dumps(_finite(content), indent=2)
    print(text.replace("\x7f", "\\u007f"))


def _finite(content: Any) -> Any:
    """Content for JSON: NumPy's values as Python's, numbers that are not finite as None."""
    if isinstance(content, np.generic | np.ndarray):
        content = content.tolist()
    if isinstance(content, Mapping):
        return {str(name): _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content if isinstance(content, bool | int | float | str | None) else str(content)


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


def result_table(*names: str) -> RichTable:
    """A table without rows; the first column is text, the others are numbers."""
    table = RichTable(box=SIMPLE, padding=(0, 1, 0, 0), show_edge=False)
    for number, name in enumerate(names):
        table.add_column(Text(printable(name)), justify="right" if number else "left", overflow="fold")
    return table

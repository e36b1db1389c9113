"""Plain text for people: tables with aligned columns, and counts with their noun."""

from __future__ import annotations

import html
from collections.abc import Sequence


class PlainText(str):
    """Text of several lines that is displayed as it is: by `print`, at Python's prompt and in notebooks.

    >>> PlainText("name  kind\\nage   numeric")
    name  kind
    age   numeric
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self)}</pre>"


def text_table(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as text with left-aligned columns, two spaces apart; all lines have the same number of cells.

    >>> print(text_table([("name", "kind"), ("age", "numeric"), ("town", "categorical")]))
    name  kind
    age   numeric
    town  categorical
    """
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def shortened(lines: Sequence[Sequence[str]], most: int = 20) -> str:
    """A `text_table` with a header and at most so many further lines; then how many more there are."""
    more = len(lines) - 1 - most
    return text_table(lines[: most + 1]) + (f"\n... and {more} more" if more > 0 else "")


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names with commas, at most so many; then how many more there are.

    >>> listed(["a", "b", "c"], most=2)
    'a, b, ... and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f", ... and {more} more" if more > 0 else "")


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun, in the plural (by default with an s) unless the number is 1.

    >>> counted(1, "level"), counted(3, "level"), counted(3, "class", "classes")
    ('1 level', '3 levels', '3 classes')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"

"""Plain text for people: tables with aligned columns, and counts with their noun."""

from __future__ import annotations

from collections.abc import Sequence


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


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun, in the plural (by default with an s) unless the number is 1.

    >>> counted(1, "level"), counted(3, "level"), counted(3, "class", "classes")
    ('1 level', '3 levels', '3 classes')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"

"""CB017: columns of text whose cells are numbers, possibly with a few words among them.

A column is reported if at least 90 % of its distinct values are numbers, and at least ten. Digits with leading zeros, such as
postal codes, do not count as numbers.
"""

from __future__ import annotations

import re

import numpy as np

from calibayes.checks.check import Check, Evidence
from calibayes.checks.columns import Column
from calibayes.checks.subject import Subject
from calibayes.checks.text import quoted

NUMBER = re.compile(r"[+-]?(?!0\d)(\d+([.,]\d+)?|\d{1,3}(,\d{3})+(\.\d+)?|[.,]\d+)([eE][+-]?\d+)?\s*%?")
LEAST_NUMBERS = 10
LEAST_SHARE = 0.9
MOST_LEVELS = 2_000
"""Most distinct values that are examined."""


def look(subject: Subject) -> Evidence | None:
    """Evidence of columns of text that hold numbers."""
    found = {
        column.name: words
        for column in subject.columns
        if column.is_text and (words := other_words(column)) is not None
    }
    if not found:
        return None
    noun, verb = ("Column", "holds") if len(found) == 1 else ("Columns", "hold")
    words = [word for name in found for word in found[name]]
    mixed = f", mixed with {quoted(words, 3)}" if words else ""
    first = next(column for column in subject.columns if column.name in found)
    return Evidence(
        f"{noun} {quoted(list(found))} {verb} numbers as text{mixed} ({first.name!r}: {len(first.levels):,} distinct values). "
        "Models treat each of them as a separate category without order.",
        tuple(found),
        {f"other words in {name}": ", ".join(found[name][:5]) or "none" for name in list(found)[:20]},
    )


def other_words(column: Column) -> list[str] | None:
    """Distinct values that are not numbers, if nearly all others are; else None."""
    texts = [str(value).strip() for value in np.asarray(column.levels)[:MOST_LEVELS]]
    others = [text for text in texts if not NUMBER.fullmatch(text)]
    numbers = len(texts) - len(others)
    return others if numbers >= max(LEAST_NUMBERS, LEAST_SHARE * len(texts)) else None


CHECK = Check("CB017", "numbers stored as text", look)

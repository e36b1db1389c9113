"""The papers' numbers, copied from their tables: data, not results of ours."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

Published = dict[str, dict[str, float]]
"""Label of a row -> column -> number; what is not printed is not there."""


@cache
def published(paper: str, table: str) -> Published:
    """A table of a paper.

    >>> published("rc-probabilistic-2024", "II")["iris"]["RC iter"]
    30.0
    """
    file = resources.files("calibayes.experiments") / "numbers" / f"{paper}-{table}.csv"
    header, *rows = csv.reader(file.read_text(encoding="utf-8").splitlines())
    return {
        row[0]: {name: float(cell) for name, cell in zip(header[1:], row[1:], strict=True) if cell}
        for row in rows
    }

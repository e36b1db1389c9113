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
    header, *rows = _lines(f"{paper}-{table}.csv")
    return {
        row[0]: {name: float(cell) for name, cell in zip(header[1:], row[1:], strict=True) if cell}
        for row in rows
    }


@cache
def known_reasons(paper: str, table: str) -> dict[str, str]:
    """Label of a row -> why it comes out otherwise.

    >>> sorted(known_reasons("rc-probabilistic-2024", "VI"))
    ['redwine']
    """
    return {row[1]: row[2] for row in _lines(f"{paper}-reasons.csv")[1:] if row[0] == table}


def _lines(name: str) -> list[list[str]]:
    file = resources.files("calibayes.experiments") / "numbers" / name
    return list(csv.reader(file.read_text(encoding="utf-8").splitlines()))

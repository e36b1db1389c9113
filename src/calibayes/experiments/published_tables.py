"""The published numbers, copied from the tables of the papers (CSV files in ``published/``)."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

Published = dict[str, dict[str, float]]
"""Row label -> column -> number, without the entries that the paper leaves empty."""


@cache
def published_table(paper: str, table: str) -> Published:
    """A published table.

    >>> published_table("rc-probabilistic-2024", "II")["iris"]["RC iter"]
    30.0
    """
    header, *rows = _read_csv(f"{paper}-{table}.csv")
    return {
        row[0]: {name: float(text) for name, text in zip(header[1:], row[1:], strict=True) if text}
        for row in rows
    }


@cache
def known_reasons(paper: str, table: str) -> dict[str, str]:
    """Row label -> why the reproduced row differs from the published one.

    >>> sorted(known_reasons("rc-probabilistic-2024", "VI"))
    ['redwine']
    """
    return {row[1]: row[2] for row in _read_csv(f"{paper}-reasons.csv")[1:] if row[0] == table}


def _read_csv(name: str) -> list[list[str]]:
    file = resources.files("calibayes.experiments") / "published" / name
    return list(csv.reader(file.read_text(encoding="utf-8").splitlines()))

"""Attribute-relation files (ARFF), the format of OpenML: a header of attributes, then rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable

ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|\S+)\s+(.*)", re.IGNORECASE)


def read_arff(lines: Iterable[str]) -> tuple[list[str], list[list[str]]]:
    """Names of the attributes, and rows of cells as text; a missing cell is empty."""
    names: list[str] = []
    rest = iter(lines)
    for line in rest:
        text = line.strip()
        if text.lower().startswith("@data"):
            break
        if found := ATTRIBUTE.match(text):
            names.append(found.group(1).strip("'\"").replace("\\'", "'"))
    body = (line for line in rest if line.strip() and not line.startswith("%"))
    reader = csv.reader(body, quotechar="'", escapechar="\\", skipinitialspace=True)
    rows = [[_cell(cell) for cell in row] for row in reader]
    if not names or not rows or any(len(row) != len(names) for row in rows):
        raise ValueError("this is no dense ARFF file: its rows do not fit its attributes")
    return names, rows


def _cell(text: str) -> str:
    bare = text.strip().strip('"')
    return "" if bare == "?" else bare

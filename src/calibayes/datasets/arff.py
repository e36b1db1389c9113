"""Read dense attribute-relation files (ARFF), the file format of OpenML: a header of attributes, then rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable

ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|\S+)\s+(.*)", re.IGNORECASE)


def read_arff(lines: Iterable[str]) -> tuple[list[str], list[list[str]]]:
    """Attribute names, and rows of values as text; a missing value is the empty string.

    Raises ValueError if the file is sparse or a row has another number of values than there are attributes.
    """
    names: list[str] = []
    remaining = iter(lines)
    for line in remaining:
        text = line.strip()
        if text.lower().startswith("@data"):
            break
        if match := ATTRIBUTE.match(text):
            names.append(match.group(1).strip("'\"").replace("\\'", "'"))
    body = (line for line in remaining if line.strip() and not line.startswith("%"))
    reader = csv.reader(body, quotechar="'", escapechar="\\", skipinitialspace=True)
    rows = [[_value(text) for text in row] for row in reader]
    if not names or not rows or any(len(row) != len(names) for row in rows):
        raise ValueError(
            "not a dense ARFF file: every row must have one value for each of the "
            f"{len(names)} attributes in the header"
        )
    return names, rows


def _value(text: str) -> str:
    bare = text.strip().strip('"')
    return "" if bare == "?" else bare

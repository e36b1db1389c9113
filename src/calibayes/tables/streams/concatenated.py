"""Tables of consecutive rows as one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.coded_column import CodedColumn
from calibayes.tables.distinct import distinct_values
from calibayes.tables.table import Table


def concatenated(tables: Sequence[Table]) -> Table:
    """The rows of all tables, which have the same columns of the same types; text stays coded."""
    first = tables[0]
    if len(tables) == 1:
        return first
    if not isinstance(first.content, tuple):
        content = np.concatenate([table.content for table in tables])
        return replace(first, content=content, distinct_cache={}, missing_cache={})
    columns = [_concatenated_column(tables, j) for j in range(len(first.names))]
    coded = {j: (c.values, c.codes) for j, c in enumerate(columns) if isinstance(c, CodedColumn)}
    originals = {j: np.concatenate([table.originals[j] for table in tables]) for j in first.originals}
    return replace(first, content=tuple(columns), distinct_cache=coded, missing_cache={}, originals=originals)


def _concatenated_column(tables: Sequence[Table], j: int) -> Array | CodedColumn:
    if not all(isinstance(table.stored_column(j), CodedColumn) for table in tables):
        return np.concatenate([table.column(j) for table in tables])
    pairs = [distinct_values(table, j) for table in tables]
    together = sorted(set().union(*(own.tolist() for own, _ in pairs)))
    values = np.empty(len(together), dtype=object)
    values[:] = together
    place = {value: number for number, value in enumerate(values.tolist())}
    codes = [
        np.array([*(place[value] for value in own.tolist()), len(values)])[codes] for own, codes in pairs
    ]
    return CodedColumn(values, np.concatenate(codes))

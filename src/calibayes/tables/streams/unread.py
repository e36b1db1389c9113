"""Tables some of whose columns were not read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.origin import Origin
from calibayes.tables.table import Table


class StreamColumns(NamedTuple):
    """The columns of a stream, without its rows."""

    names: tuple[str, ...]
    types: tuple[np.dtype[Any], ...]
    origin: Origin


def with_unread(table: Table, stream: StreamColumns, read: Sequence[int], n: int) -> Table:
    """The columns of a table of n rows at their positions in the stream; those that were not read are all zero."""
    names, types = stream.names, stream.types
    place = {j: number for number, j in enumerate(read)}
    columns = [
        table.stored_column(place[j]) if j in place else _zeros(types[j], n) for j in range(len(names))
    ]
    own_types = table.types()
    return replace(
        table,
        names=names,
        origin=stream.origin,
        content=tuple(columns),
        original_types=tuple(own_types[place[j]] if j in place else types[j] for j in range(len(names))),
        distinct_cache={read[number]: entry for number, entry in table.distinct_cache.items()},
        missing_cache={},
        zones={read[number]: zone for number, zone in table.zones.items()},
    )


def _zeros(kind: np.dtype[Any], n: int) -> Array:
    return np.broadcast_to(np.zeros((), dtype=kind), n)

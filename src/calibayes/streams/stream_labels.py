"""Labels and weights of rows that are read in chunks: the first pass over a stream."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import column_or_1d

from calibayes.core.protocols import Array, Engine
from calibayes.model.input import Reading, distinct, read_target, read_weight, refuse_missing_labels
from calibayes.streams.chunk_source import ChunkSource
from calibayes.streams.chunks import Chunk, RowStream
from calibayes.streams.open import open_stream
from calibayes.tables.read import dask_kind
from calibayes.tables.table import CodedColumn, missing_mask

GROUP = 4096
"""Rows whose number of selected ones is counted once, so that places of rows are found quickly."""


class StreamLabels(NamedTuple):
    """Classes, and the code and weight of every row of a stream."""

    classes: Array
    codes: Array
    """(n,), of the smallest type of integers that can hold them; -1 without a label."""
    weight: Array
    """(n,); one number for all rows takes the memory of one."""


class _ChunkLabels(NamedTuple):
    """The labels of a chunk: distinct known ones, and the place of each row's label among them, -1 if missing."""

    values: Array
    codes: Array
    weight: Array | None


def read_labels(stream: RowStream, engine: Engine, how: Reading) -> StreamLabels:
    """Read the labels and weights of all rows."""
    chunks: list[_ChunkLabels] = engine.each(_labels_of_chunk, ChunkSource(stream, ()))
    if not chunks:
        raise ValueError("Found array with 0 sample(s): the table has no rows")
    known = np.concatenate([chunk.values for chunk in chunks])
    missing = sum(int(np.count_nonzero(chunk.codes < 0)) for chunk in chunks)
    if not how.unlabeled:
        refuse_missing_labels(missing)
    values = np.array([*known.tolist(), None], dtype=object) if missing else known
    target = read_target(
        values, unlabeled=how.unlabeled, classes=how.classes, fewest_classes=how.fewest_classes
    )
    places = np.split(target.codes, np.cumsum([len(chunk.values) for chunk in chunks]))
    dtype = np.min_scalar_type(-len(target.classes) - 1)
    codes = np.concatenate(
        [
            np.append(place, -1).astype(dtype)[chunk.codes]
            for place, chunk in zip(places[: len(chunks)], chunks, strict=True)
        ]
    )
    return StreamLabels(target.classes, codes, _weights(chunks, len(codes)))


def _labels_of_chunk(chunk: Chunk) -> _ChunkLabels:
    if isinstance(chunk.labels, CodedColumn):
        values, places = chunk.labels.values, chunk.labels.codes
        codes = np.where(places < len(values), places, -1)
        present = np.bincount(codes[codes >= 0], minlength=len(values)) > 0
        moved = np.append(np.cumsum(present) - 1, -1)
        return _ChunkLabels(values[present], _small(moved[codes]), chunk.weight)
    labels = np.asarray(chunk.labels)
    missing = missing_mask(labels)
    codes = np.full(len(labels), -1)
    values, codes[~missing] = distinct(labels[~missing])
    return _ChunkLabels(values, _small(codes), chunk.weight)


def _small(codes: Array) -> Array:
    return codes.astype(np.min_scalar_type(-int(codes.max(initial=0)) - 1))


def _weights(chunks: list[_ChunkLabels], n: int) -> Array:
    parts = [chunk.weight for chunk in chunks if chunk.weight is not None]
    return read_weight(np.concatenate(parts), n) if parts else np.broadcast_to(1.0, n)


@dataclass(frozen=True)
class Selection:
    """Which rows of a stream take part; they are numbered in their order."""

    mask: Array | None
    """(n,) booleans; None: all."""

    def rows(self, first: int, count: int) -> Array | None:
        """Which of the rows from ``first`` on take part, (count,) booleans; None: all."""
        return None if self.mask is None else self.mask[first : first + count]

    def place(self, first: int) -> int:
        """Number of rows that take part before row ``first``."""
        if self.mask is None:
            return first
        group = first // GROUP
        return int(self._before[group] + np.count_nonzero(self.mask[group * GROUP : first]))

    def only(self, keep: Array) -> Selection:
        """Of these rows those where ``keep`` is true."""
        if self.mask is None:
            return Selection(keep)
        mask = self.mask.copy()
        mask[self.mask] = keep
        return Selection(mask)

    @cached_property
    def _before(self) -> Array:
        """Number of rows that take part before each group of rows."""
        assert self.mask is not None
        counts = np.add.reduceat(self.mask, np.arange(0, len(self.mask), GROUP), dtype=np.int64)
        return np.concatenate([[0], np.cumsum(counts)])


ALL_ROWS = Selection(None)


# -- Labels and weights of a source that is not in memory: names of its columns, or values of all rows -------


def opened(X: Any, y: Any, sample_weight: Any) -> RowStream:
    """The stream of a source with its labels and weights."""
    is_lazy = dask_kind(X) is not None
    labels = _values("y", y, is_lazy=is_lazy)
    return open_stream(X, labels, _values("sample_weight", sample_weight, is_lazy=is_lazy))


def _values(role: str, given: Any, *, is_lazy: bool) -> Any:
    """A name, or an array (n,). Dask collections are computed, unless they belong to one."""
    if given is None or isinstance(given, str) or (is_lazy and dask_kind(given) is not None):
        return given
    values = np.asarray(given)
    if values.ndim == 0:
        raise ValueError(f"{role} must be the name of a column or have one value for each row, got {given!r}")
    return values if values.ndim == 1 else column_or_1d(values, warn=True)

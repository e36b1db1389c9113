"""Files, Arrow data and queries as tables of estimators: training rows that are read in passes, predictions chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from numbers import Number
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score

from calibayes.core.protocols import Array, Engine
from calibayes.engines import engine_for, is_distributed
from calibayes.kernels.dispatch import most_threads
from calibayes.model.door import InMemory, OfTable, TableInput
from calibayes.model.input import AS_GIVEN, Reading, convert, read_weight, require_labels, set_names
from calibayes.model.progress import ProgressReporter
from calibayes.streams.chunk_source import ChunkSource
from calibayes.streams.chunks import Chunk, read_ahead
from calibayes.streams.stream_labels import opened, read_labels
from calibayes.streams.streamed_rows import StreamedRows
from calibayes.tables.conversion import ColumnConversion
from calibayes.tables.summary import SAMPLE_ROWS
from calibayes.tables.table import Table

CONVERTED_KINDS = "OUSMm"
"""Kinds of NumPy types of columns that may have to be converted: text, dates, durations."""


class StreamInput(TableInput):
    """Files, Arrow data, queries and other sources that are read in chunks."""

    refers_to_X = True

    def in_memory(self) -> InMemory:
        """The rows in memory; of a source with very many rows some, by their number, and in ``beyond`` all of them."""
        engine = engine_for(most_threads())
        rows = _all_rows(self, engine, Reading(unlabeled=True, fewest_classes=1))
        read = rows.in_memory()
        labels = np.array([*rows.classes.tolist(), None], dtype=object)[read.codes]
        table = InMemory(replace(read.table, conversion=None), labels, read.weight)
        table.beyond = rows if len(read.codes) < len(rows.codes) else None
        return table

    def rows(self, reader: Any, engine: Engine, how: Reading = AS_GIVEN) -> tuple[Array, StreamedRows]:
        """Classes and rows, which are read in passes by the engine."""
        require_labels(reader, self.y)
        reporter = ProgressReporter(type(reader).__name__, bool(reader.verbose))
        reporter.report("reading labels", 0.0)
        rows = _all_rows(self, engine, how)
        rows = replace(rows.weighted(how.class_weight), report=lambda text: reporter.report(text, 0.0))
        rows = replace(rows, conversion=convert(reader, _text_and_dates(rows)).conversion)
        set_names(reader, rows.summary.head)
        return rows.classes, rows

    def map(self, model: Any, method: str, function: OfTable) -> Any:
        """The predictions for all rows. Columns that the model does not know, such as the target, are not read."""
        return np.concatenate(
            [InMemory(chunk.table).map(model, method, function) for chunk in self._chunks(model)]
        )

    def accuracy(self, model: Any) -> float:
        chunks = (
            (np.asarray(chunk.labels), model.predict(chunk.table), chunk.weight)
            for chunk in self._chunks(model, self.y, self.sample_weight)
        )
        labels, predicted, weights = zip(*chunks, strict=True)
        weight = None if weights[0] is None else np.concatenate(weights)
        return float(accuracy_score(np.concatenate(labels), np.concatenate(predicted), sample_weight=weight))

    def _chunks(self, model: Any, y: Any = None, sample_weight: Any = None) -> Iterator[Chunk]:
        """The chunks with the columns of a model; the next one is read while one is used."""
        stream = opened(self.X, y, sample_weight)
        known = getattr(model, "feature_names_in_", None)
        columns = None if known is None else _present(stream.names, tuple(known))
        with closing(read_ahead(stream.parts(columns))) as loaders:
            for load in loaders:
                yield load()


def open_input(X: Any, y: Any, sample_weight: Any) -> StreamInput:
    """The kind of table that a source read in this process is."""
    return StreamInput(X, y, sample_weight)


def _present(names: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of the model. Raises ValueError if the source lacks one."""
    lacking = [name for name in known if name not in names]
    if lacking:
        raise ValueError(f"the source has no column {lacking[0]!r}, which the model was trained on")
    return known


def _all_rows(given: TableInput, engine: Engine, how: Reading) -> StreamedRows:
    """All rows of a source, their columns not yet converted."""
    sample_weight = given.sample_weight
    is_one_number = isinstance(sample_weight, Number)  # also those of NumPy
    stream = opened(given.X, given.y, None if is_one_number else sample_weight)
    conversion = ColumnConversion(stream.names, stream.types)
    if is_distributed(engine) and not ChunkSource(stream).is_lazy:
        engine = engine_for(most_threads())  # rows that workers cannot read are read here
    labels = read_labels(stream, engine, how)
    if is_one_number:
        labels = labels._replace(weight=np.broadcast_to(read_weight(sample_weight, 1), len(labels.codes)))
    return StreamedRows(stream, engine, conversion, *labels)


def _text_and_dates(rows: StreamedRows) -> Table:
    """Some rows, with the columns that may have to be converted; the others are all zero."""
    types = rows.stream.types
    read = tuple(j for j, kind in enumerate(types) if kind.kind in CONVERTED_KINDS)
    return rows.some_rows(SAMPLE_ROWS, read)

"""From the source, y and sample_weight of `fit` to training rows, in memory or read in passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Number
from typing import Any

import numpy as np

from calibayes.core.protocols import Array, Engine
from calibayes.engines import engine_for, is_distributed
from calibayes.kernels.dispatch import most_threads
from calibayes.model.input import convert, set_names
from calibayes.model.labels import check_total_weight, class_factors, read_weight, require_labels
from calibayes.model.progress import ProgressReporter
from calibayes.streams.chunk_source import ChunkSource
from calibayes.streams.stream_labels import opened, read_labels
from calibayes.streams.streamed_rows import StreamedRows
from calibayes.tables.conversion import ColumnConversion
from calibayes.tables.summary import SAMPLE_ROWS
from calibayes.tables.table import Table

CONVERTED_KINDS = "OUSMm"
"""Kinds of NumPy types of columns that may have to be converted: text, dates, durations."""


def read_into_memory(
    X: Any, y: Any, sample_weight: Any = None
) -> tuple[tuple[Any, Any, Any], StreamedRows | None]:
    """Table, labels and weights of a source in memory, and all rows of the source if these are not all."""
    rows = _all_rows(X, y, sample_weight, engine_for(most_threads()), unlabeled=True, fewest_classes=1)
    read = rows.in_memory()
    labels = np.array([*rows.classes.tolist(), None], dtype=object)[read.codes]
    is_sample = len(read.codes) < len(rows.codes)
    return (replace(read.table, conversion=None), labels, read.weight), rows if is_sample else None


def streamed_rows(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    class_weight: Mapping[Any, float] | str | None,
    engine: Engine,
    *,
    unlabeled: bool = False,
    fewest_classes: int = 2,
) -> tuple[Array, StreamedRows]:
    """Classes and rows of files and streams, as `training_rows` gives for rows in memory.

    Sets ``training_table_`` of the estimator, and its columns.
    """
    require_labels(estimator, y)
    reporter = ProgressReporter(type(estimator).__name__, bool(estimator.verbose))
    reporter.report("reading labels", 0.0)
    rows = _all_rows(X, y, sample_weight, engine, unlabeled=unlabeled, fewest_classes=fewest_classes)
    rows = replace(weighted(rows, class_weight), report=lambda text: reporter.report(text, 0.0))
    rows = replace(rows, conversion=convert(estimator, _text_and_dates(rows)).conversion)
    set_names(estimator, rows.summary.head)
    estimator.training_table_ = rows.described()
    return rows.classes, rows


def weighted(rows: StreamedRows, class_weight: Mapping[Any, float] | str | None) -> StreamedRows:
    """The rows of positive weight, multiplied by class weights."""
    rows = rows.only(rows.weight > 0)
    if class_weight is not None:
        factors = class_factors(class_weight, rows.classes, rows.codes, rows.weight)
        rows = replace(rows, weight=rows.weight * factors, factor=factors)
        rows = rows.only(read_weight(rows.weight, len(rows.weight)) > 0)
    check_total_weight(rows.weight)
    return rows


def _all_rows(X: Any, y: Any, sample_weight: Any, engine: Engine, **options: Any) -> StreamedRows:
    """All rows of a source, their columns not yet converted."""
    is_one_number = isinstance(sample_weight, Number)  # also those of NumPy
    stream = opened(X, y, None if is_one_number else sample_weight)
    conversion = ColumnConversion(stream.names, stream.types)
    if is_distributed(engine) and not ChunkSource(stream).is_lazy:
        engine = engine_for(most_threads())  # rows that workers cannot read are read here
    labels = read_labels(stream, engine, **options)
    if is_one_number:
        labels = labels._replace(weight=np.broadcast_to(read_weight(sample_weight, 1), len(labels.codes)))
    return StreamedRows(stream, engine, conversion, *labels)


def _text_and_dates(rows: StreamedRows) -> Table:
    """Some rows, with the columns that may have to be converted; the others are all zero."""
    types = rows.stream.types
    read = tuple(j for j, kind in enumerate(types) if kind.kind in CONVERTED_KINDS)
    return rows.some_rows(SAMPLE_ROWS, read)

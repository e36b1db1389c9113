"""Training rows that need not fit in memory: they are read in each of the passes that prepare a training.

The passes: labels and weights; if there is text, or dates, a sample of them that shows how they are converted; sums of all
columns, which encoders learn from; and one that encodes the rows. The encoded rows are kept, and training reads these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple
from uuid import uuid4

import numpy as np

from calibayes.backends.dask.collections import LazyParts, Unhashed, unwrapped
from calibayes.core.notices import counted, warn
from calibayes.core.protocols import Array, Block, Engine, Source
from calibayes.encoders.schema import TrainingTable, training_table
from calibayes.engines import is_distributed
from calibayes.kernels.level_counts import code_type
from calibayes.model.input import Rows, check_total_weight, class_factors, read_weight
from calibayes.streams.chunk_source import ChunkSource
from calibayes.streams.chunks import (
    Chunk,
    RowStream,
    StreamColumns,
    as_types,
    column_types,
    concatenated,
    with_unread,
)
from calibayes.streams.kept_arrays import KeptArray, KeptArrays
from calibayes.streams.stream_labels import ALL_ROWS, Selection
from calibayes.tables.sources import ArraySource
from calibayes.tables.summary import SAMPLE_ROWS, Sample, in_sample
from calibayes.tables.summary_sums import (
    Streamed,
    SurveyPlan,
    column_sums,
    first_plan,
    next_plan,
    totals_after,
)
from calibayes.tables.table import Table

# -- Rows of a stream that take part in a training, chunk by chunk, with their class codes and weights -------


class SelectedRows(NamedTuple):
    """The rows of a chunk that take part."""

    table: Table
    codes: Array
    """Class codes, (n,), -1 for a row without a label."""
    weight: Array
    start: int
    """Number of rows that take part before these."""


class _Selected(NamedTuple):
    """Which rows of a chunk take part, with their codes and weights: what is sent to the worker that reads the chunk."""

    keep: Array | None
    codes: Array
    weight: Array | float
    """One number if it is that of all rows."""
    start: int

    def of(self, chunk: Chunk) -> SelectedRows:
        """The rows of the chunk."""
        table = chunk.table if self.keep is None else chunk.table.rows(self.keep)
        weight = np.broadcast_to(self.weight, len(self.codes))
        return SelectedRows(table, self.codes, weight, self.start)


@dataclass(frozen=True, eq=False)
class SelectedChunks:
    """A source of `SelectedRows`: the chunks of a stream in a process, or on the workers that make them."""

    chunks: ChunkSource
    selection: Selection
    codes: Array
    weight: Array

    is_read_once: ClassVar[bool] = True

    def parts(self) -> Iterator[Callable[[], SelectedRows]]:
        """Loaders of the rows of each chunk."""
        for load in self.chunks.parts():
            yield partial(self._read, load)

    def _read(self, load: Callable[[], Chunk]) -> SelectedRows:
        chunk = load()
        return self.selected(chunk.first, chunk.n).of(chunk)

    def selected(self, first: int, count: int) -> _Selected:
        """Those of ``count`` rows from ``first`` on that take part."""
        keep, start = self.selection.rows(first, count), self.selection.place(first)
        rows = slice(start, start + (count if keep is None else int(np.count_nonzero(keep))))
        return _Selected(keep, self.codes[rows], compact(self.weight[rows]), start)

    def lazy_parts(self) -> LazyParts | None:
        """Tasks that make the rows of each chunk; None if the stream is read in this process."""
        raw = self.chunks.lazy_parts()
        if raw is None:
            return None
        name = f"calibayes-rows-{uuid4().hex}"
        graph = {
            (name, i): (_selected_rows, Unhashed(self.selected(*place), f"{name}-{i}"), key)
            for i, (key, place) in enumerate(zip(raw.keys, raw.places, strict=True))
        }
        return LazyParts({**raw.graph, **graph}, list(graph), raw.places)


def _selected_rows(selected: Unhashed, chunk: Chunk) -> SelectedRows:
    return selected.value.of(chunk)


def compact(values: Array) -> Any:
    """The values, or one number if an array repeats it without storing it again."""
    return values if len(values) == 0 or values.strides[0] else values[0]


# -- Encoded rows of a stream on the workers of a Dask cluster -----------------------------------------------


@dataclass(frozen=True)
class Encoding:
    """How the rows of a chunk are encoded."""

    binding: Any
    conversion: Any
    types: Mapping[str, np.dtype[Any]]
    """Name of a family -> the type in which its columns are stored."""
    widths: Mapping[str, int]
    """Name of a family -> number of its columns."""

    def columns(self, rows: SelectedRows) -> dict[str, Array]:
        """The encoded columns of each family."""
        table = self.conversion.apply(as_types(rows.table, self.conversion.types))
        encoded = self.binding.encode(table).items()
        return {name: columns.astype(self.types[name], copy=False) for name, columns in encoded}

    def placed(self, rows: SelectedRows) -> tuple[int, dict[str, Array]]:
        """The number of rows before these, and their encoded columns."""
        return rows.start, self.columns(rows)


@dataclass(frozen=True, eq=False)
class EncodedOnWorkers:
    """A source of blocks that are encoded on the workers, from the partitions there, and stay on them."""

    chunks: SelectedChunks
    encoding: Encoding
    held_out: Array
    sizes: Mapping[str, int]
    """Number of classes and least number of cells of a block: see `ArraySource`."""

    is_read_once: ClassVar[bool] = False

    def parts(self) -> Iterator[Callable[[], Block]]:
        """Loaders of blocks of a partition each, encoded in this process."""
        for load in self.chunks.parts():
            yield partial(self._block, load)

    def _block(self, load: Callable[[], SelectedRows]) -> Block:
        rows = load()
        held_out = self.held_out[rows.start : rows.start + len(rows.codes)]
        return Block(self.encoding.columns(rows), rows.codes, rows.weight, held_out, rows.start)

    def lazy_parts(self) -> LazyParts:
        """Tasks that make the blocks of each partition."""
        rows = self.chunks.lazy_parts()
        if rows is None:
            raise ValueError("the stream is read in this process: its rows cannot be encoded on workers")
        name, shared = f"calibayes-block-{uuid4().hex}", f"calibayes-encoders-{uuid4().hex}"
        graph: dict[Any, Any] = {shared: (unwrapped, Unhashed(self.encoding, shared))}
        keys = []
        for i, (key, place) in enumerate(zip(rows.keys, rows.places, strict=True)):
            part = self.chunks.selected(*place)
            held_out = compact(self.held_out[part.start : part.start + len(part.codes)])
            if len(part.codes):
                keys.append((name, i))
                graph[name, i] = (_blocks, shared, key, Unhashed((held_out, self.sizes), f"{name}-{i}"))
        return LazyParts({**rows.graph, **graph}, keys)

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Block]:
        """Raises ValueError: random batches of rows would have to be gathered from all workers."""
        raise ValueError(
            "batch_size needs rows in the memory of this process: leave it out for a Dask collection that is trained on by "
            "the Dask engine, or use another engine"
        )


def _blocks(encoding: Encoding, rows: SelectedRows, wrapped: Unhashed) -> list[Block]:
    """The encoded rows of a partition, in blocks of the usual size."""
    held_out, sizes = wrapped.value
    every = np.broadcast_to(held_out, len(rows.codes))
    source = ArraySource(encoding.columns(rows), rows.codes, rows.weight, every, **sizes)
    blocks = (load() for load in source.parts())
    return [replace(block, first=rows.start + block.first) for block in blocks]


# -- Training rows that need not fit in memory: they are read in each of the passes that prepare a training
#
# The passes: labels and weights; if there is text, or dates, a sample of them that shows how they are converted; sums of all
# columns, which encoders learn from; and one that encodes the rows. The encoded rows are kept, and training reads these.

PROBE_ROWS = 16
"""Rows of the sample that are encoded to find out the type of encoded columns."""
MOST_CELLS = 2**27
"""Cells of a table that is read into memory, if all of its rows are needed at once."""


class SampledRowsWarning(UserWarning):
    """A model that needs its rows in memory learns from some of them."""


def silent(text: str) -> None:
    """Report nothing."""


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """Rows of a stream with positive weight: the counterpart of `Rows`, which are in memory."""

    stream: RowStream
    engine: Engine
    conversion: Any
    """How columns are converted; the types of all rows are known after `summary`."""
    classes: Array
    codes: Array
    """Class codes, (n,), -1 for a row without a label."""
    weight: Array
    selection: Selection = ALL_ROWS
    """The rows of the stream that take part."""
    factor: Array | float = 1.0
    """Class weights, by which the sample weights were multiplied, (n,)."""
    report: Callable[[str], None] = silent
    """Called with what is done, before each pass over the rows."""

    def only(self, keep: Array) -> StreamedRows:
        """The rows where ``keep`` is true."""
        if keep.all():
            return self
        factor = self.factor[keep] if isinstance(self.factor, np.ndarray) else self.factor
        weight, selection = selected(self.weight, keep), self.selection.only(keep)
        return replace(self, codes=self.codes[keep], weight=weight, selection=selection, factor=factor)

    def described(self) -> TrainingTable:
        """Size and columns of the table, as it was given."""
        summary = self.summary
        missing = tuple(summary.missing_rows(j) for j in range(len(self.stream.names)))
        labeled = int(np.count_nonzero(self.codes >= 0))
        return replace(training_table(summary.head), rows=len(self.codes), labeled=labeled, missing=missing)

    # -- what encoders learn from ----------------------------------------------------------------------------------

    @cached_property
    def summary(self) -> Streamed:
        """What encoders learn from: at most four passes over the rows."""
        plan = first_plan(range(len(self.conversion.converted_names)), len(self.classes), self.weight)
        n = len(self.codes)
        self.report(f"counting the columns of {n} rows")
        found = self._total(partial(_first_sums, self.conversion, plan, n))
        totals = dict(found["columns"])
        while (further := next_plan(plan, totals)) is not None:
            plan = further
            names = tuple(self.stream.names[j] for j in plan.trees)
            self.report(f"counting {counted(len(names), 'column')} of many distinct numbers again")
            further_sums = partial(_further_sums, self._columns, self.conversion, plan)
            totals = totals_after(totals, self._total(further_sums, names))
        table = self._typed(found)
        chosen = in_sample(0, n, n)
        sample = Sample(table, selected(self.weight, chosen), self.codes[chosen])
        encode = lambda encoder: encoder.encode(self.in_memory().table)
        return Streamed(table, self.weight, self.codes, sample, totals, encode)

    def weighted(self, class_weight: Mapping[Any, float] | str | None) -> StreamedRows:
        """The rows of positive weight, multiplied by class weights."""
        rows = self.only(self.weight > 0)
        if class_weight is not None:
            factors = class_factors(class_weight, rows.classes, rows.codes, rows.weight)
            rows = replace(rows, weight=rows.weight * factors, factor=factors)
            rows = rows.only(read_weight(rows.weight, len(rows.weight)) > 0)
        check_total_weight(rows.weight)
        return rows

    def some_rows(self, most: int, read: tuple[int, ...]) -> Table:
        """About ``most`` rows, by their number, or all if they are not more, unconverted.

        Columns that are not read are all zero. Without columns to read, there is one row.
        """
        names = self.stream.names
        if not read:
            return with_unread(Table((), ()), self._columns, read, 1)
        found = self._total(partial(_some_rows, len(self.codes), most), tuple(names[j] for j in read))
        table = concatenated(found["rows"])
        typed = as_types(table, found["types"].result(table))
        return with_unread(typed, self._columns, read, typed.n)

    def _total(self, function: Callable[[SelectedRows], Any], names: tuple[str, ...] | None = None) -> Any:
        """The sum over the chunks of a function of their rows that take part."""
        return self.engine.total(function, self._chunks(names))

    def _chunks(self, names: tuple[str, ...] | None = None, weight: Array | None = None) -> SelectedChunks:
        """The rows that take part, chunk by chunk, with the named columns and these weights."""
        given = self.weight if weight is None else weight
        return SelectedChunks(ChunkSource(self.stream, names), self.selection, self.codes, given)

    @property
    def _columns(self) -> StreamColumns:
        return StreamColumns(self.stream.names, self.stream.types, self.stream.origin)

    def _typed(self, found: dict[str, Any]) -> Table:
        """Rows of all chunks as one table, converted, in the types that all rows have in common."""
        table = concatenated(found["rows"])
        types = found["types"].result(table)
        return replace(self.conversion, types=types).apply(as_types(table, types))

    # -- encoded rows ----------------------------------------------------------------------------------------------

    def source(self, binding: Any, weight: Array, held_out: Array, **sizes: int) -> Source:
        """The encoded rows: on the workers of a Dask cluster if they are read there, else kept here."""
        if self.is_on_workers:
            chunks = self._chunks(weight=weight)
            return EncodedOnWorkers(chunks, self._encoding(binding), held_out, sizes)
        return ArraySource(self.encoded(binding), self.codes, weight, held_out, **sizes)

    @property
    def is_on_workers(self) -> bool:
        """Whether partitions are read and encoded by the workers of a distributed engine."""
        return is_distributed(self.engine) and self._chunks().chunks.is_lazy

    def encoded(self, binding: Any) -> dict[str, KeptArray]:
        """The encoded columns of each family of a column binding, from one pass over the rows.

        They are kept in memory, or beyond a budget in a temporary file.
        """
        encoding, kept = self._encoding(binding), KeptArrays()
        self.report(f"encoding {len(self.codes)} rows")
        arrays = {
            name: kept.allocate((len(self.codes), width), encoding.types[name])
            for name, width in encoding.widths.items()
        }

        def write(place: tuple[int, dict[str, Array]]) -> None:
            start, encoded = place
            for name, columns in encoded.items():
                arrays[name].write(start, columns)

        def write_rows(rows: SelectedRows) -> dict[str, int]:
            write(encoding.placed(rows))
            return {"rows": len(rows.codes)}

        if self.is_on_workers:
            for place in self.engine.each(encoding.placed, self._chunks()):
                write(place)
        else:
            self._total(write_rows)
        return arrays

    def _encoding(self, binding: Any) -> Encoding:
        """How the rows are encoded; the types are found by encoding a few of them."""
        sample, conversion = self.summary.sample.table, self.summary.conversion
        assert conversion is not None  # that of `_typed`
        probe = binding.encode(sample.rows(np.arange(min(PROBE_ROWS, sample.n))))
        types = {name: stored_type(columns, binding, name) for name, columns in probe.items()}
        return Encoding(binding, conversion, types, {name: part.shape[1] for name, part in probe.items()})

    # -- in memory -------------------------------------------------------------------------------------------------

    def in_memory(self) -> Rows:
        """The rows in memory, for what is no sum over rows; some of them, by row number, if they are too many."""
        n = len(self.codes)
        most = max(MOST_CELLS // len(self.stream.names), SAMPLE_ROWS)
        chosen = in_sample(0, n, n, most)
        if not chosen.all():
            warn(
                f"only {np.count_nonzero(chosen)} of {n} rows are used, drawn by their number: this model needs its rows "
                "in memory. Naive Bayes, discriminant analysis and trees of columns learn from all rows",
                SampledRowsWarning,
            )
        table = self._typed(self._total(partial(_some_rows, n, most)))
        factor = self.factor[chosen] if isinstance(self.factor, np.ndarray) else self.factor
        weight = np.array(selected(self.weight, chosen))
        return Rows(table, self.codes[chosen].astype(np.int64), weight, np.flatnonzero(chosen), factor)


def _first_sums(conversion: Any, plan: SurveyPlan, n: int, rows: SelectedRows) -> dict[str, Any]:
    sums = column_sums(conversion.apply(rows.table), rows.weight, rows.codes, plan)
    return {"columns": sums, **_some_rows(n, SAMPLE_ROWS, rows)}


def _further_sums(
    columns: StreamColumns, conversion: Any, plan: SurveyPlan, rows: SelectedRows
) -> dict[str, Any]:
    """Sums of the columns of a plan, if only these were read."""
    read = tuple(plan.trees)
    converters = {j: converter for j, converter in conversion.converters.items() if j in read}
    whole = with_unread(rows.table, columns, read, rows.table.n)
    return dict(
        column_sums(replace(conversion, converters=converters).apply(whole), rows.weight, rows.codes, plan)
    )


def _some_rows(n: int, most: int, rows: SelectedRows) -> dict[str, Any]:
    """The rows that are in a sample of about ``most`` of all n rows, and the types of the columns."""
    return {
        "types": column_types(rows.table),
        "rows": [rows.table.rows(in_sample(rows.start, rows.table.n, n, most))],
    }


def selected(weight: Array, keep: Array) -> Array:
    """The weights where ``keep`` is true; one number for all rows still takes the memory of one."""
    if weight.strides[0]:
        return weight[keep]
    return np.broadcast_to(weight[0], int(np.count_nonzero(keep)))


def stored_type(columns: Array, binding: Any, family: str) -> np.dtype[Any]:
    """The type in which encoded columns are stored: the narrowest one for codes of levels."""
    levels = binding.encoders[family].layout().get("levels", ())
    are_codes = columns.dtype.kind in "iu" and bool(levels)
    return np.dtype(code_type(max(levels))) if are_codes else columns.dtype

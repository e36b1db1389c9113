"""Training rows that need not fit in memory: they are read in each of the passes that prepare a training.

The passes: labels and weights; if there is text, or dates, a sample of them that shows how they are converted; sums of all
columns, which encoders learn from; and one that encodes the rows. The encoded rows are kept, and training reads these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from calibayes.core.notices import counted, warn
from calibayes.core.protocols import Array, Engine, Source
from calibayes.engines import is_distributed
from calibayes.kernels.dispatch import code_type
from calibayes.model import checked_rows
from calibayes.model.checked_rows import Reading, Rows, read_weight
from calibayes.streams.array_store import KeptArray, KeptArrays
from calibayes.streams.chunks import (
    Chunk,
    ChunkSource,
    RowStream,
    StreamColumns,
    as_types,
    column_types,
    concatenated,
    with_unread,
)
from calibayes.tables import summary_sums
from calibayes.tables.read import memory_budget
from calibayes.tables.row_blocks import ArraySource
from calibayes.tables.summary import SAMPLE_ROWS, Sample, in_sample
from calibayes.tables.table import CodedColumn, Table, TrainingTable, missing_mask, training_table

if TYPE_CHECKING:
    from calibayes.backends.dask.collections import LazyParts

# -- Labels and weights: the first pass over a stream ---------------------------------------------------------

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
        checked_rows.refuse_missing_labels(missing)
    values = np.array([*known.tolist(), None], dtype=object) if missing else known
    classes, fewest = how.classes, how.fewest_classes
    target = checked_rows.read_target(values, unlabeled=how.unlabeled, classes=classes, fewest_classes=fewest)
    places = np.split(target.codes, np.cumsum([len(chunk.values) for chunk in chunks]))
    dtype = np.min_scalar_type(-len(target.classes) - 1)
    pairs = zip(places[: len(chunks)], chunks, strict=True)
    codes = np.concatenate([np.append(place, -1).astype(dtype)[chunk.codes] for place, chunk in pairs])
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
    values, codes[~missing] = checked_rows.distinct(labels[~missing])
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
        return SelectedRows(table, self.codes, np.broadcast_to(self.weight, len(self.codes)), self.start)


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
        from calibayes.backends.dask.frame import selected_parts

        return selected_parts(self, raw)


def compact(values: Array) -> Any:
    """The values, or one number if an array repeats it without storing it again."""
    return values if len(values) == 0 or values.strides[0] else values[0]


# -- How rows are encoded, in this process or on the workers of a Dask cluster --------------------------------


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


# -- The rows of a training -----------------------------------------------------------------------------------

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
    def summary(self) -> summary_sums.Streamed:
        """What encoders learn from: at most four passes over the rows."""
        n, columns = len(self.codes), range(len(self.conversion.converted_names))
        plan = summary_sums.first_plan(columns, len(self.classes), self.weight)
        self.report(f"counting the columns of {n} rows")
        found = self._total(partial(_first_sums, self.conversion, plan, n))
        totals = dict(found["columns"])
        while (further := summary_sums.next_plan(plan, totals)) is not None:
            plan = further
            names = tuple(self.stream.names[j] for j in plan.trees)
            self.report(f"counting {counted(len(names), 'column')} of many distinct numbers again")
            further_sums = partial(_further_sums, self._columns, self.conversion, plan)
            totals = summary_sums.totals_after(totals, self._total(further_sums, names))
        table = self._typed(found)
        chosen = in_sample(0, n, n)
        sample = Sample(table, selected(self.weight, chosen), self.codes[chosen])
        return summary_sums.Streamed(table, self.weight, self.codes, sample, totals, self._blocks)

    def weighted(self, class_weight: Mapping[Any, float] | str | None) -> StreamedRows:
        """The rows of positive weight, multiplied by class weights."""
        rows = self.only(self.weight > 0)
        if class_weight is not None:
            factors = checked_rows.class_factors(class_weight, rows.classes, rows.codes, rows.weight)
            rows = replace(rows, weight=rows.weight * factors, factor=factors)
            rows = rows.only(read_weight(rows.weight, len(rows.weight)) > 0)
        checked_rows.check_total_weight(rows.weight)
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

    def _blocks(self, encoder: Any, counts: Any) -> Any:
        """All rows for the growth of trees, see `TableSummary.blocks`."""
        from calibayes.streams.growth_blocks import growth_blocks

        return growth_blocks(self, encoder, counts)

    def _total(self, function: Callable[[SelectedRows], Any], names: tuple[str, ...] | None = None) -> Any:
        """The sum over the chunks of a function of their rows that take part."""
        return self.engine.total(function, self.chunks(names))

    def chunks(self, names: tuple[str, ...] | None = None, weight: Array | None = None) -> SelectedChunks:
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
            from calibayes.backends.dask.frame import EncodedOnWorkers

            return EncodedOnWorkers(self.chunks(weight=weight), self._encoding(binding), held_out, sizes)
        return ArraySource(self.encoded(binding), self.codes, weight, held_out, **sizes)

    @property
    def is_on_workers(self) -> bool:
        """Whether partitions are read and encoded by the workers of a distributed engine."""
        return is_distributed(self.engine) and self.chunks().chunks.is_lazy

    def encoded(self, binding: Any) -> dict[str, KeptArray]:
        """The encoded columns of each family of a column binding, from one pass over the rows.

        They are kept in memory, or beyond a budget in a temporary file.
        """
        encoding, n = self._encoding(binding), len(self.codes)
        self.report(f"encoding {n} rows")
        sizes = encoding.widths.items()
        row_bytes = sum(width * encoding.types[name].itemsize for name, width in sizes)
        is_small = n * row_bytes <= memory_budget()
        allocate: Callable[..., KeptArray] = np.zeros if is_small else KeptArrays().allocate
        arrays = {name: allocate((n, width), encoding.types[name]) for name, width in sizes}

        def write(place: tuple[int, dict[str, Array]]) -> dict[str, int]:
            start, encoded = place
            for name, columns in encoded.items():
                arrays[name][start : start + len(columns)] = columns
            return {}

        if self.is_on_workers:
            for place in self.engine.each(encoding.placed, self.chunks()):
                write(place)
        else:
            self._total(lambda rows: write(encoding.placed(rows)))
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
        table, rows = self._typed(self._total(partial(_some_rows, n, most))), self.only(chosen)
        weight, positions = np.array(rows.weight), np.flatnonzero(chosen)
        return Rows(table, rows.codes.astype(np.int64), weight, positions, rows.factor)

    def taken(self, keep: Array) -> Rows:
        """The rows where ``keep`` is true, in memory, in the types that all rows have in common."""
        rows, conversion = self.only(keep), self.summary.conversion
        found = rows._total(partial(_some_rows, len(rows.codes), len(rows.codes)))
        assert conversion is not None
        table = conversion.apply(as_types(concatenated(found["rows"]), conversion.types))
        codes, positions = rows.codes.astype(np.int64), np.flatnonzero(keep)
        return Rows(table, codes, np.array(rows.weight), positions, rows.factor)

    def mapped(self, function: Callable[[Table], Array]) -> Array:
        """A function of tables with a row of values for each of their rows, of all rows, in one pass."""
        self.report(f"predicting {len(self.codes)} rows")
        of_chunk = partial(_of_table, function, self.summary.conversion)
        return np.concatenate(self.engine.each(of_chunk, self.chunks()))


def _of_table(function: Callable[[Table], Array], conversion: Any, rows: SelectedRows) -> Array:
    """A function of the converted table of a chunk."""
    return function(conversion.apply(as_types(rows.table, conversion.types)).with_cache())


def _first_sums(conversion: Any, plan: summary_sums.SurveyPlan, n: int, rows: SelectedRows) -> dict[str, Any]:
    sums = summary_sums.column_sums(conversion.apply(rows.table), rows.weight, rows.codes, plan)
    return {"columns": sums, **_some_rows(n, SAMPLE_ROWS, rows)}


def _further_sums(
    columns: StreamColumns, conversion: Any, plan: summary_sums.SurveyPlan, rows: SelectedRows
) -> dict[str, Any]:
    """Sums of the columns of a plan, if only these were read."""
    read = tuple(plan.trees)
    converters = {j: converter for j, converter in conversion.converters.items() if j in read}
    whole = with_unread(rows.table, columns, read, rows.table.n)
    table = replace(conversion, converters=converters).apply(whole)
    return dict(summary_sums.column_sums(table, rows.weight, rows.codes, plan))


def _some_rows(n: int, most: int, rows: SelectedRows) -> dict[str, Any]:
    """The rows that are in a sample of about ``most`` of all n rows, and the types of the columns."""
    chosen = in_sample(rows.start, rows.table.n, n, most)
    return {"types": column_types(rows.table), "rows": [rows.table.rows(chosen)]}


def selected(weight: Array, keep: Array) -> Array:
    """The weights where ``keep`` is true; one number for all rows still takes the memory of one."""
    return weight[keep] if weight.strides[0] else np.broadcast_to(weight[0], int(np.count_nonzero(keep)))


def stored_type(columns: Array, binding: Any, family: str) -> np.dtype[Any]:
    """The type in which encoded columns are stored: the narrowest one for codes of levels."""
    levels = binding.encoders[family].layout().get("levels", ())
    are_codes = columns.dtype.kind in "iu" and bool(levels)
    return np.dtype(code_type(max(levels))) if are_codes else columns.dtype

"""Files and datasets of pyarrow as sources of Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from calibayes.streams.arrow_readers import Readable, read_scanned, sequential
from calibayes.streams.chunks import chunk_rows
from calibayes.streams.csv_files import CsvFile, looked_at, opened_csv, together
from calibayes.streams.found_files import FoundFile, with_partition_fields
from calibayes.streams.ipc import IpcStreamFile, is_ipc_stream, opened_ipc, opened_ipc_stream
from calibayes.streams.parquet import GroupedFile, GroupedSource, ParquetFile, opened_parquet, same_columns
from calibayes.tables.arrow_text import module_of_pyarrow, pyarrow
from calibayes.tables.csv_file import Markers


def read_parquet_files(files: Sequence[FoundFile], where: str) -> Readable:
    """Parquet files that have the same columns."""
    opened = [opened_parquet(file.path, file.filesystem, file.partition) for file in files]
    same_columns(opened)
    return _grouped(opened, with_partition_fields(opened[0].schema, files[0].partition_types), where)


def read_ipc_files(files: Sequence[FoundFile], where: str) -> Readable:
    """Files of Arrow IPC that have the same columns; files that hold streams are read from beginning to end."""
    if any(is_ipc_stream(file.path, file.filesystem) for file in files):
        return _read_ipc_streams(files, where)
    opened = [opened_ipc(file.path, file.filesystem, file.partition) for file in files]
    same_columns(opened)
    return _grouped(opened, with_partition_fields(opened[0].schema, files[0].partition_types), where)


def read_csv_files(files: Sequence[FoundFile], where: str) -> Readable:
    """CSV files that have the same columns; what a column holds is found in the first file that has a value of it."""
    missing = Markers()
    looks = [looked_at(file.path, file.filesystem, missing) for file in files]
    for look in looks[1:]:
        if look.names != looks[0].names:
            raise ValueError(f"{look.path} has other columns than {looks[0].path}: their headers differ")
    first = opened_csv(together(looks), files[0].partition, missing)
    opened = [
        replace(first, look=look, partition=_further(file.partition, look.names))
        for look, file in zip(looks, files, strict=True)
    ]
    schema = with_partition_fields(first.schema, files[0].partition_types)
    return sequential(schema, schema.empty_table(), partial(_joined_batches, opened), where)


def _further(partition: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The columns of a partition that the file does not have itself."""
    return {name: value for name, value in partition.items() if name not in names}


def _grouped(files: Sequence[GroupedFile], schema: Any, where: str) -> Readable:
    source = GroupedSource(tuple(files), chunk_rows(len(schema.names)))
    if source.rows == 0:
        raise ValueError(f"{where} has no rows")
    return Readable(schema, schema.empty_table(), source, where)


def _read_ipc_streams(files: Sequence[FoundFile], where: str) -> Readable:
    opened = [opened_ipc_stream(file.path, file.filesystem, file.partition) for file in files]
    same_columns(opened)
    schema = with_partition_fields(opened[0].schema, files[0].partition_types)
    return sequential(schema, schema.empty_table(), partial(_joined_batches, opened), where)


def _joined_batches(files: Sequence[IpcStreamFile | CsvFile], columns: Sequence[str]) -> Iterator[Any]:
    for file in files:
        yield from file.batches(columns)


def read_dataset(dataset: Any) -> Readable:
    """A dataset of pyarrow: Parquet files by row groups, others from beginning to end."""
    ds = module_of_pyarrow("dataset")
    if not isinstance(dataset, ds.FileSystemDataset) or not isinstance(dataset.format, ds.ParquetFileFormat):
        return read_scanned(dataset)
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # that of a dataset with a filter
        return read_scanned(dataset)
    files = [_parquet_of(fragment, dataset.schema) for fragment in fragments]
    plain = [file for file in files if file is not None]
    return (
        _grouped(plain, dataset.schema, "the dataset") if len(plain) == len(files) else read_scanned(dataset)
    )


def _parquet_of(fragment: Any, schema: Any) -> ParquetFile | None:
    """A file of a dataset; None if it has not all its columns in the types of the dataset, or not all row groups."""
    ds, pa = module_of_pyarrow("dataset"), pyarrow()
    keys = ds.get_partition_keys(fragment.partition_expression)
    types = {name: schema.field(name).type for name in schema.names}
    partition = {name: pa.scalar(value, types[name]) for name, value in keys.items() if name in types}
    file = opened_parquet(fragment.path, fragment.filesystem, partition)
    own = dict(zip(file.schema.names, file.schema.types, strict=True))
    is_plain = all(name in partition or own.get(name) == kind for name, kind in types.items())
    return file if is_plain and fragment.num_row_groups == len(file.group_rows) else None

"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from calibayes.tables.arrow_text import is_text
from calibayes.tables.streams.arrow.modules import module_of_pyarrow
from calibayes.tables.streams.faults import read_twice

BUFFER = 2**18
"""Bytes of a column of a local file that are read at a time, so that no column of a large row group is held compressed."""


@dataclass(frozen=True)
class ParquetFile:
    """`GroupedFile` of row groups."""

    path: str
    filesystem: Any
    schema: Any
    group_rows: tuple[int, ...]
    partition: Mapping[str, Any]

    group_name: ClassVar[str] = "row group"
    stages: ClassVar[int] = 4

    def batches(self, numbers: Sequence[int], columns: Sequence[str], size: int) -> Iterator[Any]:
        text = [name for name in columns if is_text(self.schema.field(name).type)]
        with _opened(self.path, self.filesystem, text) as file:
            yield from file.iter_batches(
                size, row_groups=list(numbers), columns=list(columns), use_threads=False
            )


def opened_parquet(path: str, filesystem: Any, partition: Mapping[str, Any]) -> ParquetFile:
    """The description of a file, from its footer; its own columns take precedence over those of its partition."""

    def read() -> ParquetFile:
        with _opened(path, filesystem, ()) as file:
            metadata, schema = file.metadata, file.schema_arrow
            sizes = tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
            further = {name: value for name, value in partition.items() if name not in schema.names}
            return ParquetFile(path, filesystem, schema, sizes, further)

    return read_twice(read, path)


def _opened(path: str, filesystem: Any, text: Sequence[str]) -> Any:
    """An open file whose columns of text are read as dictionaries."""
    is_local = isinstance(filesystem, module_of_pyarrow("fs").LocalFileSystem)
    return module_of_pyarrow("parquet").ParquetFile(
        filesystem.open_input_file(path),
        read_dictionary=list(text),
        buffer_size=BUFFER if is_local else 0,
        pre_buffer=not is_local,  # few large requests over a network
        page_checksum_verification=True,
    )

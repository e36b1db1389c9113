"""Data frames as CSV, JSON lines, Parquet or Arrow."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

from calibayes.tables.streams.arrow.modules import module_of_pyarrow, pyarrow


def write_frame(frame: Any, kind: str, file: BinaryIO) -> None:
    """Write a pandas data frame in a format. Raises ValueError if the format needs pyarrow and it is not installed."""
    frame = _with_integers(frame)
    if kind in ("csv", "jsonl"):
        text = io.StringIO()
        if kind == "csv":
            frame.to_csv(text, index=False)
        else:
            frame.to_json(text, orient="records", lines=True, date_format="iso")
        file.write(text.getvalue().encode())
        return
    try:
        table = pyarrow().Table.from_pandas(frame, preserve_index=False)
    except ImportError:
        raise ValueError(f"writing {kind} needs pyarrow: pip install 'calibayes[parquet]'") from None
    if kind == "parquet":
        module_of_pyarrow("parquet").write_table(table, file)
        return
    with module_of_pyarrow("ipc").new_file(file, table.schema) as writer:
        writer.write_table(table)


def _with_integers(frame: Any) -> Any:
    """The data frame with columns of whole numbers as integers: 2007 rather than 2007.0."""
    whole = {
        name: frame[name].astype("Int64")
        for name in frame.columns
        if frame[name].dtype.kind == "f" and _are_whole(frame[name].dropna())
    }
    return frame.assign(**whole)


def _are_whole(numbers: Any) -> bool:
    return len(numbers) > 0 and bool(((numbers.round() == numbers) & (numbers.abs() < 2**53)).all())

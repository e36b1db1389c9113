"""What a model file says in its header: no tensor is read, and no model is made."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from calibayes.core.notices import counted, listed, printable, shortened
from calibayes.files import container
from calibayes.files.codec import PLAIN_VALUES, SHORT_FORMS, Reader
from calibayes.files.container import ModelFileError, read_document
from calibayes.files.model_file import PARTS
from calibayes.files.value_objects import fits

CONTENTS: Final[Mapping[str, Any]] = {
    "class": str,
    "classes": tuple[str | bool | int | float, ...],
    "rows": int,
    "columns": tuple[str, ...],
    "kinds": tuple[str, ...],
    "missing": tuple[int, ...],
    "kept_rows": int,
}
"""Part of the contents -> its type."""
HOLDING_ROWS: Final = ("KernelRows", "ProductKernel")
"""Classes whose tensors are training rows and their weights."""
ANY_SIZE: Final = 2**63
LONGEST_PRINTED: Final = 60
LONGEST_PATH: Final = 300
UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


class ColumnDescription(NamedTuple):
    """A column of the training table: its name, what it held, and its number of missing cells."""

    name: str
    kind: str
    missing: int


class TensorDescription(NamedTuple):
    """A tensor: its type as in the file (such as "F64"), its shape and its number of bytes."""

    dtype: str
    shape: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class FileDescription:
    """What the header of a model file says. `print` shows it, shortened for wide tables.

    The file may be changed: the checksum of its header is right, that of its tensors was not computed. Its text is from
    whoever wrote it.

    Attributes
    ----------
    path : str
    estimator : str
        Name of the class.
    format_version : int
    calibayes_version : str
        The version of the library that wrote the file.
    classes : tuple
        Class labels, in the order of `predict_proba`; dates as texts.
    rows : int
        Number of training rows.
    columns : tuple of ColumnDescription
        Columns of the training table.
    kept_rows : int
        Number of training rows in the model.
    kept_row_tensors : tuple of str
        Names of the tensors that hold them, and their weights.
    tensors : mapping
        Name -> TensorDescription, in the order of the file.
    file_size : int
        In bytes.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import calibayes
    >>> from calibayes.files import describe_file
    >>> model = calibayes.GaussianNB().fit([[0.0], [1.0], [3.0], [4.0]], ["a", "a", "b", "b"])
    >>> with TemporaryDirectory() as folder:
    ...     calibayes.save(model, f"{folder}/model.safetensors")
    ...     describe_file(f"{folder}/model.safetensors").classes
    ('a', 'b')
    """

    path: str
    estimator: str
    format_version: int
    calibayes_version: str
    classes: tuple[Any, ...]
    rows: int
    columns: tuple[ColumnDescription, ...]
    kept_rows: int
    kept_row_tensors: tuple[str, ...]
    tensors: Mapping[str, TensorDescription]
    file_size: int

    @property
    def tensor_size(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.size for tensor in self.tensors.values())

    def __str__(self) -> str:
        labels = listed([printed(label) for label in self.classes])
        sizes = f"{size_text(self.tensor_size)}; file {size_text(self.file_size)}"
        columns = [(printed(c.name), printed(c.kind), str(c.missing)) for c in self.columns]
        kept = listed([printed(name, LONGEST_PATH) for name in self.kept_row_tensors])
        lines = [
            f"{printed(self.path, LONGEST_PATH)}: {printed(self.estimator)}",
            f"format {self.format_version}, written by calibayes {printed(self.calibayes_version)}",
            f"{counted(len(self.classes), 'class', 'classes')}: {labels}",
            f"training table: {counted(self.rows, 'row')}, {counted(len(self.columns), 'column')}",
            *([shortened([("column", "type", "missing"), *columns])] if columns else []),
            f"training rows kept in the model: {self.kept_rows}" + (f" (tensors {kept})" if kept else ""),
            f"{counted(len(self.tensors), 'tensor')}, {sizes}",
            "only the header was read: the checksum of the tensors was not checked",
        ]
        return "\n".join(lines)

    def tensor_table(self) -> str:
        """All tensors, one in a line, as text."""
        lines = [
            (printed(name, LONGEST_PATH), tensor.dtype, str(list(tensor.shape)), size_text(tensor.size))
            for name, tensor in self.tensors.items()
        ]
        return shortened([("tensor", "type", "shape", "size"), *lines], most=len(lines))

    def as_json(self) -> Mapping[str, Any]:
        """The same as lists, mappings, texts and numbers that JSON can hold."""
        return {
            "path": self.path,
            "class": self.estimator,
            "format_version": self.format_version,
            "calibayes_version": self.calibayes_version,
            "classes": [_as_json(label) for label in self.classes],
            "rows": self.rows,
            "columns": [column._asdict() for column in self.columns],
            "kept_rows": self.kept_rows,
            "kept_row_tensors": list(self.kept_row_tensors),
            "tensors": {name: tensor._asdict() for name, tensor in self.tensors.items()},
            "tensor_size": self.tensor_size,
            "file_size": self.file_size,
            "tensors_checked": False,
        }


def describe_file(path: str | os.PathLike[str]) -> FileDescription:
    """Describe a model file of any size from its header.

    The checksum of the header is checked. No tensor is read: whether the file can be loaded is known after `load`.

    Raises
    ------
    ModelFileError
        If the file is no model file, or its header is damaged, truncated, too large or of a newer version of the format.

    Examples
    --------
    >>> import calibayes, tempfile, pathlib
    >>> from calibayes.files import describe_file
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> calibayes.save(calibayes.GaussianNB().fit([[0.0], [1.0], [1.5], [3.0]], ["no", "no", "yes", "yes"]), path)
    >>> describe_file(path).classes
    ('no', 'yes')
    """
    name = os.fspath(path)
    with container.open_file(path, ANY_SIZE) as file:
        header = container.read_header(file)
    document = read_document(header, name, *PARTS)
    contents = _contents(document["contents"], name)
    lists = (contents[part] for part in ("columns", "kinds", "missing"))
    return FileDescription(
        path=name,
        estimator=contents["class"],
        format_version=document["format_version"],
        calibayes_version=document["calibayes_version"],
        classes=contents["classes"],
        rows=contents["rows"],
        columns=tuple(map(ColumnDescription, *lists)),
        kept_rows=contents["kept_rows"],
        kept_row_tensors=tuple(dict.fromkeys(_row_tensors(document["model"]))),
        tensors={
            key: TensorDescription(container.NAMES[tensor.dtype], tensor.shape, tensor.end - tensor.first)
            for key, tensor in header.tensors.items()
        },
        file_size=header.file_size,
    )


def _contents(node: Any, name: str) -> Mapping[str, Any]:
    """The contents as values. Raises ModelFileError if they are not what `save` writes."""
    reads = {**SHORT_FORMS, **{codec.tag: codec.read for codec in PLAIN_VALUES.values()}}
    contents = Reader(reads, {}).read(node, "contents")
    valid = isinstance(contents, dict) and contents.keys() == CONTENTS.keys()
    valid = valid and all(fits(contents[part], kind) for part, kind in CONTENTS.items())
    valid = valid and len(contents["columns"]) == len(contents["kinds"]) == len(contents["missing"])
    if not valid:
        raise ModelFileError(f"{name} is invalid: its contents are not those of a model")
    return dict(contents)


def _row_tensors(node: Any, holding: bool = False) -> Iterator[str]:
    """Names of the tensors that hold training rows, in the order of the document."""
    if isinstance(node, dict):
        holding = holding or node.get("$type") in HOLDING_ROWS
        if holding and isinstance(node.get("$tensor"), str):
            yield node["$tensor"]
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        if isinstance(part, dict | list):
            yield from _row_tensors(part, holding)


def printed(value: Any, longest: int = LONGEST_PRINTED) -> str:
    """Text of a file as `printable` text, cut off if it is long."""
    text = str(value)
    return printable(text[:longest]) + ("..." if len(text) > longest else "")


def size_text(size: int) -> str:
    """A number of bytes with a unit.

    >>> size_text(1), size_text(820), size_text(8_896), size_text(12_345_678)
    ('1 byte', '820 bytes', '8.9 kB', '12.3 MB')
    """
    if size < 1000:
        return counted(size, "byte")
    power = min(int(math.log10(size)) // 3, len(UNITS) - 1)
    return f"{size / 1000**power:.1f} {UNITS[power]}"


def _as_json(label: Any) -> Any:
    return str(label) if isinstance(label, float) and not math.isfinite(label) else label

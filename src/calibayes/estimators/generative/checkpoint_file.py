"""The file of a checkpoint: the format of model files, with a short closed list of classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from calibayes._version import __version__
from calibayes.learn.checkpoint import PointSnapshot, RunSnapshot
from calibayes.storage import container
from calibayes.storage.arrays import ARRAYS, TENSORS
from calibayes.storage.codec import INVALID, SHORT_FORMS, Read, Reader, Write, Writer, reason
from calibayes.storage.document import document_text, read_document
from calibayes.storage.errors import ModelFileError
from calibayes.storage.value_objects import read_same, value_codec
from calibayes.storage.values import PLAIN_VALUES

MOST_BYTES: Final = 2**33


@dataclass(frozen=True)
class TrainingSnapshot:
    """A training: its fingerprints, and its runs by name."""

    fingerprints: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, RunSnapshot] = field(default_factory=dict)


@dataclass(frozen=True)
class FitSnapshot:
    """A fit: its fingerprints, and its trainings by name."""

    fingerprints: Mapping[str, str]
    trainings: Mapping[str, TrainingSnapshot] = field(default_factory=dict)


VALUES: Final[Mapping[str, type]] = {
    cls.__name__: cls for cls in (FitSnapshot, TrainingSnapshot, RunSnapshot, PointSnapshot)
}
"""Name -> class: all that a checkpoint can hold, besides arrays and plain values."""

_codecs = {**PLAIN_VALUES, **ARRAYS, **dict.fromkeys(VALUES.values(), value_codec(VALUES))}
_WRITES: Mapping[Any, Write] = {kind: codec.write for kind, codec in _codecs.items()}
_READS: Mapping[str, Read] = {
    **{codec.tag: codec.read for codec in _codecs.values()},
    **SHORT_FORMS,
    **TENSORS,
    "$same": read_same,
}


def write(snapshot: FitSnapshot, path: str) -> None:
    """Replace the file. Raises OSError if that fails; then the old one is as it was."""
    writer = Writer(_WRITES)
    written = {"checkpoint": writer.write(snapshot, "checkpoint")}
    container.write(path, document_text(written, "the document of this checkpoint"), writer.tensors)


def read(path: str) -> FitSnapshot:
    """What is in a file. Raises ModelFileError if it is no checkpoint, damaged, truncated or of another version."""
    with container.open_file(path, MOST_BYTES) as file:
        header = container.read_header(file)
        document = read_document(header, path, "checkpoint")
        tensors = container.read_tensors(file, header)
    if document["calibayes_version"] != __version__:
        version = document["calibayes_version"][:40]
        raise ModelFileError(f"{path} was written by calibayes {version}, and this is {__version__}")
    try:
        return _snapshot_of(document["checkpoint"], tensors)
    except INVALID as error:
        raise ModelFileError(f"{path} is invalid: {reason(error)}") from error


def _snapshot_of(node: Any, tensors: Mapping[str, Any]) -> FitSnapshot:
    reader = Reader(_READS, tensors)
    snapshot = reader.read(node, "checkpoint")
    if not isinstance(snapshot, FitSnapshot) or reader.used != tensors.keys():
        raise ValueError("it is not the state of a fit")
    return snapshot

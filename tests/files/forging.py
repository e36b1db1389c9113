"""Take a model file apart, change any part of it, and put it together again with checksums that are right or wrong.

A test changes the parts of a valid file. Checksums and places of tensors are computed anew unless the test sets them, so
that a check behind the checksums is reached.
"""

import copy
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibayes.files.container import DIGITS, NAMES, START, TYPES

ZEROS = "0" * 64


@dataclass
class Parts:
    """The parts of a model file. A test changes them in place."""

    document: Any
    """JSON value; a str is the text of a document as it is."""
    tensors: dict[str, np.ndarray]
    entries: dict[str, Any] = field(default_factory=dict)
    """Entries of the header that replace those of the tensors, or are added."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Entries that replace those of the metadata, or are added."""

    @property
    def model(self) -> Any:
        return self.document["model"]

    @property
    def fitted(self) -> Any:
        return self.model["attributes"]["fitted_"]

    def copy(self) -> "Parts":
        return copy.deepcopy(self)


def taken_apart(content: bytes) -> Parts:
    """The parts of a valid file."""
    length = int.from_bytes(content[:8], "little")
    header, payload = json.loads(content[8 : 8 + length]), content[8 + length :]
    document = json.loads(header.pop("__metadata__")["document"])
    return Parts(document, {name: _array(entry, payload) for name, entry in header.items()})


def _array(entry: Any, payload: bytes) -> np.ndarray:
    first, last = entry["data_offsets"]
    return np.frombuffer(payload[first:last], TYPES[entry["dtype"]]).reshape(entry["shape"]).copy()


def put_together(parts: Parts) -> bytes:
    """A file of these parts, with right checksums and places, but for what ``entries`` and ``metadata`` set."""
    payload, entries = b"".join(array.tobytes() for array in parts.tensors.values()), {}
    first = 0
    for name, array in parts.tensors.items():
        last = first + array.nbytes
        entries[name] = {
            "dtype": NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [first, last],
        }
        first = last
    return signed(header_text(parts, {**entries, **parts.entries}, payload), payload)


def header_text(parts: Parts, entries: dict[str, Any], payload: bytes) -> str:
    metadata = {
        "header_sha256": ZEROS,
        "format": "calibayes",
        "tensors_sha256": hashlib.sha256(payload).hexdigest(),
        "document": document_text(parts),
        **parts.metadata,
    }
    return json.dumps({"__metadata__": metadata, **entries}, separators=(",", ":"))


def document_text(parts: Parts) -> str:
    text = parts.document
    return text if isinstance(text, str) else json.dumps(text, separators=(",", ":"))


def signed(header: str | bytes, payload: bytes = b"", length: int | None = None) -> bytes:
    """A file of a header with the right checksum. ``length`` replaces the length of the header."""
    unsigned = header.encode("utf-8", "surrogatepass") if isinstance(header, str) else header
    unsigned += b" " * (-len(unsigned) % 8)
    assert unsigned[: DIGITS.stop] == START + ZEROS.encode()
    digest = hashlib.sha256(unsigned).hexdigest().encode()
    stated = len(unsigned) if length is None else length
    return (
        stated.to_bytes(8, "little") + unsigned[: DIGITS.start] + digest + unsigned[DIGITS.stop :] + payload
    )

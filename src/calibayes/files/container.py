"""The bytes of a model file: the safetensors format, with checksums.

A file is the length of the header (8 bytes, little-endian), the header, and the bytes of the tensors one after another.
The header is JSON: ``__metadata__`` (texts by name) and, for each tensor, its type, its shape, its first byte and the one after its last.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from typing import Any, Final

import numpy as np

from calibayes._version import __version__
from calibayes.core.notices import counted
from calibayes.core.protocols import Array
from calibayes.core.replaced_file import replaced_file


class ModelFileError(ValueError):
    """A model file that cannot be read or written, with the reason in one sentence.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import calibayes
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.safetensors")
    ...     _ = path.write_bytes(b"no model")
    ...     try:
    ...         calibayes.load(path)
    ...     except calibayes.ModelFileError as error:
    ...         print("refused")
    refused
    """


# -- Strict reading of JSON: every key once, finite numbers, bounded size and depth --------------------------

MOST_VALUES: Final = 5_000_000
"""Largest number of values of a document, so that parsing it takes at most about a gigabyte."""
MOST_DEPTH: Final = 100
MOST_DIGITS: Final = 400
"""Of a whole number: more than any float has."""


def parse_json(content: bytes | str, name: str) -> Any:
    """The value of a JSON text. Raises ModelFileError, naming the text, if it is not valid or too large."""
    try:
        text = content.decode() if isinstance(content, bytes) else content
    except UnicodeDecodeError:
        raise ModelFileError(f"{name} is not UTF-8") from None
    require_few_values(text, name)
    try:
        return json.loads(
            text, object_pairs_hook=_distinct, parse_constant=_refuse, parse_float=_finite, parse_int=_whole
        )
    except RecursionError:
        raise ModelFileError(f"{name} is nested too deeply") from None
    except ModelFileError as error:
        raise ModelFileError(f"{name} {error}") from None
    except ValueError:
        raise ModelFileError(f"{name} is not valid JSON") from None


def require_few_values(text: str, name: str) -> None:
    """Raises ModelFileError if a JSON text has too many values; commas and brackets are counted, also within texts."""
    if sum(text.count(mark) for mark in ",[{") > MOST_VALUES:
        raise ModelFileError(f"{name} is too large: more than {MOST_VALUES:,} values")


def require_depth(value: Any, name: str, depth: int = 0) -> None:
    """Raises ModelFileError if lists and objects are nested too deeply."""
    if depth > MOST_DEPTH:
        raise ModelFileError(f"{name} is nested too deeply")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in inner:
        if isinstance(part, dict | list):
            require_depth(part, name, depth + 1)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    distinct = dict(pairs)
    if len(distinct) < len(pairs):
        raise ModelFileError("has the same key twice")
    return distinct


def _refuse(constant: str) -> Any:
    raise ModelFileError(f"contains {constant}, which is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ModelFileError("contains a number that is too large")
    return value


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ModelFileError("contains a number that is too large")
    return int(digits)


# -- The bytes of a model file: the safetensors format, with checksums ---------------------------------------
#
# A file is the length of the header (8 bytes, little-endian), the header, and the bytes of the tensors one after another.
# The header is JSON: ``__metadata__`` (texts by name) and, for each tensor, its type, its shape, its first byte and the one after its last.

TYPES: Final[Mapping[str, np.dtype[Any]]] = {
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
    "U64": np.dtype("<u8"),
    "F32": np.dtype("<f4"),
    "I32": np.dtype("<i4"),
    "U32": np.dtype("<u4"),
    "F16": np.dtype("<f2"),
    "I16": np.dtype("<i2"),
    "U16": np.dtype("<u2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
"""Name of a type in the file -> type, the widest first: tensors are written in this order, so that each is aligned."""
NAMES: Final = {dtype: name for name, dtype in TYPES.items()}

START: Final = b'{"__metadata__":{"header_sha256":"'
"""How every header begins: the checksum follows, at a fixed place."""
DIGITS: Final = slice(len(START), len(START) + 64)
MOST_HEADER_BYTES: Final = 100_000_000
"""That of the safetensors format."""
MOST_AXES: Final = 8


@dataclass(frozen=True)
class Tensor:
    """A tensor as the header describes it; ``first`` and ``end`` count bytes after the header."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    first: int
    end: int


@dataclass(frozen=True)
class Header:
    """The content of a header."""

    document: str
    tensors_sha256: str
    tensors: Mapping[str, Tensor]
    length: int
    """In bytes."""
    file_size: int


def write(path: str | os.PathLike[str], document: str, tensors: Mapping[str, Array]) -> None:
    """Write a file. A crash, a full disk or an interruption leaves the old one."""
    ordered = dict(sorted(tensors.items(), key=lambda item: list(NAMES).index(item[1].dtype)))
    header = _header(document, ordered)
    with replaced_file(path) as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        for array in ordered.values():
            file.write(_bytes(array))


def _header(document: str, tensors: Mapping[str, Array]) -> bytes:
    digest, entries, first = hashlib.sha256(), {}, 0
    for name, array in tensors.items():
        digest.update(_bytes(array))
        last = first + array.nbytes
        entries[name] = {
            "dtype": NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [first, last],
        }
        first = last
    metadata = {
        "header_sha256": "0" * 64,
        "format": "calibayes",
        "tensors_sha256": digest.hexdigest(),
        "document": document,
    }
    text = json.dumps({"__metadata__": metadata, **entries}, separators=(",", ":"), ensure_ascii=False)
    require_few_values(text, "the header of this model")
    content = text.encode()
    content += b" " * (-(8 + len(content)) % 8)
    if len(content) > MOST_HEADER_BYTES:
        raise ModelFileError(
            f"the names of columns and the levels of this model take {len(content):,} bytes, and a model file can hold "
            f"{MOST_HEADER_BYTES:,}: use shorter names, or pool rare levels"
        )
    return _with_checksum(content)


def _with_checksum(content: bytes) -> bytes:
    """A header with the checksum of itself, computed with zeros in place of the checksum."""
    zeroed = content[: DIGITS.start] + b"0" * 64 + content[DIGITS.stop :]
    return zeroed[: DIGITS.start] + hashlib.sha256(zeroed).hexdigest().encode() + zeroed[DIGITS.stop :]


def _bytes(array: Array) -> memoryview:
    """The memory of an array that is not empty."""
    return array.reshape(-1).data.cast("B")


@contextmanager
def open_file(path: str | os.PathLike[str], most_bytes: int) -> Iterator[BufferedReader]:
    """A regular file of at most so many bytes, open for reading."""
    with open(path, "rb", opener=_open_regular) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            sizes = f"{size:,} bytes, and most_bytes is {most_bytes:,}"
            raise ModelFileError(f"{os.fspath(path)} is too large: {sizes}")
        yield file


def _open_regular(path: str, flags: int) -> int:
    """Open a regular file; a named pipe is not waited for."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise ModelFileError(f"{os.fspath(path)} is not a file")


def read_header(file: BufferedReader) -> Header:
    """The checked header: its checksum is right, and the tensors fill the rest of the file without gap or overlap."""
    size, name = os.fstat(file.fileno()).st_size, file.name
    length = int.from_bytes(file.read(8), "little")
    start = file.read(len(START))
    if start != START:
        is_start = size >= 8 and START.startswith(start) and length <= MOST_HEADER_BYTES
        problem = "is truncated, or" if is_start else "is"
        raise ModelFileError(f"{name} {problem} not a model file of calibayes")
    if length > MOST_HEADER_BYTES:
        raise ModelFileError(
            f"the header of {name} is too large: {length:,} bytes, at most {MOST_HEADER_BYTES:,} are read"
        )
    if size < 8 + max(length, DIGITS.stop):
        raise ModelFileError(f"{name} is truncated: it ends before its header does")
    if length < DIGITS.stop:
        raise ModelFileError(f"{name} is damaged: its header is too short")
    content = start + file.read(length - len(start))
    if _with_checksum(content) != content:
        raise ModelFileError(f"{name} is damaged: the checksum of its header is wrong")
    return _parsed_header(content, size, name)


def _parsed_header(content: bytes, size: int, name: str) -> Header:
    parsed = parse_json(content, f"the header of {name}")
    metadata = parsed.pop("__metadata__") if isinstance(parsed, dict) else None
    expected = {"header_sha256", "format", "tensors_sha256", "document"}
    if (
        not isinstance(metadata, dict)
        or metadata.keys() != expected
        or not all(isinstance(text, str) for text in metadata.values())
        or metadata["format"] != "calibayes"
    ):
        raise ModelFileError(f"{name} is not a model file of calibayes: it has other metadata")
    tensors = {key: _tensor(key, entry, name) for key, entry in parsed.items()}
    _check_places(tensors, size - 8 - len(content), name)
    return Header(metadata["document"], metadata["tensors_sha256"], tensors, len(content), size)


def _tensor(key: str, entry: Any, name: str) -> Tensor:
    """The description of a tensor. Raises ModelFileError if its shape does not fit its bytes."""
    valid = isinstance(entry, dict) and entry.keys() == {"dtype", "shape", "data_offsets"}
    valid = valid and isinstance(entry["dtype"], str) and entry["dtype"] in TYPES
    valid = valid and are_sizes(entry["shape"], MOST_AXES)
    valid = valid and are_sizes(entry["data_offsets"], 2) and len(entry["data_offsets"]) == 2
    if valid:
        dtype, (first, last) = TYPES[entry["dtype"]], entry["data_offsets"]
        if 0 < math.prod(entry["shape"]) * dtype.itemsize == last - first:
            return Tensor(dtype, tuple(entry["shape"]), first, last)
    raise ModelFileError(f"{name} has an invalid tensor {key[:80]!r}")


def are_sizes(given: Any, most: int) -> bool:
    """Whether a JSON value is a list of at most so many lengths."""
    is_list = isinstance(given, list) and len(given) <= most
    return is_list and all(type(n) is int and 0 <= n < 2**62 for n in given)


def _check_places(tensors: Mapping[str, Tensor], size: int, name: str) -> None:
    """Raises ModelFileError unless the tensors lie one after another, in the order of the header, to the end of the file."""
    end = 0
    for key, tensor in tensors.items():
        if tensor.first != end:
            raise ModelFileError(f"{name} has a gap or an overlap before tensor {key[:80]!r}")
        end = tensor.end
    if size < end:
        raise ModelFileError(f"{name} is truncated: missing {counted(end - size, 'byte')}")
    if size > end:
        raise ModelFileError(f"{name} has {counted(size - end, 'byte')} after its last tensor")


def read_tensors(file: BufferedReader, header: Header) -> dict[str, Array]:
    """The tensors of a file whose header was just read. Raises ModelFileError if their checksum is wrong."""
    digest, arrays = hashlib.sha256(), {}
    for key, tensor in header.tensors.items():
        array = np.empty(tensor.shape, tensor.dtype)
        content = _bytes(array)
        if file.readinto(content) != len(content):
            raise ModelFileError(f"{file.name} is truncated: it became shorter while it was read")
        digest.update(content)
        arrays[key] = array
    if digest.hexdigest() != header.tensors_sha256:
        raise ModelFileError(f"{file.name} is damaged: the checksum of its tensors is wrong")
    return arrays


# -- The JSON document of a file: the versions of the format and of the library, and what kind of file it is

FORMAT_VERSION: Final = 2
"""Version of the format that is written. All earlier ones can be read, too."""
KINDS: Final[Mapping[str, str]] = {"model": "a saved model", "checkpoint": "the checkpoint of a training"}
"""Key of the document that says what kind of file it is -> what it holds."""


def document_text(parts: Mapping[str, Any], name: str) -> str:
    """The text of a document. Raises ModelFileError, naming it, if it is nested too deeply."""
    document = {"format_version": FORMAT_VERSION, "calibayes_version": __version__, **parts}
    require_depth(document, name)
    return json.dumps(document, separators=(",", ":"))


def read_document(header: Header, name: str, *parts: str) -> Mapping[str, Any]:
    """The JSON document of a header. Raises ModelFileError if it is of a newer format or does not have these parts."""
    document: Any = parse_json(header.document, f"the document of {name}")
    version = document.get("format_version") if isinstance(document, dict) else None
    if type(version) is not int or version < 1 or not isinstance(document.get("calibayes_version"), str):
        raise ModelFileError(f"{name} is not a model file of calibayes: its document has no format version")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{name} has the newer format {version}, written by calibayes {document['calibayes_version'][:40]}: "
            f"this is calibayes {__version__}, which reads formats up to {FORMAT_VERSION}; install a newer one"
        )
    require_depth(document, f"the document of {name}")
    for kind, content in KINDS.items():
        if kind in document and kind not in parts:
            expected = next(KINDS[part] for part in parts if part in KINDS)
            raise ModelFileError(f"{name} is {content}, not {expected}")
    keys = {"format_version", "calibayes_version", *parts}
    if document.keys() != keys:
        raise ModelFileError(f"{name} is invalid: its document must have the keys {', '.join(sorted(keys))}")
    return dict(document)


def read(path: str, most_bytes: int, *parts: str) -> tuple[Mapping[str, Any], dict[str, Array]]:
    """The document and the tensors of a file. Raises ModelFileError if one of its checks fails."""
    with open_file(path, most_bytes) as file:
        header = read_header(file)
        return read_document(header, path, *parts), read_tensors(file, header)

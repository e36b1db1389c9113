"""Hostile files whose bytes or header are invalid. Name -> how the file is made, and what its refusal must say."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple

import joblib
import numpy as np

from tests.files.forging import Parts, header_text, put_together, signed, taken_apart
from tests.files.sample_models import small_model


class Hostile(NamedTuple):
    """A hostile file."""

    make: Callable[[], bytes]
    message: str
    """A regular expression that the error's message must contain."""


class Attack:
    """An object whose unpickling ends the process."""

    def __reduce__(self) -> Any:
        import os

        return os._exit, (77,)


def parts() -> Parts:
    """The parts of a small valid file."""
    return taken_apart(small_model().content)


def forged(change: Callable[[Parts], Any]) -> Callable[[], bytes]:
    """A builder of a file whose parts were changed, with right checksums."""

    def make() -> bytes:
        changed = parts()
        change(changed)
        return put_together(changed)

    return make


def entry(name: str, **changes: Any) -> Callable[[], bytes]:
    """A builder of a file in which the entry of a tensor says something else."""
    return forged(lambda p: p.entries.update({name: {**_entries(p)[name], **changes}}))


def _entries(p: Parts) -> dict[str, Any]:
    content = put_together(p)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return {name: value for name, value in header.items() if name != "__metadata__"}


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("model.pkl"), pickle.dumps(Attack()))
    return buffer.getvalue()


def _joblib() -> bytes:
    buffer = io.BytesIO()
    joblib.dump({"model": Attack(), "array": np.arange(3.0)}, buffer)
    return buffer.getvalue()


def _header_with(text: Callable[[str], str], payload: bytes = b"") -> Callable[[], bytes]:
    """A builder of a file whose header is changed as text; the tensors are left out."""

    def make() -> bytes:
        return signed(text(header_text(parts(), {}, payload)), payload)

    return make


def _other_safetensors() -> bytes:
    header = json.dumps({"weight": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(8)


def _length(length: int) -> Callable[[], bytes]:
    return lambda: length.to_bytes(8, "little") + small_model().content[8:]


def _swallowed(length: int) -> Callable[[], bytes]:
    """A file that is all header, while its stated length is tiny."""
    return lambda: signed(header_text(parts(), {}, b""), b"", length)


def _flipped(place: int) -> Callable[[], bytes]:
    def make() -> bytes:
        content = bytearray(small_model().content)
        content[place] ^= 1
        return bytes(content)

    return make


FIRST = "fitted_.classes"
CENTER = "fitted_.binding.encoders.columns.center"
NOT_OURS = "is not a model file of calibayes"
INVALID = "has an invalid tensor"
PLACE = "gap or an overlap"

CONTAINERS = {
    "empty": Hostile(lambda: b"", NOT_OURS),
    "one byte": Hostile(lambda: b"\0", NOT_OURS),
    "eight zeros": Hostile(lambda: bytes(8), "truncated"),
    "pickle": Hostile(lambda: pickle.dumps(Attack()), NOT_OURS),
    "pickle behind a length": Hostile(
        lambda: (99).to_bytes(8, "little") + pickle.dumps(Attack()) + bytes(200), NOT_OURS
    ),
    "zip": Hostile(_zip, NOT_OURS),
    "joblib": Hostile(_joblib, NOT_OURS),
    "other safetensors": Hostile(_other_safetensors, NOT_OURS),
    "pickle as a tensor": Hostile(
        forged(
            lambda p: p.tensors.update(
                model=np.frombuffer(pickle.dumps(Attack()).ljust(64, b"\0"), np.uint8).copy()
            )
        ),
        "'model' is not part of the model",
    ),
    "header of 2**63 bytes": Hostile(_length(2**63), "header .* is too large"),
    "header of 2**64 - 1 bytes": Hostile(_length(2**64 - 1), "header .* is too large"),
    "header longer than the file": Hostile(_length(90_000_000), "truncated"),
    "header of 0 bytes": Hostile(_length(0), "its header is too short"),
    "header of 33 bytes": Hostile(_length(33), "its header is too short"),
    "header of 98 bytes": Hostile(_length(98), "damaged|too short"),
    "header shorter than it says": Hostile(_length(1000), "damaged"),
    "header of 0 bytes that is the whole file": Hostile(_swallowed(0), "its header is too short"),
    "header of 1 byte that is the whole file": Hostile(_swallowed(1), "its header is too short"),
    "flipped bit in the header": Hostile(_flipped(300), "checksum of its header"),
    "flipped bit in the checksum": Hostile(_flipped(50), "checksum of its header"),
    "flipped bit in the last tensor": Hostile(_flipped(-1), "checksum of its tensors"),
    "wrong checksum of the tensors": Hostile(
        forged(lambda p: p.metadata.update(tensors_sha256="0" * 64)), "checksum of its tensors"
    ),
    "checksum of no text": Hostile(forged(lambda p: p.metadata.update(tensors_sha256=7)), NOT_OURS),
    "document of no text": Hostile(forged(lambda p: p.metadata.update(document=["x"])), NOT_OURS),
    "other format": Hostile(forged(lambda p: p.metadata.update(format="pt")), NOT_OURS),
    "unknown metadata": Hostile(forged(lambda p: p.metadata.update(code="import os")), NOT_OURS),
    "metadata twice": Hostile(
        _header_with(lambda text: text[:-1] + ',"__metadata__":{}}'), "has the same key twice"
    ),
    "tensor twice": Hostile(
        _header_with(lambda text: text[:-1] + ',"a":1,"a":2}'),
        "has the same key twice",
    ),
    "metadata key twice": Hostile(
        _header_with(lambda text: text.replace('"format"', '"format":"calibayes","format"', 1)),
        "has the same key twice",
    ),
    "header that is no JSON": Hostile(_header_with(lambda text: text[:-1]), "not valid JSON"),
    "text after the header": Hostile(_header_with(lambda text: text + "{}"), "not valid JSON"),
    "NaN in the header": Hostile(_header_with(lambda text: text[:-1] + ',"a":NaN}'), "contains NaN"),
    "huge number in the header": Hostile(_header_with(lambda text: text[:-1] + ',"a":1e999}'), "too large"),
    "whole number of 10,000 digits in the header": Hostile(
        _header_with(lambda text: text[:-1] + ',"a":' + "9" * 10_000 + "}"), "too large"
    ),
    "header nested deeply": Hostile(
        _header_with(lambda text: text[:-1] + ',"a":' + "[" * 100_000 + "]" * 100_000 + "}"),
        "nested too deeply",
    ),
    "invalid UTF-8 in the header": Hostile(
        lambda: signed(header_text(parts(), {}, b"").encode()[:-1] + b',"\xff\xfe":1}'), "not UTF-8"
    ),
    "encoded surrogate in the header": Hostile(
        _header_with(lambda text: text[:-1] + ',"\ud800":1}'), "not UTF-8"
    ),
    "tensor that is a number": Hostile(forged(lambda p: p.entries.update(extra=3)), INVALID),
    "tensor that is null": Hostile(forged(lambda p: p.entries.update(extra=None)), INVALID),
    "unknown type of a tensor": Hostile(entry(FIRST, dtype="F8_E4M3"), INVALID),
    "object as the type of a tensor": Hostile(entry(FIRST, dtype="O"), INVALID),
    "list as the type of a tensor": Hostile(entry(FIRST, dtype=["I64"]), INVALID),
    "unknown key of a tensor": Hostile(entry(FIRST, strides=[8]), INVALID),
    "shape of 10**18": Hostile(entry(FIRST, shape=[10**18]), INVALID),
    "shape whose product overflows": Hostile(entry(FIRST, shape=[2**33, 2**33]), INVALID),
    "shape whose product overflows to its size": Hostile(entry(FIRST, shape=[2**61 + 2, 8]), INVALID),
    "shape of 10,000 digits": Hostile(entry(FIRST, shape=[10**300]), INVALID),
    "empty tensor with huge axes": Hostile(entry(FIRST, shape=[0, 2**61, 2**61]), INVALID),
    "empty tensor": Hostile(entry(FIRST, shape=[0], data_offsets=[0, 0]), INVALID),
    "shape of 100 axes": Hostile(entry(FIRST, shape=[1] * 99 + [2]), INVALID),
    "negative shape": Hostile(entry(FIRST, shape=[-1, -2]), INVALID),
    "shape of floats": Hostile(entry(FIRST, shape=[2.0]), INVALID),
    "shape of booleans": Hostile(entry(FIRST, shape=[True, 2]), INVALID),
    "shape that is a text": Hostile(entry(FIRST, shape="2"), INVALID),
    "negative offsets": Hostile(entry(FIRST, data_offsets=[-16, 0]), INVALID),
    "reversed offsets": Hostile(entry(FIRST, data_offsets=[16, 0]), INVALID),
    "three offsets": Hostile(entry(FIRST, data_offsets=[0, 16, 16]), INVALID),
    "offsets of floats": Hostile(entry(FIRST, data_offsets=[0.0, 16.0]), INVALID),
    "offsets beyond 64 bits": Hostile(entry(FIRST, data_offsets=[2**64, 2**64 + 16]), INVALID),
    "overlapping tensors": Hostile(
        entry("fitted_.data_statistics.columns.first", data_offsets=[0, 32]), PLACE
    ),
    "gap between tensors": Hostile(entry(CENTER, data_offsets=[8, 24]), PLACE),
    "bytes after the last tensor": Hostile(
        lambda: small_model().content + bytes(8), "8 bytes after its last tensor"
    ),
    "missing bytes of the last tensor": Hostile(lambda: small_model().content[:-8], "missing 8 bytes"),
    "all tensors missing": Hostile(_header_with(lambda text: text), "there is no tensor"),
    "unused tensor": Hostile(
        forged(lambda p: p.tensors.update(extra=np.zeros(1))), "is not part of the model"
    ),
}

"""Model files with a changed header, whose checksum is right again."""

import hashlib
import json


def header_of(path):
    """The header of a model file as JSON, and the bytes after it."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def document_of(path):
    """The document of a model file as JSON."""
    return json.loads(header_of(path)[0]["__metadata__"]["document"])


def write_header(path, header, rest=b""):
    """Write a file with this header, with the checksum that it must have."""
    header["__metadata__"]["header_sha256"] = "0" * 64
    unsigned = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    unsigned += b" " * (-(8 + len(unsigned)) % 8)
    digest = hashlib.sha256(unsigned).hexdigest().encode()
    path.write_bytes(len(unsigned).to_bytes(8, "little") + unsigned.replace(b"0" * 64, digest, 1) + rest)


def with_document(path, change):
    """The file at a path with a changed document: ``change`` edits it in place."""
    header, rest = header_of(path)
    document = json.loads(header["__metadata__"]["document"])
    change(document)
    header["__metadata__"]["document"] = json.dumps(document)
    write_header(path, header, rest)
    return path

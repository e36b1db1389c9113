"""The JSON document of a file: the versions of the format and of the library, and what kind of file it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from calibayes._version import __version__
from calibayes.storage.container import Header
from calibayes.storage.errors import ModelFileError
from calibayes.storage.strict_json import parse_json, require_depth

FORMAT_VERSION: Final = 1
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

"""Download files: resume interrupted downloads, verify checksums, and never leave an incomplete file in place."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

Opener = Callable[[Request], Any]
"""Opens a request and returns a readable response, as urllib's ``urlopen`` does."""

BLOCK_BYTES = 1 << 16


def open_url(request: Request) -> Any:
    """Open a request with urllib and a time limit of 60 seconds."""
    return urlopen(request, timeout=60)


def fetch(url: str, opener: Opener = open_url) -> bytes:
    """The whole response in memory; for small files. Raises ConnectionError if the address cannot be reached."""
    try:
        with opener(Request(url)) as response:
            return bytes(response.read())
    except (URLError, OSError) as error:
        raise ConnectionError(f"{url} cannot be reached: {error}") from error


def download(url: str, path: Path, md5: str | None = None, opener: Opener = open_url) -> Path:
    """Download a file to ``path``; an interrupted download (``.part`` beside it) is resumed.

    Raises ConnectionError if the address cannot be reached, ValueError if the MD5 checksum differs from ``md5``.
    """
    part = path.with_name(path.name + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        _append(url, part, opener)
    except (URLError, OSError) as error:
        raise ConnectionError(
            f"{url} cannot be reached: {error}. The part received so far is kept; try again to resume"
        ) from error
    checksum = file_checksum(part, "md5")
    if md5 is not None and checksum != md5:
        part.unlink()
        raise ValueError(
            f"{url} has the MD5 checksum {checksum}, expected {md5}; the download was deleted, try again"
        )
    os.replace(part, path)
    return path


def _append(url: str, part: Path, opener: Opener) -> None:
    received = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"Range": f"bytes={received}-"} if received else {})
    with opener(request) as response:
        resumed = received and getattr(response, "status", None) == 206
        with part.open("ab" if resumed else "wb") as file:
            while block := response.read(BLOCK_BYTES):
                file.write(block)


def file_checksum(path: Path, algorithm: str = "sha256") -> str:
    """Checksum of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()

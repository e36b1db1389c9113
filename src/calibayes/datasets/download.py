"""Files from the net: resumed where they broke off, checked against their sum, complete or not there at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

Opener = Callable[[Request], Any]
"""What answers a request with something to read from, as urllib's ``urlopen`` does."""

PIECE = 1 << 16


def plain_opener(request: Request) -> Any:
    """The net as it is."""
    return urlopen(request, timeout=60)


def fetch(url: str, opener: Opener = plain_opener) -> bytes:
    """A small answer as a whole."""
    try:
        with opener(Request(url)) as answer:
            return bytes(answer.read())
    except (URLError, OSError) as error:
        raise ConnectionError(f"{url} cannot be reached: {error}") from error


def download(url: str, path: Path, md5: str | None = None, opener: Opener = plain_opener) -> Path:
    """A file at ``path``. What an earlier attempt left beside it (``.part``) is gone on with."""
    part = path.with_name(path.name + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        _append(url, part, opener)
    except (URLError, OSError) as error:
        raise ConnectionError(
            f"{url} cannot be reached: {error}. What has arrived is kept; try again later"
        ) from error
    found = digest(part, "md5")
    if md5 is not None and found != md5:
        part.unlink()
        raise ValueError(f"{url} has the MD5 sum {found}, expected {md5}: it was not kept")
    os.replace(part, path)
    return path


def _append(url: str, part: Path, opener: Opener) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with opener(request) as answer:
        resumed = have and getattr(answer, "status", None) == 206
        with part.open("ab" if resumed else "wb") as file:
            while piece := answer.read(PIECE):
                file.write(piece)


def digest(path: Path, algorithm: str = "sha256") -> str:
    """Sum of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()

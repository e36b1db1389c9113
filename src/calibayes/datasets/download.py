"""Download files: resume interrupted downloads, verify checksums, and never leave an incomplete file in place."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

Opener = Callable[[Request], Any]
"""Opens a request and returns a readable response, as urllib's ``urlopen`` does."""

BLOCK_BYTES = 1 << 16


HOST = "openml.org"
"""Files are downloaded only from this host and its subdomains."""


def refuse_insecure(url: str) -> None:
    """Raise ValueError if an address is not an https one: never a local file, never without encryption."""
    if urlsplit(url).scheme != "https":
        raise ValueError(f"{url} was not opened: only https addresses are downloaded")


def refuse_other_host(url: str) -> None:
    """Raise ValueError if an address is not an https one of OpenML."""
    refuse_insecure(url)
    host = urlsplit(url).hostname or ""
    if host != HOST and not host.endswith("." + HOST):
        raise ValueError(
            f"{url} was not opened: only hosts of {HOST} are used; download the file yourself if you trust it"
        )


class CheckedRedirects(HTTPRedirectHandler):
    """Follows redirects to https addresses of OpenML only."""

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        refuse_other_host(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_url(request: Request) -> Any:
    """Open a request to OpenML with urllib and a time limit of 60 seconds.

    Raises ValueError if it, or a redirect, is not an https address of OpenML.
    """
    refuse_other_host(request.full_url)
    return build_opener(CheckedRedirects).open(request, timeout=60)


def fetch(url: str, opener: Opener = open_url) -> bytes:
    """The whole response in memory; for small files.

    Raises ConnectionError if the address cannot be reached, ValueError if it is not an https one.
    """
    refuse_insecure(url)
    try:
        with opener(Request(url)) as response:
            return bytes(response.read())
    except (URLError, OSError) as error:
        raise ConnectionError(f"{url} cannot be reached: {error}") from error


def download(url: str, path: Path, md5: str | None = None, opener: Opener = open_url) -> Path:
    """Download a file to ``path``; an interrupted download (``.part`` beside it) is resumed.

    Raises ConnectionError if the address cannot be reached, OSError if the file cannot be written, ValueError if it is
    not an https address or if the MD5 checksum differs from ``md5``.
    """
    refuse_insecure(url)
    part = path.with_name(path.name + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    _append(url, part, opener)
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
    with _received(url, lambda: opener(request)) as response:
        resumed = received and getattr(response, "status", None) == 206
        with part.open("ab" if resumed else "wb") as file:
            while block := _received(url, lambda: response.read(BLOCK_BYTES)):
                file.write(block)


def _received(url: str, call: Callable[[], Any]) -> Any:
    """The result of a call to a server. Raises ConnectionError if it fails; errors of the disk are left as they are."""
    try:
        return call()
    except (URLError, OSError) as error:
        raise ConnectionError(
            f"{url} cannot be reached: {error}. The part received so far is kept; try again to resume"
        ) from error


def file_checksum(path: Path, algorithm: str = "sha256") -> str:
    """Checksum of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()

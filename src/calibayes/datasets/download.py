"""Download files: resume interrupted downloads, verify checksums, and never leave an incomplete file in place."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from calibayes.core.notices import listed
from calibayes.core.replaced_file import replaced_file


@dataclass(frozen=True)
class OpenML:
    """A data set of openml.org; its description there has the address and the MD5 checksum of the file.

    Parameters
    ----------
    number : int
        Identifier of the data set.
    target : str, optional
        Column to predict; by default the target that OpenML names.
    md5 : str, optional
        Expected checksum of the file; by default the one in the description.
    """

    number: int
    target: str | None = None
    md5: str | None = None

    @property
    def description(self) -> str:
        """Address of the description (JSON)."""
        return f"https://api.openml.org/api/v1/json/data/{self.number}"


SOURCES: Mapping[str, OpenML] = {
    "adult": OpenML(1590),
    "australian": OpenML(40981),
    "balance-scale": OpenML(11),
    "blood-transfusion": OpenML(1464),
    "breast-cancer": OpenML(13),
    "car": OpenML(40975),
    "climate-model": OpenML(1467),
    "connect-4": OpenML(40668),
    "diabetes": OpenML(37),
    "ecoli": OpenML(39),
    "glass": OpenML(41),
    "haberman": OpenML(43),
    "heart": OpenML(53),
    "hill-valley": OpenML(1566),
    "hill-valley-noise": OpenML(1479),
    "indian-liver": OpenML(1480),
    "ionosphere": OpenML(59),
    "kr-vs-kp": OpenML(3),
    "letter": OpenML(6),
    "liver-disorders": OpenML(8),
    "lymphography": OpenML(10),
    "magic": OpenML(1120),
    "mushroom": OpenML(24),
    "optdigits": OpenML(28),
    "parkinsons": OpenML(1488),
    "qsar": OpenML(1494),
    "redwine": OpenML(40691),
    "ringnorm": OpenML(1496),
    "satellite": OpenML(182),
    "sonar": OpenML(40),
    "soybean": OpenML(42),
    "splice-uci": OpenML(46),
    "tic-tac-toe": OpenML(50),
    "vehicle": OpenML(54),
    "vote": OpenML(56),
    "wdbc": OpenML(1510),
    "zoo": OpenML(62),
}
"""Name -> source. Other archives have versions with other column names, rows or targets."""


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


# -- Read dense attribute-relation files (ARFF), the file format of OpenML: a header of attributes, then rows

ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|\S+)\s+(.*)", re.IGNORECASE)


def read_arff(lines: Iterable[str]) -> tuple[list[str], list[list[str]]]:
    """Attribute names, and rows of values as text; a missing value is the empty string.

    Raises ValueError if the file is sparse or a row has another number of values than there are attributes.
    """
    names: list[str] = []
    remaining = iter(lines)
    for line in remaining:
        text = line.strip()
        if text.lower().startswith("@data"):
            break
        if match := ATTRIBUTE.match(text):
            names.append(match.group(1).strip("'\"").replace("\\'", "'"))
    body = (line for line in remaining if line.strip() and not line.startswith("%"))
    reader = csv.reader(body, quotechar="'", escapechar="\\", skipinitialspace=True)
    rows = [[_value(text) for text in row] for row in reader]
    if not names or not rows or any(len(row) != len(names) for row in rows):
        expected = f"every row must have one value for each of the {len(names)} attributes in the header"
        raise ValueError(f"not a dense ARFF file: {expected}")
    return names, rows


def _value(text: str) -> str:
    bare = text.strip().strip('"')
    return "" if bare == "?" else bare


# -- Download data sets from OpenML and cache them as ``NAME.csv.gz`` with the target as the last column -----

CHECKSUMS = "checksums.json"
"""File with the SHA-256 checksums of the cached files, written at download and verified at every use."""


def cached_file(name: str, folder: Path) -> Path | None:
    """The file of an earlier download, or None. Raises ValueError if it was changed since."""
    path = folder / f"{name}.csv.gz"
    if not path.exists():
        return None
    expected = _checksums(folder).get(name)
    if expected is not None and file_checksum(path) != expected:
        raise ValueError(
            f"{path} was changed after its download (its SHA-256 checksum differs); delete it to download it again"
        )
    return path


def download_dataset(name: str, source: OpenML, folder: Path, opener: Opener = open_url) -> Path:
    """Download a data set, verify its checksum, convert it and cache it; returns the cached file."""
    description = json.loads(fetch(source.description, opener))["data_set_description"]
    md5 = source.md5 or description.get("md5_checksum")
    arff = download(description["url"], folder / f"{name}.arff", md5, opener)
    target = source.target or description["default_target_attribute"]
    path = folder / f"{name}.csv.gz"
    converted = _convert(arff, folder / f"{name}.csv.gz.new", target, _ignored_columns(description))
    _write_checksum(name, converted)  # before the file is in place: an older checksum would refuse it
    os.replace(converted, path)
    arff.unlink()
    return path


def _ignored_columns(description: dict[str, object]) -> set[str]:
    """Row identifiers and other columns that are no features, by OpenML's description."""
    entries = [description.get("row_id_attribute"), description.get("ignore_attribute")]
    lists = [value if isinstance(value, list) else [value] for value in entries if value]
    return {str(name) for names in lists for name in names}


def _convert(arff: Path, path: Path, target: str, ignored: set[str]) -> Path:
    with arff.open(encoding="utf-8", errors="replace", newline="") as file:
        names, rows = read_arff(file)
    if target not in names:
        raise ValueError(f"{arff.name} has no column {target!r}; its columns are {listed(names)}")
    features = [j for j, name in enumerate(names) if name != target and name not in ignored]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(names[j] for j in features), "target"])
    label = names.index(target)
    writer.writerows([[*(row[j] for j in features), row[label]] for row in rows])
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    return path


def _checksums(folder: Path) -> dict[str, str]:
    path = folder / CHECKSUMS
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _write_checksum(name: str, path: Path) -> None:
    checksums = {**_checksums(path.parent), name: file_checksum(path)}
    with replaced_file(path.parent / CHECKSUMS) as file:
        file.write((json.dumps(checksums, indent=1, sort_keys=True) + "\n").encode())

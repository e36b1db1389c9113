"""Download data sets from OpenML and cache them as ``NAME.csv.gz`` with the target as the last column."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from pathlib import Path

from calibayes.core.replaced_file import replaced_file
from calibayes.datasets.arff import read_arff
from calibayes.datasets.download import Opener, download, fetch, file_checksum, open_url
from calibayes.datasets.sources import OpenML

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
        raise ValueError(f"{arff.name} has no column {target!r}; its columns are {', '.join(names)}")
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

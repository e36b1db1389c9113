"""Data sets from their public source, kept as ``NAME.csv.gz`` with the target as the last column."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from pathlib import Path

from calibayes.datasets.arff import read_arff
from calibayes.datasets.download import Opener, digest, download, fetch, plain_opener
from calibayes.datasets.sources import OpenML

SUMS = "checksums.json"
"""SHA-256 sums of what was downloaded, written at the first download and checked ever after."""


def cached(name: str, folder: Path) -> Path | None:
    """The file of an earlier download, if it is there and as it was."""
    path = folder / f"{name}.csv.gz"
    if not path.exists():
        return None
    known = _sums(folder).get(name)
    if known is not None and digest(path) != known:
        raise ValueError(f"{path} is not what was downloaded (its SHA-256 sum differs): delete it")
    return path


def download_dataset(name: str, source: OpenML, folder: Path, opener: Opener = plain_opener) -> Path:
    """Fetch, check, convert and keep a data set."""
    described = json.loads(fetch(source.description, opener))["data_set_description"]
    sum_there = source.md5 or described.get("md5_checksum")
    raw = download(described["url"], folder / f"{name}.arff", sum_there, opener)
    target = source.target or described["default_target_attribute"]
    path = _converted(raw, folder / f"{name}.csv.gz", target, _unused(described))
    _note_sum(name, path)
    raw.unlink()
    return path


def _unused(described: dict[str, object]) -> set[str]:
    """Identifiers and other columns that the description says to ignore."""
    given = [described.get("row_id_attribute"), described.get("ignore_attribute")]
    lists = [value if isinstance(value, list) else [value] for value in given if value]
    return {str(name) for names in lists for name in names}


def _converted(raw: Path, path: Path, target: str, unused: set[str]) -> Path:
    with raw.open(encoding="utf-8", errors="replace", newline="") as file:
        names, rows = read_arff(file)
    if target not in names:
        raise ValueError(f"{raw.name} has no column {target!r}; its columns are {', '.join(names)}")
    kept = [j for j, name in enumerate(names) if name != target and name not in unused]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(names[j] for j in kept), "target"])
    last = names.index(target)
    writer.writerows([[*(row[j] for j in kept), row[last]] for row in rows])
    part = path.with_name(path.name + ".new")
    part.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    os.replace(part, path)
    return path


def _sums(folder: Path) -> dict[str, str]:
    path = folder / SUMS
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _note_sum(name: str, path: Path) -> None:
    sums = {**_sums(path.parent), name: digest(path)}
    new = path.parent / (SUMS + ".new")
    new.write_text(json.dumps(sums, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(new, path.parent / SUMS)

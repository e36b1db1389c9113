"""The log of the leaderboard: one JSON object a line, only ever appended to, from which a run goes on where it stopped."""

from __future__ import annotations

import json


def read_log(path):
    """All records, oldest first; without lines that were cut off when a run was stopped."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [record for record in map(parsed, lines) if record is not None]


def parsed(line):
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


def append(path, record):
    """Write one record as a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_cut_off = path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" * is_cut_off + json.dumps(record) + "\n")


def key(record):
    """What identifies a result: for our models also the digest of the source."""
    return record["table"], record["model"], record["fold"], record.get("digest")


def finished(records):
    """Keys of the results that need not be computed again; what failed is tried again."""
    return {key(record) for record in records if "failure" not in record}


def latest(records):
    """Table -> model -> fold -> record: the last one of each, for each of our models of its last digest."""
    digests = {record["model"]: record.get("digest") for record in records}
    found = {}
    for record in records:
        if record.get("digest") == digests[record["model"]] and "failure" not in record:
            found.setdefault(record["table"], {}).setdefault(record["model"], {})[record["fold"]] = record
    return found

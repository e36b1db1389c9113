"""A folder with the results of finished tasks, one JSON file each."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ResultCache:
    """Results by key, in a folder. A file contains ``{"key": key, "result": {...}}``."""

    folder: Path

    def get(self, key: str) -> dict[str, Any] | None:
        """The result of this key, or None if there is none or its file is incomplete or damaged."""
        try:
            content = json.loads(self._path(key).read_bytes())
        except (FileNotFoundError, ValueError, RecursionError):  # ValueError: no JSON, or not in UTF-8
            return None
        return content["result"] if _is_valid(content, key) else None

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Write a result. The file is renamed into place, so an interruption leaves no incomplete one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self._path(key).with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps({"key": key, "result": result}), encoding="utf-8")
        os.replace(part, self._path(key))

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


def _is_valid(content: Any, key: str) -> bool:
    """Whether the content of a file is the result of this key: an object with at least one entry."""
    is_object = isinstance(content, dict) and content.keys() == {"key", "result"}
    return (
        is_object
        and content["key"] == key
        and isinstance(content["result"], dict)
        and bool(content["result"])
    )

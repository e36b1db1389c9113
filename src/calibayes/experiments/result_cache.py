"""A folder with the results of finished tasks, one JSON file each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibayes.core.replaced_file import replaced_file


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
        """Write a result; an interruption leaves no incomplete one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with replaced_file(self._path(key)) as file:
            file.write(json.dumps({"key": key, "result": result}).encode())

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

"""A folder with the results of finished tasks, one JSON file each."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ResultCache:
    """Results by key, in a folder."""

    folder: Path

    def get(self, key: str) -> dict[str, Any] | None:
        """The result of this key, or None if there is none or its file is incomplete."""
        try:
            return dict(json.loads(self._path(key).read_text(encoding="utf-8")))
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Write a result. The file is renamed into place, so an interruption leaves no incomplete one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self._path(key).with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(result), encoding="utf-8")
        os.replace(part, self._path(key))

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

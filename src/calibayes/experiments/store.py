"""Finished cells on disk: a file each, whole or not there."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Store:
    """A folder of results."""

    folder: Path

    def get(self, name: str) -> dict[str, Any] | None:
        """The result of that name, or None; one that cannot be read is not there."""
        try:
            return dict(json.loads(self._path(name).read_text(encoding="utf-8")))
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def put(self, name: str, result: dict[str, Any]) -> None:
        """Keep a result. An interruption leaves the folder as it was before or as it is after."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self._path(name).with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(result), encoding="utf-8")
        os.replace(part, self._path(name))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

"""Dask data frames and arrays, recognized without an import of Dask."""

from __future__ import annotations

from typing import Any


def dask_kind(data: Any) -> str | None:
    """ "frame", "series" or "array" for a Dask collection, None for anything else."""
    module, name = type(data).__module__, type(data).__name__
    if not module.startswith("dask."):
        return None
    if module.startswith("dask.array"):
        return "array"
    return {"DataFrame": "frame", "Series": "series"}.get(name)

"""pyarrow, which is optional and imported when it is needed."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any


def pyarrow() -> Any:
    """The package pyarrow. Raises ImportError that says how to install it."""
    return module_of_pyarrow("")


@cache
def module_of_pyarrow(name: str) -> Any:
    """A module of pyarrow, such as "dataset"; the package itself for an empty name."""
    try:
        return importlib.import_module(f"pyarrow.{name}" if name else "pyarrow")
    except ImportError as error:
        raise ImportError(
            "reading files and Arrow streams chunk by chunk needs pyarrow: pip install 'calibayes[parquet]'"
        ) from error

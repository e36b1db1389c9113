"""Rows that cannot be read: a second attempt, then an error that names the place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")


@contextmanager
def place_named(place: str) -> Iterator[None]:
    """Inside, errors of reading are raised again with the place, such as "row group 3 of a.parquet"."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{place} cannot be read: {_sentence(error)}") from error
    except MemoryError as error:  # also for a size in a file that is damaged
        raise MemoryError(f"{place} cannot be read: {_sentence(error)}") from error
    except (ValueError, NotImplementedError, LookupError) as error:  # those of pyarrow for invalid files
        raise ValueError(f"{place} cannot be read: {_sentence(error)}") from error


def read_twice(read: Callable[[], Result], place: str) -> Result:
    """``read()``, tried again once if it raises OSError, as network file systems do now and then."""
    with place_named(place):
        try:
            return read()
        except OSError:
            return read()


def _sentence(error: Exception) -> str:
    """The first line of a message."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__

"""Codecs of plain values that JSON lacks: lists beside tuples, mappings with any keys, infinity, dates, random states."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final
from uuid import UUID

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.storage.codec import Codec, Reader, Writer, only, typed
from calibayes.storage.strict_json import MOST_VALUES

LONGEST_DECIMAL: Final = 1000
FLOATS: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
LIBRARIES: Final = {
    library.name: library
    for library in (
        nw.Implementation.PANDAS,
        nw.Implementation.MODIN,
        nw.Implementation.CUDF,
        nw.Implementation.PYARROW,
        nw.Implementation.POLARS,
    )
}
"""Libraries of data frames that a model returns rows as."""


def of_text(tag: str, write: Callable[[Any], str], read: Callable[[str], Any]) -> Codec:
    """A codec of values that are written as one text."""

    def read_text(node: Mapping[str, Any], path: str, reader: Reader) -> Any:
        only(node, tag)
        return read(typed(node[tag], str, tag))

    return Codec(tag, lambda value, path, writer: {tag: write(value)}, read_text)


def of_parts(tag: str, parts: Callable[[Any], Sequence[Any]], make: Callable[..., Any]) -> Codec:
    """A codec of values that are made from a few others."""

    def write_parts(value: Any, path: str, writer: Writer) -> dict[str, Any]:
        return {tag: writer.write_all(parts(value), path)}

    def read_parts(node: Mapping[str, Any], path: str, reader: Reader) -> Any:
        only(node, tag)
        return make(*reader.read_all(typed(node[tag], list, tag), path))

    return Codec(tag, write_parts, read_parts)


def _mapping(*pairs: tuple[Any, Any]) -> dict[Any, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("the same key twice")
    return made


def _range(*parts: Any) -> range:
    made = range(*parts)
    if not -MOST_VALUES <= made.start <= MOST_VALUES or not -MOST_VALUES <= made.stop <= MOST_VALUES:
        raise ValueError(f"a range may not go beyond {MOST_VALUES:,}")
    return made


def _random_state(*state: Any) -> np.random.RandomState:
    made = np.random.RandomState(0)
    made.set_state(("MT19937", *state))
    return made


def _state_of(value: np.random.RandomState) -> Sequence[Any]:
    state: Any = value.get_state(legacy=True)
    return tuple(state[1:])


def _short(text: str) -> str:
    if len(text) > LONGEST_DECIMAL:
        raise ValueError(f"a decimal number of more than {LONGEST_DECIMAL} digits is not allowed")
    return text


PLAIN_VALUES: Final[Mapping[Any, Codec]] = {
    list: of_parts("$list", list, lambda *parts: list(parts)),
    Mapping: of_parts("$pairs", lambda value: tuple(value.items()), _mapping),
    slice: of_parts("$slice", lambda value: (value.start, value.stop, value.step), slice),
    range: of_parts("$range", lambda value: (value.start, value.stop, value.step), _range),
    np.random.RandomState: of_parts("$random_state", _state_of, _random_state),
    float: of_text("$float", repr, FLOATS.__getitem__),
    Decimal: of_text("$decimal", str, lambda text: Decimal(_short(text))),
    bytes: of_text("$bytes", bytes.hex, bytes.fromhex),
    datetime.date: of_text("$date", datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.datetime: of_text("$datetime", datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.time: of_text("$time", datetime.time.isoformat, datetime.time.fromisoformat),
    datetime.timedelta: of_parts(
        "$timedelta", lambda value: (value.days, value.seconds, value.microseconds), datetime.timedelta
    ),
    Fraction: of_parts("$fraction", lambda value: (value.numerator, value.denominator), Fraction),
    UUID: of_text("$uuid", str, UUID),
    nw.Implementation: of_text("$library", lambda value: value.name, LIBRARIES.__getitem__),
}
"""Type -> codec."""

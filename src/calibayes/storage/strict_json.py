"""Strict reading of JSON: every key once, finite numbers, bounded size and depth."""

from __future__ import annotations

import json
from typing import Any, Final

from calibayes.storage.errors import ModelFileError

MOST_VALUES: Final = 5_000_000
"""Largest number of values of a document, so that parsing it takes at most about a gigabyte."""
MOST_DEPTH: Final = 100
MOST_DIGITS: Final = 400
"""Of a whole number: more than any float has."""


def parse_json(content: bytes | str, name: str) -> Any:
    """The value of a JSON text. Raises ModelFileError, naming the text, if it is not valid or too large."""
    text = content.decode() if isinstance(content, bytes) and _is_utf8(content) else content
    if not isinstance(text, str):
        raise ModelFileError(f"{name} is not UTF-8")
    require_few_values(text, name)
    try:
        return json.loads(
            text,
            object_pairs_hook=_distinct,
            parse_constant=_refuse,
            parse_float=_finite,
            parse_int=_whole,
        )
    except RecursionError:
        raise ModelFileError(f"{name} is nested too deeply") from None
    except ModelFileError as error:
        raise ModelFileError(f"{name} {error}") from None
    except ValueError:
        raise ModelFileError(f"{name} is not valid JSON") from None


def require_few_values(text: str, name: str) -> None:
    """Raises ModelFileError if a JSON text has too many values; commas and brackets are counted, also within texts."""
    if sum(text.count(mark) for mark in ",[{") > MOST_VALUES:
        raise ModelFileError(f"{name} is too large: more than {MOST_VALUES:,} values")


def require_depth(value: Any, name: str, depth: int = 0) -> None:
    """Raises ModelFileError if lists and objects are nested too deeply."""
    if depth > MOST_DEPTH:
        raise ModelFileError(f"{name} is nested too deeply")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in inner:
        if isinstance(part, dict | list):
            require_depth(part, name, depth + 1)


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    distinct = dict(pairs)
    if len(distinct) < len(pairs):
        raise ModelFileError("has the same key twice")
    return distinct


def _refuse(constant: str) -> Any:
    raise ModelFileError(f"contains {constant}, which is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ModelFileError("contains a number that is too large")
    return value


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ModelFileError("contains a number that is too large")
    return int(digits)

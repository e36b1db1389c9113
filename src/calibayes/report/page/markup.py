"""Elements of HTML and SVG. `element` and `together` escape all text that is not `Markup` already."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

VOID = frozenset({"meta", "input", "br", "hr", "link"})
"""Elements without content, which have no end tag."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*\Z")
_UNREADABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Control characters, bidirectional overrides and unpaired surrogates."""


@dataclass(frozen=True)
class Markup:
    """HTML or SVG that is already escaped."""

    html: str

    def __str__(self) -> str:
        return self.html


Child: TypeAlias = "Markup | str | int | Iterable[Child] | None"
Attribute: TypeAlias = str | float | bool | None


def element(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """An element with children and attributes.

    Text is escaped, None is left out, iterables are flattened. An underscore at the end of an attribute's name is dropped,
    others become hyphens. An attribute that is None or False is left out, True has no value.

    >>> element("p", "a < b", class_="note", aria_label='"quoted"').html
    '<p class="note" aria-label="&quot;quoted&quot;">a &lt; b</p>'
    """
    start = f"<{_checked(name)}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    if name in VOID:
        return Markup(start)
    return Markup(f"{start}{''.join(_texts(children))}</{name}>")


def together(*children: Child) -> Markup:
    """Several children, one after the other, without an element around them."""
    return Markup("".join(_texts(children)))


def trusted(text: str) -> Markup:
    """A constant of this package, such as the style sheet, without escaping. Never use it for text from a table."""
    return Markup(text)


def readable(text: str) -> str:
    """Text in which control characters, bidirectional overrides and unpaired surrogates are replaced.

    >>> readable("a\\u202eb\\x00")
    'a\\ufffdb\\ufffd'
    """
    return _UNREADABLE.sub("\ufffd", text)


def _texts(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if isinstance(child, Markup):
            yield child.html
        elif isinstance(child, str | int):
            yield html.escape(readable(str(child)))
        elif child is not None:
            yield from _texts(child)


def _attribute(key: str, value: Attribute) -> str:
    name = _checked(key.rstrip("_").replace("_", "-"))
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    text = f"{value:.6g}" if isinstance(value, float) else readable(str(value))
    return f' {name}="{html.escape(text)}"'


def _checked(name: str) -> str:
    if not _NAME.match(name):
        raise ValueError(
            f"{name!r} is not the name of an element or attribute: use letters, digits and hyphens"
        )
    return name

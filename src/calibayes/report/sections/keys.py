"""Color keys: the colors of the classes and their names."""

from __future__ import annotations

from collections.abc import Sequence

from calibayes.report.drawings.canvas import swatch
from calibayes.report.page.markup import Markup, element
from calibayes.report.page.wording import named

OTHER = 6
"""The color of classes that have no separate color."""


def color_key(names: Sequence[str], codes: Sequence[int] | None = None) -> Markup:
    """A list of names with their colors, by default in the order of the colors."""
    pairs = zip(range(len(names)) if codes is None else codes, names, strict=True)
    return element("ul", [element("li", swatch(code), named(name)) for code, name in pairs], class_="key")


def class_colors(groups: Sequence[str], names: Sequence[str]) -> list[int]:
    """The colors of classes, which are the same in all figures of the page."""
    return [groups.index(name) if name in groups else OTHER for name in names]

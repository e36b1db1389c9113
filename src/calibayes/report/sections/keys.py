"""Which color stands for which class."""

from __future__ import annotations

from collections.abc import Sequence

from calibayes.report.drawings.canvas import swatch
from calibayes.report.page.markup import Markup, element
from calibayes.report.page.wording import named


def color_key(names: Sequence[str]) -> Markup:
    """A list of names with their colors."""
    return element(
        "ul", [element("li", swatch(code), named(name, 40)) for code, name in enumerate(names)], class_="key"
    )

"""Elements of HTML and SVG. `element` and `together` escape all text that is not `Markup` already."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from calibayes.core.notices import counted

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


# -- Building blocks of sections: paragraphs, notes, figures, tables, lists ----------------------------------


@dataclass(frozen=True)
class Section:
    """One section of the page.

    Attributes
    ----------
    key : str
        The anchor (id of the element).
    title : str
    body : Markup
    """

    key: str
    title: str
    body: Markup = field(default_factory=lambda: Markup(""))

    def markup(self) -> Markup:
        """The section with its heading."""
        heading = element("h2", self.title, id=f"{self.key}-title")
        return element("section", heading, self.body, id=self.key, aria_labelledby=f"{self.key}-title")


def paragraph(*children: Child, class_: str | None = None) -> Markup:
    """A paragraph."""
    return element("p", *children, class_=class_)


def note(*children: Child) -> Markup:
    """A paragraph in smaller type, for methods and limitations."""
    return paragraph(*children, class_="note")


def link(text: str, address: str) -> Markup:
    """A link to another page, without a referrer."""
    return element("a", text, href=address, rel="noopener noreferrer", target="_blank")


def figure(drawing: Child, caption: Child, *more: Child) -> Markup:
    """A picture with its caption and further content."""
    return element("figure", drawing, element("figcaption", caption), *more)


def figures(*children: Child, is_small: bool = False) -> Markup:
    """Figures side by side where there is room."""
    return element("div", *children, class_="figures small" if is_small else "figures")


def subsection(title: str, *children: Child) -> Markup:
    """A heading of level 3 and its content."""
    return together(element("h3", title), *children)


def folded(title: Child, *children: Child) -> Markup:
    """Content that is collapsed until it is opened."""
    return element("details", element("summary", title), *children)


def table(
    caption: str,
    heads: Sequence[Child],
    lines: Sequence[Sequence[Child]],
    *,
    numeric: Sequence[int] = (),
    class_: str | None = None,
    is_caption_hidden: bool = False,
) -> Markup:
    """A table in a scrollable frame; the first cell of a line is its row header.

    ``numeric`` are the positions of columns of numbers, which are aligned to the right. With the class "stack" each line is shown
    as a list of labeled cells on a phone; explicit roles keep the semantics of a table there.
    """
    sides = ["figure" if j in numeric else None for j in range(len(heads))]
    is_stacked = class_ == "stack"
    roles = ("table", "rowgroup", "row", "columnheader") if is_stacked else (None,) * 4
    head = [
        element("th", text, scope="col", class_=side, role=roles[3])
        for text, side in zip(heads, sides, strict=True)
    ]
    body = [_line(line, heads, sides, has_labels=is_stacked) for line in lines]
    made = element(
        "table",
        element("caption", caption, class_="hidden" if is_caption_hidden else None),
        element("thead", element("tr", head, role=roles[2]), role=roles[1]),
        element("tbody", body, role=roles[1]),
        class_=class_,
        role=roles[0],
    )
    return element("div", made, class_="scroll", tabindex="0", role="group", aria_label=caption)


def _line(
    line: Sequence[Child], heads: Sequence[Child], sides: Sequence[str | None], *, has_labels: bool
) -> Markup:
    """A line of a table; with ``has_labels`` each cell has the header of its column as a label."""
    labels = [str(text) if has_labels else None for text in heads]
    roles = ("row", "rowheader", "cell") if has_labels else (None, None, None)
    first = element("th", line[0], scope="row", class_=sides[0], data_label=labels[0], role=roles[1])
    others = [
        element(
            "td", element("div", cell) if has_labels else cell, class_=side, data_label=label, role=roles[2]
        )
        for cell, side, label in zip(line[1:], sides[1:], labels[1:], strict=True)
    ]
    return element("tr", first, others, role=roles[0])


def folded_table(
    title: str, heads: Sequence[Child], lines: Sequence[Sequence[Child]], first_number: int
) -> Markup:
    """The numbers of a figure as a table, collapsed until it is opened; columns from ``first_number`` on hold numbers."""
    numbers = table(title, heads, lines, numeric=range(first_number, len(heads)), is_caption_hidden=True)
    return folded("Show the numbers as a table", numbers)


def definition_list(pairs: Sequence[tuple[Child, Child]], class_: str | None = None) -> Markup:
    """Terms and their descriptions."""
    items = [element("div", element("dt", term), element("dd", text)) for term, text in pairs]
    return element("dl", items, class_=class_)


def bullets(items: Sequence[Child], class_: str | None = None) -> Markup:
    """A bulleted list."""
    return element("ul", [element("li", item) for item in items], class_=class_)


# -- Formatting of numbers and names on the page -------------------------------------------------------------

NAME_LENGTH = 60
"""Most characters of a name or value on the page."""
TITLE_LENGTH = 300
"""Most characters of the tooltip of a shortened name."""
HUGE = 1e9
"""Numbers from this one on are written in scientific notation."""
THIN, NOTHING, MINUS = "\u202f", "\u2013", "\u2212"
"""A narrow no-break space, the dash that replaces an unknown number, and the minus sign."""


def count(number: float) -> str:
    """An integer with commas as thousands separators.

    >>> count(207), count(48842)
    ('207', '48,842')
    """
    return f"{int(number):,}"


def counts(number: int, noun: str, plural: str | None = None) -> str:
    """An integer with commas as thousands separators, and its noun."""
    return f"{count(number)} {counted(number, noun, plural).partition(' ')[2]}"


def percent(share: float) -> str:
    """A share in percent; a dash for NaN.

    >>> percent(0.1234), percent(float("nan"))
    ('12.3\\u202f%', '\u2013')
    """
    return NOTHING if math.isnan(share) else f"{100 * share:.1f}{THIN}%"


def short_percent(share: float) -> str:
    """A share in percent with three significant digits, for axes."""
    return f"{100 * share:.3g}{THIN}%"


def number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits; large numbers are rounded to integers.

    >>> number(0.30861), number(12345.6), number(2.0), number(1.5e-9)
    ('0.309', '12,346', '2', '1.5e-09')
    """
    if not math.isfinite(value):
        return _not_finite(value)
    if 10**digits <= abs(value) < HUGE:
        return count(round(value))
    return f"{value:.{digits}g}"


def fixed(value: float, digits: int) -> str:
    """A number with so many decimals, for columns of numbers; scientific notation if it is huge, a dash for NaN.

    >>> fixed(0.25, 3), fixed(2.5e12, 3)
    ('0.250', '2.5e+12')
    """
    if not math.isfinite(value):
        return _not_finite(value)
    return f"{value:.{digits}f}" if abs(value) < HUGE else f"{value:.3g}"


def _not_finite(value: float) -> str:
    return NOTHING if math.isnan(value) else ("∞" if value > 0 else f"{MINUS}∞")


def signed(value: float) -> str:
    """A number with its sign."""
    return f"{value:+.2f}".replace("-", MINUS)


def one_line(text: Any) -> str:
    """A value as one line of text."""
    return str(text).replace("\r\n", "↵").replace("\n", "↵").replace("\r", "↵").replace("\t", " ")


def shortened(text: Any, most: int = NAME_LENGTH) -> str:
    """A name or value, cut to at most so many characters.

    >>> shortened("a" * 20, 5)
    'aaaa…'
    """
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def named(text: Any, most: int = NAME_LENGTH) -> Markup:
    """A name from the table: shortened, and isolated from the text direction around it."""
    line = one_line(text)
    is_cut = len(line) > most
    title = f"{shortened(line, TITLE_LENGTH)} ({counts(len(line), 'character')})" if is_cut else None
    return element("bdi", shortened(line, most) or "(empty)", class_="name", title=title)


def sentence_list(names: Sequence[str]) -> str:
    """Names joined by commas and "and".

    >>> sentence_list(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))

"""Building blocks of sections: paragraphs, notes, figures, tables, lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from calibayes.report.page.markup import Child, Markup, element, together


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


def strong(*children: Child) -> Markup:
    """Important text."""
    return element("strong", *children)


def code(*children: Child) -> Markup:
    """A piece of code in a line of text."""
    return element("code", *children)


def link(text: str, address: str) -> Markup:
    """A link to another page, without a referrer."""
    return element("a", text, href=address, rel="noopener noreferrer", target="_blank")


def figure(drawing: Child, caption: Child, *more: Child) -> Markup:
    """A picture with its caption and further content."""
    return element("figure", drawing, element("figcaption", caption), *more)


def figures(*children: Child) -> Markup:
    """Figures side by side where there is room."""
    return element("div", *children, class_="figures")


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
    title: str, heads: Sequence[Child], lines: Sequence[Sequence[Child]], numeric: Sequence[int] = ()
) -> Markup:
    """The numbers of a figure as a table, collapsed until it is opened."""
    return folded(
        "Show the numbers as a table",
        table(title, heads, lines, numeric=numeric, is_caption_hidden=True),
    )


def definition_list(pairs: Sequence[tuple[Child, Child]], class_: str | None = None) -> Markup:
    """Terms and their descriptions."""
    items = [element("div", element("dt", term), element("dd", text)) for term, text in pairs]
    return element("dl", items, class_=class_)


def bullets(items: Sequence[Child]) -> Markup:
    """A bulleted list."""
    return element("ul", [element("li", item) for item in items])

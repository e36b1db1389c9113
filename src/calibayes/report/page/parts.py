"""Parts that sections are made of: paragraphs, figures, tables, notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from calibayes.report.page.markup import Child, Markup, element, together


@dataclass(frozen=True)
class Section:
    """One part of the page.

    Attributes
    ----------
    key : str
        The anchor.
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
    """A paragraph in smaller type: where figures come from, and what they do not say."""
    return paragraph(*children, class_="note")


def strong(*children: Child) -> Markup:
    """Important words."""
    return element("strong", *children)


def code(*children: Child) -> Markup:
    """Words of Python."""
    return element("code", *children)


def link(text: str, address: str) -> Markup:
    """A link to another page, which is told nothing about this one."""
    return element("a", text, href=address, rel="noopener noreferrer", target="_blank")


def figure(drawing: Child, caption: Child, *more: Child) -> Markup:
    """A picture with its caption, and what belongs to it."""
    return element("figure", drawing, element("figcaption", caption), *more)


def figures(*children: Child) -> Markup:
    """Pictures side by side where there is room."""
    return element("div", *children, class_="figures")


def subsection(title: str, *children: Child) -> Markup:
    """A heading of the third order and what follows it."""
    return together(element("h3", title), *children)


def folded(title: Child, *children: Child) -> Markup:
    """What is shown on request."""
    return element("details", element("summary", title), *children)


def table(
    caption: Child,
    heads: Sequence[Child],
    lines: Sequence[Sequence[Child]],
    *,
    numeric: Sequence[int] = (),
    class_: str | None = None,
    is_caption_hidden: bool = False,
) -> Markup:
    """A table in a frame that can be scrolled sideways; the first cell of a line is its heading.

    ``numeric`` are positions of columns of figures, which are aligned to the right.
    """
    sides = ["figure" if j in numeric else None for j in range(len(heads))]
    head = [element("th", text, scope="col", class_=side) for text, side in zip(heads, sides, strict=True)]
    body = [_line(line, heads, sides, has_labels=class_ == "stack") for line in lines]
    named = element("caption", caption, class_="hidden" if is_caption_hidden else None)
    made = element(
        "table",
        named,
        element("thead", element("tr", head)),
        element("tbody", body, role="rowgroup" if class_ == "stack" else None),
        class_=class_,
        role="table" if class_ == "stack" else None,
    )
    return element("div", made, class_="scroll", tabindex="0", role="group")


def _line(
    line: Sequence[Child], heads: Sequence[Child], sides: Sequence[str | None], *, has_labels: bool
) -> Markup:
    """A line of a table. On a phone, one that is stacked shows the head of its column before each cell."""
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
    """The numbers behind a picture, shown on request."""
    return folded(
        "The numbers behind this picture",
        table(title, heads, lines, numeric=numeric, is_caption_hidden=True),
    )


def definition_list(pairs: Sequence[tuple[Child, Child]], class_: str | None = None) -> Markup:
    """Terms and what is said about them."""
    items = [element("div", element("dt", term), element("dd", text)) for term, text in pairs]
    return element("dl", items, class_=class_)


def bullets(items: Sequence[Child]) -> Markup:
    """A list."""
    return element("ul", [element("li", item) for item in items])

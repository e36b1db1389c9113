"""Summary of the table: classes and columns."""

from __future__ import annotations

from calibayes.report.drawings.distributions import histogram, level_bars
from calibayes.report.facts.values import ColumnFacts, Facts, TableFacts
from calibayes.report.page.markup import Child, Markup, element, together
from calibayes.report.page.parts import Section, note, paragraph, subsection, table
from calibayes.report.page.wording import count, counts, fixed, named, percent, shortened
from calibayes.report.sections.keys import color_key

LIST_BYTES = 500_000
"""Approximate limit of the size of the list of all columns, in characters."""
LIST_NAME = 60
PICTURE_BYTES = 400_000
"""Limit of the size of all pictures, in characters."""
CLASSES = 20
"""Most classes in the table of classes."""


def table_section(facts: Facts) -> Section:
    """Rows, classes and columns."""
    given = facts.table
    return Section(
        "table",
        "The table",
        together(_size(given), _classes(given), _pictures(given), _all_columns(given)),
    )


def _size(given: TableFacts) -> Markup:
    duplicates = (
        f" Exact duplicates of an earlier row, including its label: {counts(given.duplicates, 'row')}."
        if given.duplicates
        else ""
    )
    unlabeled = f" Left out: {counts(given.unlabeled, 'row')} without a label." if given.unlabeled else ""
    size = f"{counts(given.rows, 'labeled row')} and {counts(len(given.columns), 'column')}."
    return paragraph(size + duplicates + unlabeled)


def _classes(given: TableFacts) -> Markup:
    ordered = sorted(given.classes, key=lambda each: -each.rows)
    lines: list[list[Child]] = [
        [named(each.name), count(each.rows), percent(each.rows / given.rows)] for each in ordered[:CLASSES]
    ]
    more = len(ordered) - CLASSES
    left_out = note(f"Not listed: {counts(more, 'rarer class', 'rarer classes')}.") if more > 0 else None
    return together(
        table("Classes", ["class", "rows", "share"], lines, numeric=(1, 2), class_="short"), left_out
    )


def _pictures(given: TableFacts) -> Markup:
    """Figures of the most informative columns, up to the limit of their size."""
    shown: list[Markup] = []
    size = 0
    for column in (each for each in given.columns if each.picture is not None):
        card = _card(column, given)
        size += len(card.html)
        if size > PICTURE_BYTES:
            break
        shown.append(card)
    rows = "all rows" if given.read_rows == given.rows else f"{count(given.read_rows)} rows drawn at random"
    which = (
        "All columns"
        if len(shown) == len(given.columns)
        else f"The {len(shown)} most informative of {counts(len(given.columns), 'column')}"
    )
    about = paragraph(
        f"{which}, in decreasing order of mutual information with the class (in bits, each column alone, bias-corrected; from "
        f"{rows}). Histograms show the distribution of a number within each class. Bars show the number of rows of each level, "
        "colored by class."
    )
    return subsection(
        "Columns by class", about, color_key(given.groups), element("div", shown, class_="figures small")
    )


def _card(column: ColumnFacts, given: TableFacts) -> Markup:
    missing = f", {percent(column.missing / given.rows)} missing" if column.missing else ""
    facts = f"{column.kind} ({shortened(column.reason, 80)}); {counts(column.distinct, 'distinct value')}{missing}"
    return element(
        "figure",
        element("h4", named(column.name)),
        element("p", facts, class_="facts"),
        _picture(column),
        element(
            "figcaption",
            f"{column.information:.3f} bits of information about the class",
            f"; {column.range}" if column.range else None,
        ),
    )


def _picture(column: ColumnFacts) -> Markup | None:
    picture = column.picture
    if picture is None:
        return None
    title = f"Values of {shortened(column.name)} by class"
    if picture.edges is None:
        totals = picture.counts.sum(axis=0)
        levels = ", ".join(f"{name}: {int(size)}" for name, size in zip(picture.levels, totals, strict=True))
        return level_bars(
            title,
            f"Number of rows of each level: {levels}.",
            picture.levels,
            picture.counts.T,
        )
    shares = picture.counts / picture.counts.sum(axis=1, keepdims=True).clip(1)
    description = f"Share of the rows of each class in bins from {picture.ends[0]} to {picture.ends[1]}."
    return histogram(title, description, picture.edges, shares, picture.ends)


def _all_columns(given: TableFacts) -> Markup:
    """The list of all columns, up to the limit of its size."""
    lines: list[list[Child]] = []
    size = 0
    for column in given.columns:
        line = _line(column, given.rows)
        size += sum(len(str(cell)) + 30 for cell in line)
        if size > LIST_BYTES:
            break
        lines.append(line)
    left_out = len(given.columns) - len(lines)
    heads: list[Child] = ["column", "kind", "reason", "missing", "distinct values", "information (bits)"]
    listed = element(
        "div",
        table("All columns by decreasing information about the class", heads, lines, numeric=(3, 4, 5)),
        id="all-columns",
        class_="tall",
    )
    remark = (
        note(f"Not listed, to keep the page small: the {counts(left_out, 'least informative column')}.")
        if left_out
        else None
    )
    return subsection("All columns", _search(), listed, remark)


def _line(column: ColumnFacts, rows: int) -> list[Child]:
    missing = percent(column.missing / rows) if column.missing else "0"
    return [
        named(column.name, LIST_NAME),
        shortened(column.kind, 30),
        shortened(column.reason, 60),
        missing,
        count(column.distinct),
        fixed(column.information, 3),
    ]


def _search() -> Markup:
    field = element("input", type="search", id="search", data_filters="all-columns", autocomplete="off")
    label = element("label", "Search the columns", for_="search")
    return element(
        "div", label, field, element("span", id="search-count", role="status"), class_="search", hidden=True
    )

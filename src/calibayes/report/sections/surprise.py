"""The most surprising rows."""

from __future__ import annotations

from calibayes.report.facts.values import Facts, SurprisingRow
from calibayes.report.page.markup import Child, Markup, element, together
from calibayes.report.page.parts import Section, note, paragraph, table
from calibayes.report.page.wording import count, counts, named, number, percent


def surprise_section(facts: Facts) -> Section | None:
    """Rows of low density; None without a density."""
    given = facts.surprise
    if given is None:
        return None
    lines: list[list[Child]] = [
        [count(each.row), number(each.p_value, 2), named(each.label, 30), _cells(each)] for each in given.rows
    ]
    left_out = (
        f" {counts(given.left_out, 'column')} that say less about the class are not part of it."
        if given.left_out
        else ""
    )
    body = together(
        paragraph(
            f"Rows that are improbable under p(x), of {counts(given.scored, 'row')}, by {given.about}.{left_out} A p-value is the "
            "share of held-out rows that are no more probable; that of a cell is about its value given the rest of the row."
        ),
        table(
            "The most surprising rows",
            ["row", "p-value", "label", "strangest cells (p-value)"],
            lines,
            numeric=(0, 1),
            class_="stack",
        ),
        note(
            f"{percent(given.expected)} of the rows have a p-value of at most 1\u202f%; without strange rows about 1\u202f% have. "
            "A row that is improbable is not wrong: look at it. Rows are counted from 0."
        ),
    )
    return Section("surprise", "Surprising rows", body)


def _cells(each: SurprisingRow) -> Markup:
    if not each.cells:
        return together("no single cell")
    parts = [
        together(named(name, 40), " = ", named(value, 40), f" ({number(p, 2)})")
        for name, value, p in each.cells
    ]
    return element("ul", [element("li", part) for part in parts], class_="cells")

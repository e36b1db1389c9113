"""The rows of lowest density."""

from __future__ import annotations

from calibayes.report.facts.values import Facts, SurprisingRow
from calibayes.report.page.markup import Child, Markup, element, together
from calibayes.report.page.parts import Section, note, paragraph, table
from calibayes.report.page.wording import count, counts, named, number, percent


def surprise_section(facts: Facts) -> Section | None:
    """The rows of lowest density; None without a density."""
    given = facts.surprise
    if given is None:
        return None
    lines: list[list[Child]] = [
        [count(each.row), number(each.p_value, 2), named(each.label, 30), _cells(each)] for each in given.rows
    ]
    left_out = (
        f" The density does not include the {counts(given.left_out, 'least informative column')}."
        if given.left_out
        else ""
    )
    body = together(
        paragraph(
            f"The least probable of {counts(given.scored, 'row')} under the density p(x) of {given.about}.{left_out} The p-value of a "
            "row is the share of held-out rows with the same or a lower density; the p-value of a cell compares its value with the "
            "rest of the row."
        ),
        table(
            "The most surprising rows",
            ["row", "p-value", "label", "least probable cells (p-value)"],
            lines,
            numeric=(0, 1),
            class_="stack",
        ),
        note(
            f"{percent(given.expected)} of the rows have a p-value of at most 1\u202f%; without outliers, about 1\u202f% are expected. "
            "An improbable row is not necessarily an error. Rows are numbered from 0."
        ),
    )
    return Section("surprise", "Surprising rows", body)


def _cells(each: SurprisingRow) -> Markup:
    if not each.cells:
        return together("no single cell is improbable")
    parts = [
        together(named(name, 40), " = ", named(value, 40), f" ({number(p, 2)})")
        for name, value, p in each.cells
    ]
    return element("ul", [element("li", part) for part in parts], class_="cells")

"""The title and the most important results."""

from __future__ import annotations

from calibayes.report.facts.values import Facts
from calibayes.report.page.markup import Child, Markup, element, together
from calibayes.report.page.parts import definition_list, paragraph
from calibayes.report.page.wording import count, counts, fixed, named, percent, shortened


def opening(facts: Facts) -> Markup:
    """The beginning of the page."""
    return together(
        element("h1", shortened(facts.title, 200)),
        paragraph(facts.about, class_="lead"),
        definition_list([*_quality(facts), *_table(facts), *_checks(facts)], class_="cards"),
    )


def _card(value: Child, remark: Child) -> Markup:
    return together(value, element("small", remark))


def _quality(facts: Facts) -> list[tuple[Child, Child]]:
    quality = facts.quality
    model = (
        "Model" if facts.ranking is None else "Best model",
        _card(element("span", named(facts.model, 40), class_="text"), "described on this page"),
    )
    if quality is None:
        return [model]
    interval = f"95\u202f% interval {percent(quality.error_low)} to {percent(quality.error_high)}"
    return [
        model,
        (
            "Error on held-out rows",
            _card(
                percent(quality.error),
                f"{interval}; always predicting the most frequent class: {percent(quality.majority_error)}",
            ),
        ),
        (
            "Log loss on held-out rows",
            _card(
                fixed(quality.log_loss, 3),
                f"predicting the class frequencies: {fixed(quality.prior_log_loss, 3)}",
            ),
        ),
    ]


def _table(facts: Facts) -> list[tuple[Child, Child]]:
    table = facts.table
    cells = table.rows * len(table.columns)
    share = percent(table.missing / cells if cells else 0.0)
    return [("Missing cells", _card(count(table.missing), f"{share} of {count(cells)} cells"))]


def _checks(facts: Facts) -> list[tuple[Child, Child]]:
    findings = facts.findings
    found = len(findings.found)
    words = element(
        "a",
        f"{counts(len(findings.passed), 'check')} passed" if not found else "see the section Checks",
        href="#checks",
    )
    return [("Warnings from checks", _card(count(found), words))]

"""Rows whose label looks wrong."""

from __future__ import annotations

from calibayes.report.facts.values import Facts
from calibayes.report.page.markup import Child, together
from calibayes.report.page.parts import Section, note, paragraph, table
from calibayes.report.page.wording import NOTHING, count, counts, named, percent, shortened


def labels_section(facts: Facts) -> Section | None:
    """The most suspicious labels; None without probabilities."""
    given = facts.labels
    if given is None:
        return None
    lines: list[list[Child]] = [
        [
            count(each.row),
            named(each.label, 30),
            named(each.suggested, 30),
            _probability(each.probability),
            named(each.reason, 160) if each.reason else NOTHING,
        ]
        for each in given.rows
    ]
    heads: list[Child] = [
        "row",
        "label",
        "predicted class",
        "p(label)",
        "columns in favor of the predicted class (log odds)",
    ]
    shown = (
        table("The most suspicious labels", heads, lines, numeric=(0, 3), class_="stack")
        if lines
        else paragraph("All labels agree with the held-out predictions.")
    )
    body = together(
        paragraph(
            f"Suspicious labels: {count(given.issues)} of {counts(given.judged, 'held-out row')} "
            f"({percent(given.issues / max(given.judged, 1))}). In these rows, a model that was not trained on the row predicts another "
            "class, with at least the mean probability which that class has in the rows labeled with it (confident learning, Northcutt "
            "et al. 2021)."
        ),
        shown,
        note(
            "A suspicious label can be wrong, or correct in an unusual row: verify it before changing it. Rows are numbered from 0."
        ),
    )
    return Section("labels", "Labels that look wrong", body)


def _probability(value: float) -> str:
    return percent(value) if value >= 0.001 else shortened(f"{100 * value:.1g}\u202f%")

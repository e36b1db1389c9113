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
    heads: list[Child] = ["row", "label", "looks like", "p(label)", "columns that say so (log odds)"]
    shown = (
        table("The most suspicious labels", heads, lines, numeric=(0, 3), class_="stack")
        if lines
        else paragraph("No label disagrees with the model.")
    )
    body = together(
        paragraph(
            f"{counts(given.issues, 'row')} of {count(given.judged)} held-out rows ({percent(given.issues / max(given.judged, 1))}) have a "
            "label that a model which was not trained on the row finds improbable, although it is as sure of another class as it usually is "
            "(confident learning)."
        ),
        shown,
        note(
            "Of these, some are wrong labels and some are rare but true: ask somebody who knows before changing them. Rows are counted from 0."
        ),
    )
    return Section("labels", "Labels that look wrong", body)


def _probability(value: float) -> str:
    return percent(value) if value >= 0.001 else shortened(f"{100 * value:.1g}\u202f%")

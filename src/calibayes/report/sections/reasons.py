"""Contributions of the columns to the predictions: averaged over rows, and for single rows."""

from __future__ import annotations

from calibayes.report.drawings.bars import bars
from calibayes.report.facts.values import Contribution, Facts, ReasonFacts, RowReasons
from calibayes.report.page.markup import Child, Markup, element, together
from calibayes.report.page.parts import Section, figure, figures, folded_table, note, paragraph, subsection
from calibayes.report.page.wording import count, counts, named, percent, shortened, signed

SHOWN = 15
TABLE = 200
"""Most columns in the table of contributions."""


def reasons_section(facts: Facts) -> Section | None:
    """Contributions of the columns; None if the predictions of the model cannot be explained."""
    reasons = facts.reasons
    if reasons is None:
        return None
    return Section("reasons", "Reasons for predictions", together(_overall(reasons), _singles(reasons)))


def _overall(reasons: ReasonFacts) -> Markup:
    names = list(reasons.overall)[:SHOWN]
    values = [reasons.overall[name] for name in names]
    description = ", ".join(
        f"{shortened(name, 40)} {value:.2f}" for name, value in zip(names, values, strict=True)
    )
    precision = (
        f"s, estimated from {counts(reasons.permutations, 'permutation')} of the columns"
        if reasons.permutations
        else "s"
    )
    lines: list[list[Child]] = [
        [named(name), f"{value:.3f}"] for name, value in list(reasons.overall.items())[:TABLE]
    ]
    more = len(reasons.overall) - len(names)
    caption = f"Mean absolute contribution to the log odds over {counts(reasons.rows, 'row')}" + (
        f"; the {counts(more, 'column')} with smaller contributions are not shown." if more > 0 else "."
    )
    picture = bars("Contributions of the columns", f"{description}.", names, values, is_signed=False)
    return together(
        paragraph(
            "Influence of each column on the prediction: its contribution to the log odds of the most probable class against the "
            f"second most probable class (Shapley value{precision}). The most influential columns come first."
        ),
        figures(
            figure(
                picture,
                caption,
                folded_table("Mean absolute contributions", ["column", "contribution"], lines, (1,)),
            )
        ),
        note(
            "Contributions describe how the model uses a column. They are not causal effects: they do not tell what would happen if the "
            "value were changed."
        ),
    )


def _singles(reasons: ReasonFacts) -> Markup:
    shown = [_single(each) for each in reasons.singles]
    return subsection(
        "Single rows",
        paragraph(
            "Probabilities are from models that were not trained on the row; contributions are those of the model itself. Bars to the "
            "right favor the first class in the caption, bars to the left favor the second."
        ),
        figures(shown),
    )


def _single(each: RowReasons) -> Markup:
    entries = (
        [*each.contributions, Contribution("all other columns", "", each.rest)]
        if each.rest
        else list(each.contributions)
    )
    names = [f"{entry.column} = {entry.value}" if entry.value else entry.column for entry in entries]
    values = [entry.contribution for entry in entries]
    description = ", ".join(
        f"{shortened(name, 60)} {signed(value)}" for name, value in zip(names, values, strict=True)
    )
    picture = bars(f"Contributions in row {each.row}", f"{description}.", names, values, is_signed=True)
    outcome = "correct" if each.label == each.decided else "wrong"
    facts = element(
        "p",
        "Label ",
        named(each.label, 40),
        ", predicted ",
        named(each.decided, 40),
        f" with probability {percent(each.probability)}: {outcome}.",
        class_="facts",
    )
    lines = [
        [named(entry.column), named(entry.value, 40) if entry.value else "", signed(entry.contribution)]
        for entry in entries
    ]
    numbers = folded_table(
        f"Contributions in row {each.row}", ["column", "value", "contribution"], lines, (2,)
    )
    caption = together(
        "Log odds of ",
        named(each.chosen, 30),
        " against ",
        named(each.other, 30),
        f": {signed(each.log_odds)}.",
    )
    return element(
        "figure",
        element("h4", f"Row {count(each.row)}: {each.why_shown}"),
        facts,
        picture,
        element("figcaption", caption),
        numbers,
    )

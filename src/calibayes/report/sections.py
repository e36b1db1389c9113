"""All sections in their order, and the complete page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from calibayes._version import __version__
from calibayes.checks import Finding, Findings
from calibayes.report import markup
from calibayes.report.drawings import bars
from calibayes.report.markup import Child, Markup
from calibayes.report.page import document
from calibayes.report.quality_sections import curves_section, quality_section
from calibayes.report.table_sections import opening, ranking_section, table_section
from calibayes.report.values import (
    Contribution,
    Facts,
    LabelFacts,
    ReasonFacts,
    RowReasons,
    Skipped,
    SurpriseFacts,
    SurprisingRow,
)
from calibayes.versions import DOCUMENTATION

SHOWN = 15
TABLE = 200
"""Most columns in the table of contributions."""


def reasons_section(reasons: ReasonFacts, facts: Facts) -> Markup:
    """Contributions of the columns to the predictions."""
    return markup.together(_overall(reasons), _singles(reasons))


def _overall(reasons: ReasonFacts) -> Markup:
    names = list(reasons.overall)[:SHOWN]
    values = [reasons.overall[name] for name in names]
    description = ", ".join(
        f"{markup.shortened(name, 40)} {value:.2f}" for name, value in zip(names, values, strict=True)
    )
    precision = f", estimated from {markup.counts(reasons.permutations, 'permutation')} of the columns"
    lines: list[list[Child]] = [
        [markup.named(name), f"{value:.3f}"] for name, value in list(reasons.overall.items())[:TABLE]
    ]
    more = len(reasons.overall) - len(names)
    caption = f"Mean absolute contribution to the log odds over {markup.counts(reasons.rows, 'row')}" + (
        f"; the {markup.counts(more, 'column')} with smaller contributions are not shown."
        if more > 0
        else "."
    )
    picture = bars("Contributions of the columns", f"{description}.", names, values, is_signed=False)
    return markup.together(
        markup.paragraph(
            "Influence of each column on the prediction: its contribution to the log odds of the most probable class against the "
            f"second most probable class (Shapley values{precision if reasons.permutations else ''}). The most influential columns come first."
        ),
        markup.figures(
            markup.figure(
                picture,
                caption,
                markup.folded_table("Mean absolute contributions", ["column", "contribution"], lines, (1,)),
            )
        ),
        markup.note(
            "Contributions describe how the model uses a column. They are not causal effects: they do not tell what would happen if the "
            "value were changed."
        ),
    )


def _singles(reasons: ReasonFacts) -> Markup:
    return markup.subsection(
        "Single rows",
        markup.paragraph(
            "Probabilities are from models that were not trained on the row; contributions are those of the model itself. Bars to the "
            "right favor the first class in the caption, bars to the left favor the second."
        ),
        markup.figures(map(_single, reasons.singles)),
    )


def _single(each: RowReasons) -> Markup:
    rest = [Contribution("all other columns", "", each.rest)] if each.rest else []
    entries = [*each.contributions, *rest]
    names = [f"{entry.column} = {entry.value}" if entry.value else entry.column for entry in entries]
    values = [entry.contribution for entry in entries]
    description = ", ".join(
        f"{markup.shortened(name, 60)} {markup.signed(value)}"
        for name, value in zip(names, values, strict=True)
    )
    picture = bars(f"Contributions in row {each.row}", f"{description}.", names, values, is_signed=True)
    outcome = "correct" if each.label == each.decided else "wrong"
    facts = markup.element(
        "p",
        "Label ",
        markup.named(each.label, 40),
        ", predicted ",
        markup.named(each.decided, 40),
        f" with probability {markup.percent(each.probability)}: {outcome}.",
        class_="facts",
    )
    lines = [
        [
            markup.named(entry.column),
            markup.named(entry.value, 40) if entry.value else "",
            markup.signed(entry.contribution),
        ]
        for entry in entries
    ]
    numbers = markup.folded_table(
        f"Contributions in row {each.row}", ["column", "value", "contribution"], lines, (2,)
    )
    caption = markup.together(
        "Log odds of ",
        markup.named(each.chosen, 30),
        " against ",
        markup.named(each.other, 30),
        f": {markup.signed(each.log_odds)}.",
    )
    return markup.element(
        "figure",
        markup.element("h4", f"Row {markup.count(each.row)}: {each.why_shown}"),
        facts,
        picture,
        markup.element("figcaption", caption),
        numbers,
    )


# -- The rows of lowest density ------------------------------------------------------------------------------


def surprise_section(given: SurpriseFacts, facts: Facts) -> Markup:
    """The rows of lowest density."""
    lines: list[list[Child]] = [
        [markup.count(each.row), markup.number(each.p_value, 2), markup.named(each.label, 30), _cells(each)]
        for each in given.rows
    ]
    left_out = (
        f" The density does not include the {markup.counts(given.left_out, 'least informative column')}."
    )
    return markup.together(
        markup.paragraph(
            f"The least probable of {markup.counts(given.scored, 'row')} under the density p(x) of {given.about}.{left_out if given.left_out else ''} The p-value of a "
            "row is the share of held-out rows with the same or a lower density; the p-value of a cell compares its value with the "
            "rest of the row."
        ),
        markup.table(
            "The most surprising rows",
            ["row", "p-value", "label", "least probable cells (p-value)"],
            lines,
            numeric=(0, 1),
            class_="stack",
        ),
        markup.note(
            f"{markup.percent(given.expected)} of the rows have a p-value of at most 1\u202f%; without outliers, about 1\u202f% are expected. "
            "An improbable row is not necessarily an error. Rows are numbered from 0."
        ),
    )


def _cells(each: SurprisingRow) -> Markup:
    if not each.cells:
        return markup.together("no single cell is improbable")
    parts = [
        markup.together(markup.named(name, 40), " = ", markup.named(value, 40), f" ({markup.number(p, 2)})")
        for name, value, p in each.cells
    ]
    return markup.element("ul", [markup.element("li", part) for part in parts], class_="cells")


# -- Rows whose label looks wrong ----------------------------------------------------------------------------


def labels_section(given: LabelFacts, facts: Facts) -> Markup:
    """The most suspicious labels."""
    lines: list[list[Child]] = [
        [
            markup.count(each.row),
            markup.named(each.label, 30),
            markup.named(each.suggested, 30),
            _probability(each.probability),
            markup.named(each.reason, 160) if each.reason else markup.NOTHING,
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
        markup.table("The most suspicious labels", heads, lines, numeric=(0, 3), class_="stack")
        if lines
        else markup.paragraph("All labels agree with the held-out predictions.")
    )
    return markup.together(
        markup.paragraph(
            f"Suspicious labels: {markup.count(given.issues)} of {markup.counts(given.judged, 'held-out row')} "
            f"({markup.percent(given.issues / max(given.judged, 1))}). In these rows, a model that was not trained on the row predicts another "
            "class, with at least the mean probability which that class has in the rows labeled with it (confident learning, Northcutt "
            "et al. 2021)."
        ),
        shown,
        markup.note(
            "A suspicious label can be wrong, or correct in an unusual row: verify it before changing it. Rows are numbered from 0."
        ),
    )


def _probability(value: float) -> str:
    return markup.percent(value) if value >= 0.001 else markup.shortened(f"{100 * value:.1g}\u202f%")


# -- Numbered checks: the problems found, their evidence, and how to silence a check -------------------------

MESSAGE = 800
COLUMNS = 12
"""Most columns that are listed for a finding."""


def checks(findings: Findings, facts: Facts) -> Markup:
    """The findings, and the checks that passed or were not run."""
    run = len(findings.found) + len(findings.passed)
    result = f"{markup.counts(run, 'automatic check')} of the table and the model gave {markup.counts(len(findings.found), 'warning')}."
    scope = f" Checks of the table examined {findings.scope}." if findings.scope else ""
    found = [_finding(each) for each in findings.found] or markup.paragraph("No check found a problem.")
    return markup.together(markup.paragraph(result + scope), found, _others(findings))


def _finding(each: Finding) -> Markup:
    columns = [markup.named(name, 40) for name in each.columns[:COLUMNS]]
    more = f" and {markup.count(len(each.columns) - COLUMNS)} more" if len(each.columns) > COLUMNS else None
    listed = [markup.together(", " if place else None, name) for place, name in enumerate(columns)]
    return markup.element(
        "article",
        markup.element(
            "h3",
            markup.element("span", each.code, class_="label"),
            markup.shortened(each.title[:1].upper() + each.title[1:], 200),
        ),
        markup.paragraph(markup.shortened(each.message, MESSAGE)),
        markup.folded(
            "Evidence, and how to silence this check",
            markup.paragraph("Columns: ", listed, more) if columns else None,
            _evidence(each),
        ),
        class_="finding",
    )


def _evidence(each: Finding) -> Markup:
    pairs = [(markup.shortened(name), _value(value)) for name, value in each.evidence.items()]
    silence = markup.paragraph(
        "To silence this check, pass ",
        markup.element("code", f'ignore=("{each.code}",)'),
        " to the function that creates the report. ",
        markup.link(f"Documentation of {each.code}", each.page),
    )
    return markup.together(markup.definition_list(pairs) if pairs else None, silence)


def _value(value: Any) -> str:
    return markup.number(float(value), 4) if isinstance(value, int | float) else markup.shortened(value, 200)


def _others(findings: Findings) -> Markup:
    passed = (
        markup.note(f"Passed: {markup.sentence_list(list(findings.passed))}.") if findings.passed else None
    )
    silenced = (
        markup.note(f"Silenced: {markup.sentence_list(list(findings.silenced))}.")
        if findings.silenced
        else None
    )
    skipped = [
        markup.together(f"{name}: ", markup.shortened(why, 300)) for name, why in findings.skipped.items()
    ]
    not_run = (
        markup.folded(f"Not run: {markup.counts(len(skipped), 'check')}", markup.bullets(skipped))
        if skipped
        else None
    )
    return markup.together(passed, silenced, not_run)


# -- Python code that creates the model ----------------------------------------------------------------------


def python_section(source: str, facts: Facts) -> Markup:
    """A code block, and a button that copies it."""
    block = markup.element(
        "pre", markup.element("code", source, id="python-code"), tabindex="0", aria_label="Python code"
    )
    button = markup.element(
        "button", "Copy", type="button", data_copies="python-code", aria_live="polite", hidden=True
    )
    return markup.together(
        markup.paragraph(
            "This code creates and fits the model of this report."
            if facts.ranking is None
            else "This code creates the best model and fits it to all rows."
        ),
        markup.element("div", block, class_="code"),
        button,
        markup.note("The same rows, version of calibayes and seed give the same predictions."),
    )


# -- Parts of the report that were skipped, with the reasons, and computing times ----------------------------


def skipped_section(skipped: Sequence[Skipped], facts: Facts) -> Markup:
    """Sections, models and columns that are not shown, and the computing time of each stage."""
    pairs = [(markup.shortened(each.what, 120), markup.shortened(each.why, 600)) for each in skipped]
    times = [[name, markup.fixed(seconds, 1)] for name, seconds in facts.seconds.items()]
    timing = markup.folded(
        "Computing time",
        markup.table("Computing time of each stage", ["stage", "seconds"], times, numeric=(1,)),
    )
    return markup.together(
        markup.definition_list(pairs) if pairs else markup.paragraph("Nothing was skipped."), timing
    )


# -- All sections in their order, and the complete page ------------------------------------------------------

SECTIONS: Mapping[str, tuple[str, str, Callable[[Any, Facts], Markup]]] = {
    "checks": ("Checks", "findings", checks),
    "table": ("The table", "table", table_section),
    "models": ("Models compared", "ranking", ranking_section),
    "curves": ("Learning curves", "curves", curves_section),
    "quality": ("Quality on held-out rows", "quality", quality_section),
    "reasons": ("Reasons for predictions", "reasons", reasons_section),
    "surprise": ("Surprising rows", "surprise", surprise_section),
    "labels": ("Labels that look wrong", "labels", labels_section),
    "python": ("Python code for this model", "code", python_section),
    "skipped": ("What was skipped, and why", "skipped", skipped_section),
}
"""Anchor -> title, attribute of `Facts` (there is no section if it is None), and function of it and all facts."""


def page_of(facts: Facts) -> str:
    """The complete HTML document."""
    sections = [
        markup.Section(key, title, make(part, facts))
        for key, (title, name, make) in SECTIONS.items()
        if (part := getattr(facts, name)) is not None
    ]
    closing = markup.together(
        markup.paragraph(
            f"Created with calibayes {__version__}. ",
            markup.link("How to read this page", f"{DOCUMENTATION}/report.html"),
        ),
        markup.paragraph("This file is self-contained: it loads no other files and sends no data."),
    )
    return document(markup.shortened(facts.title, 200), opening(facts), sections, closing)

"""All sections in their order, and the complete page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from calibayes._version import __version__
from calibayes.checks import Finding, Findings
from calibayes.report.drawings import bars
from calibayes.report.markup import (
    NOTHING,
    Child,
    Markup,
    Section,
    bullets,
    count,
    counts,
    definition_list,
    element,
    figure,
    figures,
    fixed,
    folded,
    folded_table,
    link,
    named,
    note,
    number,
    paragraph,
    percent,
    sentence_list,
    shortened,
    signed,
    subsection,
    table,
    together,
)
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
    return together(_overall(reasons), _singles(reasons))


def _overall(reasons: ReasonFacts) -> Markup:
    names = list(reasons.overall)[:SHOWN]
    values = [reasons.overall[name] for name in names]
    description = ", ".join(
        f"{shortened(name, 40)} {value:.2f}" for name, value in zip(names, values, strict=True)
    )
    precision = f", estimated from {counts(reasons.permutations, 'permutation')} of the columns"
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
            f"second most probable class (Shapley values{precision if reasons.permutations else ''}). The most influential columns come first."
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
    return subsection(
        "Single rows",
        paragraph(
            "Probabilities are from models that were not trained on the row; contributions are those of the model itself. Bars to the "
            "right favor the first class in the caption, bars to the left favor the second."
        ),
        figures(map(_single, reasons.singles)),
    )


def _single(each: RowReasons) -> Markup:
    rest = [Contribution("all other columns", "", each.rest)] if each.rest else []
    entries = [*each.contributions, *rest]
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


# -- The rows of lowest density ------------------------------------------------------------------------------


def surprise_section(given: SurpriseFacts, facts: Facts) -> Markup:
    """The rows of lowest density."""
    lines: list[list[Child]] = [
        [count(each.row), number(each.p_value, 2), named(each.label, 30), _cells(each)] for each in given.rows
    ]
    left_out = f" The density does not include the {counts(given.left_out, 'least informative column')}."
    return together(
        paragraph(
            f"The least probable of {counts(given.scored, 'row')} under the density p(x) of {given.about}.{left_out if given.left_out else ''} The p-value of a "
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


def _cells(each: SurprisingRow) -> Markup:
    if not each.cells:
        return together("no single cell is improbable")
    parts = [
        together(named(name, 40), " = ", named(value, 40), f" ({number(p, 2)})")
        for name, value, p in each.cells
    ]
    return element("ul", [element("li", part) for part in parts], class_="cells")


# -- Rows whose label looks wrong ----------------------------------------------------------------------------


def labels_section(given: LabelFacts, facts: Facts) -> Markup:
    """The most suspicious labels."""
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
    return together(
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


def _probability(value: float) -> str:
    return percent(value) if value >= 0.001 else shortened(f"{100 * value:.1g}\u202f%")


# -- Numbered checks: the problems found, their evidence, and how to silence a check -------------------------

MESSAGE = 800
COLUMNS = 12
"""Most columns that are listed for a finding."""


def checks(findings: Findings, facts: Facts) -> Markup:
    """The findings, and the checks that passed or were not run."""
    run = len(findings.found) + len(findings.passed)
    result = f"{counts(run, 'automatic check')} of the table and the model gave {counts(len(findings.found), 'warning')}."
    scope = f" Checks of the table examined {findings.scope}." if findings.scope else ""
    found = [_finding(each) for each in findings.found] or paragraph("No check found a problem.")
    return together(paragraph(result + scope), found, _others(findings))


def _finding(each: Finding) -> Markup:
    columns = [named(name, 40) for name in each.columns[:COLUMNS]]
    more = f" and {count(len(each.columns) - COLUMNS)} more" if len(each.columns) > COLUMNS else None
    listed = [together(", " if place else None, name) for place, name in enumerate(columns)]
    return element(
        "article",
        element(
            "h3",
            element("span", each.code, class_="label"),
            shortened(each.title[:1].upper() + each.title[1:], 200),
        ),
        paragraph(shortened(each.message, MESSAGE)),
        folded(
            "Evidence, and how to silence this check",
            paragraph("Columns: ", listed, more) if columns else None,
            _evidence(each),
        ),
        class_="finding",
    )


def _evidence(each: Finding) -> Markup:
    pairs = [(shortened(name), _value(value)) for name, value in each.evidence.items()]
    silence = paragraph(
        "To silence this check, pass ",
        element("code", f'ignore=("{each.code}",)'),
        " to the function that creates the report. ",
        link(f"Documentation of {each.code}", each.page),
    )
    return together(definition_list(pairs) if pairs else None, silence)


def _value(value: Any) -> str:
    return number(float(value), 4) if isinstance(value, int | float) else shortened(value, 200)


def _others(findings: Findings) -> Markup:
    passed = note(f"Passed: {sentence_list(list(findings.passed))}.") if findings.passed else None
    silenced = note(f"Silenced: {sentence_list(list(findings.silenced))}.") if findings.silenced else None
    skipped = [together(f"{name}: ", shortened(why, 300)) for name, why in findings.skipped.items()]
    not_run = folded(f"Not run: {counts(len(skipped), 'check')}", bullets(skipped)) if skipped else None
    return together(passed, silenced, not_run)


# -- Python code that creates the model ----------------------------------------------------------------------


def python_section(source: str, facts: Facts) -> Markup:
    """A code block, and a button that copies it."""
    block = element("pre", element("code", source, id="python-code"), tabindex="0", aria_label="Python code")
    button = element(
        "button", "Copy", type="button", data_copies="python-code", aria_live="polite", hidden=True
    )
    return together(
        paragraph(
            "This code creates and fits the model of this report."
            if facts.ranking is None
            else "This code creates the best model and fits it to all rows."
        ),
        element("div", block, class_="code"),
        button,
        note("The same rows, version of calibayes and seed give the same predictions."),
    )


# -- Parts of the report that were skipped, with the reasons, and computing times ----------------------------


def skipped_section(skipped: Sequence[Skipped], facts: Facts) -> Markup:
    """Sections, models and columns that are not shown, and the computing time of each stage."""
    pairs = [(shortened(each.what, 120), shortened(each.why, 600)) for each in skipped]
    times = [[name, fixed(seconds, 1)] for name, seconds in facts.seconds.items()]
    timing = folded(
        "Computing time", table("Computing time of each stage", ["stage", "seconds"], times, numeric=(1,))
    )
    return together(definition_list(pairs) if pairs else paragraph("Nothing was skipped."), timing)


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
        Section(key, title, make(part, facts))
        for key, (title, name, make) in SECTIONS.items()
        if (part := getattr(facts, name)) is not None
    ]
    closing = together(
        paragraph(
            f"Created with calibayes {__version__}. ",
            link("How to read this page", f"{DOCUMENTATION}/report.html"),
        ),
        paragraph("This file is self-contained: it loads no other files and sends no data."),
    )
    return document(shortened(facts.title, 200), opening(facts), sections, closing)

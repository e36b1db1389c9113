"""All sections in their order, and the complete page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from calibayes._version import __version__
from calibayes.checks import Finding, Findings
from calibayes.report import markup as html
from calibayes.report import values
from calibayes.report.drawings import bars
from calibayes.report.markup import Child, Markup
from calibayes.report.page import document
from calibayes.report.quality_sections import curves_section, quality_section
from calibayes.report.table_sections import opening, ranking_section, table_section
from calibayes.versions import DOCUMENTATION

SHOWN = 15
TABLE = 200
"""Most columns in the table of contributions."""


def reasons_section(reasons: values.ReasonFacts, facts: values.Facts) -> Markup:
    """Contributions of the columns to the predictions."""
    return html.together(_overall(reasons), _singles(reasons) if reasons.singles else None)


def _overall(reasons: values.ReasonFacts) -> Markup:
    sizes = list(reasons.overall.items())
    shown, more = dict(sizes[:SHOWN]), len(sizes) - SHOWN
    description = ", ".join(f"{html.shortened(name, 40)} {size:.2f}" for name, size in shown.items())
    precision = f", estimated from {html.counts(reasons.permutations, 'permutation')} of the columns"
    lines: list[list[Child]] = [[html.named(name), f"{size:.3f}"] for name, size in sizes[:TABLE]]
    numbers = html.folded_table("Mean absolute contributions", ["column", "contribution"], lines, 1)
    rest = f"; the {html.counts(more, 'column')} with smaller contributions are not shown" if more > 0 else ""
    caption = f"Mean absolute contribution to the log odds over {html.counts(reasons.rows, 'row')}{rest}."
    title, columns, lengths = "Contributions of the columns", list(shown), list(shown.values())
    picture = bars(title, f"{description}.", columns, lengths, is_signed=False)
    return html.together(
        html.paragraph(
            "Influence of each column on the prediction: its contribution to the log odds of the most probable class against the "
            f"second most probable class (Shapley values{precision if reasons.permutations else ''}). The most influential columns come first."
        ),
        html.figures(html.figure(picture, caption, numbers)),
        html.note(
            "Contributions describe how the model uses a column. They are not causal effects: they do not tell what would happen if the "
            "value were changed."
        ),
    )


def _singles(reasons: values.ReasonFacts) -> Markup:
    return html.subsection(
        "Single rows",
        html.paragraph(
            "Predictions, probabilities and contributions of a row are those of one model that was not trained on any of these rows. "
            "Bars to the right favor the predicted class, bars to the left favor the second most probable one. The contributions sum to "
            "the log odds."
        ),
        html.figures(map(_single, reasons.singles)),
    )


def _single(each: values.RowReasons) -> Markup:
    rest = [values.Contribution("all other columns", "", each.rest)] if each.rest else []
    entries = [*each.contributions, *rest]
    names = [f"{entry.column} = {entry.value}" if entry.value else entry.column for entry in entries]
    lengths = [entry.contribution for entry in entries]
    signed, title = list(map(html.signed, lengths)), f"Contributions in row {each.row}"
    sizes = (f"{html.shortened(name, 60)} {size}" for name, size in zip(names, signed, strict=True))
    picture = bars(title, f"{', '.join(sizes)}.", names, lengths, is_signed=True)
    outcome = "correct" if each.label == each.decided else "wrong"
    label, decided = html.named(each.label, 40), html.named(each.decided, 40)
    prediction = f" with probability {html.percent(each.probability)}: {outcome}."
    lines = [
        [html.named(entry.column), html.named(entry.value, 40) if entry.value else "", size]
        for entry, size in zip(entries, signed, strict=True)
    ]
    pair = (html.named(each.decided, 30), " against ", html.named(each.other, 30))
    other = f" ({html.percent(each.other_probability)}): {html.signed(each.log_odds)}."
    caption = ("Log odds of ", *pair, other)
    return html.element(
        "figure",
        html.element("h4", f"Row {html.count(each.row)}: {each.why_shown}"),
        html.paragraph("Label ", label, ", predicted ", decided, prediction, class_="facts"),
        picture,
        html.element("figcaption", caption),
        html.folded_table(title, ["column", "value", "contribution"], lines, 2),
    )


# -- The rows of lowest density ------------------------------------------------------------------------------


def surprise_section(given: values.SurpriseFacts, facts: values.Facts) -> Markup:
    """The rows of lowest density."""
    lines: list[list[Child]] = [
        [html.count(each.row), html.number(each.p_value, 2), html.named(each.label, 30), _cells(each)]
        for each in given.rows
    ]
    least = html.counts(given.left_out, "least informative column")
    left_out = f" The density does not include the {least}." if given.left_out else ""
    heads = ["row", "p-value", "label", "least probable cells (p-value)"]
    return html.together(
        html.paragraph(
            f"The least probable of {html.counts(given.scored, 'row')} under the density p(x) of {given.about}.{left_out} The p-value of a "
            "row is the share of held-out rows with the same or a lower density; the p-value of a cell compares its value with the "
            "rest of the row."
        ),
        html.table("The most surprising rows", heads, lines, numeric=(0, 1), class_="stack"),
        html.note(
            f"{html.percent(given.expected)} of the rows have a p-value of at most 1\u202f%; without outliers, about 1\u202f% are expected. "
            "An improbable row is not necessarily an error. Rows are numbered from 0."
        ),
    )


def _cells(each: values.SurprisingRow) -> Child:
    if not each.cells:
        return "no single cell is improbable"
    parts = [
        (html.named(name, 40), " = ", html.named(value, 40), f" ({html.number(p, 2)})")
        for name, value, p in each.cells
    ]
    return html.bullets(parts, class_="cells")


# -- Rows whose label looks wrong ----------------------------------------------------------------------------


def labels_section(given: values.LabelFacts, facts: values.Facts) -> Markup:
    """The most suspicious labels."""
    lines: list[list[Child]] = [
        [
            html.count(each.row),
            *(html.named(name, 30) for name in (each.label, each.suggested)),
            _probability(each.probability),
            html.named(each.reason, 160) if each.reason else html.NOTHING,
        ]
        for each in given.rows
    ]
    columns = (
        "columns in favor of the predicted class (log odds, by a model that was not trained on these rows)"
    )
    heads = ["row", "label", "predicted class", "p(label)", columns]
    shown = html.paragraph("All labels agree with the held-out predictions.")
    if lines:
        shown = html.table("The most suspicious labels", heads, lines, numeric=(0, 3), class_="stack")
    return html.together(
        html.paragraph(
            f"Suspicious labels: {html.count(given.issues)} of {html.counts(given.judged, 'held-out row')} "
            f"({html.percent(given.issues / max(given.judged, 1))}). In these rows, a model that was not trained on the row predicts another "
            "class, with at least the mean probability which that class has in the rows labeled with it (confident learning, Northcutt "
            "et al. 2021)."
        ),
        shown,
        html.note(
            "A suspicious label can be wrong, or correct in an unusual row: verify it before changing it. Rows are numbered from 0."
        ),
    )


def _probability(value: float) -> str:
    return html.percent(value) if value >= 0.001 else html.shortened(f"{100 * value:.1g}\u202f%")


# -- Numbered checks: the problems found, their evidence, and how to silence a check -------------------------

MESSAGE = 800
COLUMNS = 12
"""Most columns that are listed for a finding."""


def checks(findings: Findings, facts: values.Facts) -> Markup:
    """The findings, and the checks that passed or were not run."""
    run = len(findings.found) + len(findings.passed)
    result = f"{html.counts(run, 'automatic check')} of the table and the model gave {html.counts(len(findings.found), 'warning')}."
    scope = f" Checks of the table examined {findings.scope}." if findings.scope else ""
    found = [_finding(each) for each in findings.found] or html.paragraph("No check found a problem.")
    return html.together(html.paragraph(result + scope), found, _others(findings))


def _finding(each: Finding) -> Markup:
    code = html.element("span", each.code, class_="label")
    title = html.shortened(each.title[:1].upper() + each.title[1:], 200)
    return html.element(
        "article",
        html.element("h3", code, title),
        html.paragraph(html.shortened(each.message, MESSAGE)),
        html.folded("Evidence, and how to silence this check", _evidence(each)),
        class_="finding",
    )


def _evidence(each: Finding) -> Iterator[Markup]:
    if each.columns:
        listed = [(", " if place else None, html.named(name, 40)) for place, name in enumerate(each.columns)]
        more = f" and {html.count(len(listed) - COLUMNS)} more" if len(listed) > COLUMNS else None
        yield html.paragraph("Columns: ", listed[:COLUMNS], more)
    if each.evidence:
        items = each.evidence.items()
        yield html.definition_list([(html.shortened(name), _value(value)) for name, value in items])
    yield html.paragraph(
        "To silence this check, pass ",
        html.element("code", f'ignore=("{each.code}",)'),
        " to the function that creates the report. ",
        html.link(f"Documentation of {each.code}", each.page),
    )


def _value(value: Any) -> str:
    return html.number(float(value), 4) if isinstance(value, int | float) else html.shortened(value, 200)


def _others(findings: Findings) -> Iterator[Markup]:
    for word, codes in (("Passed", findings.passed), ("Silenced", findings.silenced)):
        if codes:
            yield html.note(f"{word}: {html.sentence_list(codes)}.")
    if findings.skipped:
        skipped = [f"{name}: {html.shortened(why, 300)}" for name, why in findings.skipped.items()]
        yield html.folded(f"Not run: {html.counts(len(skipped), 'check')}", html.bullets(skipped))


# -- Python code that creates the model ----------------------------------------------------------------------


def python_section(source: str, facts: values.Facts) -> Markup:
    """A code block, and a button that copies it."""
    created = "This code creates the model of this report and fits it to all rows."
    if facts.ranking is None:
        created = "This code creates and fits the model of this report."
    code = html.element("code", source, id="python-code")
    block = html.element("pre", code, tabindex="0", aria_label="Python code")
    copies = {"data_copies": "python-code", "aria_live": "polite"}
    return html.together(
        html.paragraph(created),
        html.element("div", block, class_="code"),
        html.element("button", "Copy", type="button", **copies, hidden=True),
        html.note("The same rows, version of calibayes and seed give the same predictions."),
    )


# -- Parts of the report that were skipped, with the reasons, and computing times ----------------------------


def skipped_section(skipped: Sequence[values.Skipped], facts: values.Facts) -> Markup:
    """Sections, models and columns that are not shown, and the computing time of each stage."""
    pairs = [(html.shortened(each.what, 120), html.shortened(each.why, 600)) for each in skipped]
    times = [[name, html.fixed(seconds, 1)] for name, seconds in facts.seconds.items()]
    timing = html.table("Computing time of each stage", ["stage", "seconds"], times, numeric=(1,))
    what = html.definition_list(pairs) if pairs else html.paragraph("Nothing was skipped.")
    return html.together(what, html.folded("Computing time", timing))


# -- All sections in their order, and the complete page ------------------------------------------------------

SECTIONS: Mapping[str, tuple[str, str, Callable[[Any, values.Facts], Markup]]] = {
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


def page_of(facts: values.Facts) -> str:
    """The complete HTML document."""
    sections = [
        html.Section(key, title, make(part, facts))
        for key, (title, name, make) in SECTIONS.items()
        if (part := getattr(facts, name)) is not None
    ]
    explained = html.link("How to read this page", f"{DOCUMENTATION}/report.html")
    closing = (
        html.paragraph(f"Created with calibayes {__version__}. ", explained),
        html.paragraph("This file is self-contained: it loads no other files and sends no data."),
    )
    return document(html.shortened(facts.title, 200), opening(facts), sections, closing)

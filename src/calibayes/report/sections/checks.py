"""Numbered checks: the problems found, their evidence, and how to silence a check."""

from __future__ import annotations

from typing import Any

from calibayes.report.facts.values import Facts
from calibayes.report.page.markup import Markup, element, together
from calibayes.report.page.parts import Section, bullets, code, definition_list, folded, link, note, paragraph
from calibayes.report.page.wording import count, counts, named, number, sentence_list, shortened

MESSAGE = 800
COLUMNS = 12
"""Most columns that are listed for a finding."""


def checks(facts: Facts) -> Section:
    """The findings, and the checks that passed or were not run."""
    findings = facts.findings
    found = [_finding(each) for each in findings.found]
    nothing = None if found else paragraph("No check found a problem.")
    return Section("checks", "Checks", together(_opening(findings), found, nothing, _others(findings)))


def _opening(findings: Any) -> Markup:
    run = len(findings.found) + len(findings.passed)
    result = f"{counts(run, 'automatic check')} of the table and the model gave {counts(len(findings.found), 'warning')}."
    scope = f" Checks of the table examined {findings.scope}." if findings.scope else ""
    return paragraph(result + scope)


def _finding(each: Any) -> Markup:
    columns = [named(name, 40) for name in each.columns[:COLUMNS]]
    more = f" and {count(len(each.columns) - COLUMNS)} more" if len(each.columns) > COLUMNS else None
    listed = [
        together(name, ", " if place < len(columns) - 1 else None) for place, name in enumerate(columns)
    ]
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


def _evidence(each: Any) -> Markup:
    pairs = [(shortened(name), _value(value)) for name, value in each.evidence.items()]
    silence = paragraph(
        "To silence this check, pass ",
        code(f'ignore=("{each.code}",)'),
        " to the function that creates the report. ",
        link(f"Documentation of {each.code}", each.page),
    )
    return together(definition_list(pairs) if pairs else None, silence)


def _value(value: Any) -> str:
    return number(float(value), 4) if isinstance(value, int | float) else shortened(value, 200)


def _others(findings: Any) -> Markup:
    passed = note(f"Passed: {sentence_list(list(findings.passed))}.") if findings.passed else None
    silenced = note(f"Silenced: {sentence_list(list(findings.silenced))}.") if findings.silenced else None
    skipped = [together(f"{name}: ", shortened(why, 300)) for name, why in findings.skipped.items()]
    not_run = folded(f"Not run: {counts(len(skipped), 'check')}", bullets(skipped)) if skipped else None
    return together(passed, silenced, not_run)

"""Python code that creates the model."""

from __future__ import annotations

from calibayes.report.facts.values import Facts
from calibayes.report.page.markup import element, together
from calibayes.report.page.parts import Section, note, paragraph


def python_section(facts: Facts) -> Section | None:
    """A code block; None if a parameter cannot be written as code."""
    if facts.code is None:
        return None
    block = element(
        "pre", element("code", facts.code, id="python-code"), tabindex="0", aria_label="Python code"
    )
    button = element(
        "button", "Copy", type="button", data_copies="python-code", aria_live="polite", hidden=True
    )
    body = together(
        paragraph(
            "This code creates and fits the model of this report."
            if facts.ranking is None
            else "This code creates the best model and fits it to all rows."
        ),
        element("div", block, class_="code"),
        button,
        note("The same rows, version of calibayes and seed give the same predictions."),
    )
    return Section("python", "Python code for this model", body)

"""The Python that makes the model."""

from __future__ import annotations

from calibayes.report.facts.values import Facts
from calibayes.report.page.markup import element, together
from calibayes.report.page.parts import Section, note, paragraph


def python_section(facts: Facts) -> Section | None:
    """A code block; None if a parameter cannot be written."""
    if facts.code is None:
        return None
    block = element(
        "pre", element("code", facts.code, id="python-code"), tabindex="0", aria_label="Python code"
    )
    button = element("button", "Copy", type="button", data_copies="python-code", hidden=True)
    body = together(
        paragraph(
            "This makes the model of this report."
            if facts.ranking is None
            else "This makes the best model, trained on all rows."
        ),
        element("div", block, class_="code"),
        button,
        note("With the same rows, the same version and the same seed it gives the same predictions."),
    )
    return Section("python", "The Python that makes this model", body)

"""All sections in their order, and the complete page."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from calibayes._version import __version__
from calibayes.report.markup import (
    Section,
    definition_list,
    element,
    fixed,
    folded,
    link,
    note,
    paragraph,
    shortened,
    table,
    together,
)
from calibayes.report.page import document
from calibayes.report.quality_sections import curves_section, quality_section
from calibayes.report.row_sections import checks, labels_section, reasons_section, surprise_section
from calibayes.report.table_sections import opening, ranking_section, table_section
from calibayes.report.values import Facts
from calibayes.versions import DOCUMENTATION

# -- Python code that creates the model ----------------------------------------------------------------------


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


# -- Parts of the report that were skipped, with the reasons, and computing times ----------------------------


def skipped_section(facts: Facts) -> Section:
    """Sections, models and columns that are not shown, and the computing time of each stage."""
    pairs = [(shortened(each.what, 120), shortened(each.why, 600)) for each in facts.skipped]
    nothing = None if pairs else paragraph("Nothing was skipped.")
    times = [[name, fixed(seconds, 1)] for name, seconds in facts.seconds.items()]
    timing = folded(
        "Computing time", table("Computing time of each stage", ["stage", "seconds"], times, numeric=(1,))
    )
    return Section(
        "skipped",
        "What was skipped, and why",
        together(nothing, definition_list(pairs) if pairs else None, timing),
    )


# -- All sections in their order, and the complete page ------------------------------------------------------

SECTIONS: Mapping[str, Callable[[Facts], Section | None]] = {
    "checks": checks,
    "table": table_section,
    "models": ranking_section,
    "curves": curves_section,
    "quality": quality_section,
    "reasons": reasons_section,
    "surprise": surprise_section,
    "labels": labels_section,
    "python": python_section,
    "skipped": skipped_section,
}
"""Anchor -> function that creates the section, or returns None if its facts were skipped."""


def page_of(facts: Facts) -> str:
    """The complete HTML document."""
    made = (make(facts) for make in SECTIONS.values())
    sections = [section for section in made if section is not None]
    closing = together(
        paragraph(
            f"Created with calibayes {__version__}. ",
            link("How to read this page", f"{DOCUMENTATION}/report.html"),
        ),
        paragraph("This file is self-contained: it loads no other files and sends no data."),
    )
    return document(shortened(facts.title, 200), opening(facts), sections, closing)

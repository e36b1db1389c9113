"""All sections in their order, and the complete page."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from calibayes._version import __version__
from calibayes.report.facts.values import Facts
from calibayes.report.page.document import document
from calibayes.report.page.markup import together
from calibayes.report.page.parts import Section, link, paragraph
from calibayes.report.page.wording import shortened
from calibayes.report.sections.checks import checks
from calibayes.report.sections.curves import curves_section
from calibayes.report.sections.labels import labels_section
from calibayes.report.sections.opening import opening
from calibayes.report.sections.python import python_section
from calibayes.report.sections.quality import quality_section
from calibayes.report.sections.ranking import ranking_section
from calibayes.report.sections.reasons import reasons_section
from calibayes.report.sections.skipped import skipped_section
from calibayes.report.sections.surprise import surprise_section
from calibayes.report.sections.table import table_section
from calibayes.versions import DOCUMENTATION

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

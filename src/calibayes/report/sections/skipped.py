"""Parts of the report that were skipped, with the reasons, and computing times."""

from __future__ import annotations

from calibayes.report.facts.values import Facts
from calibayes.report.page.markup import together
from calibayes.report.page.parts import Section, definition_list, folded, paragraph, table
from calibayes.report.page.wording import fixed, shortened


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

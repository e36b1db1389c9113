"""Write the reports of all papers to one Markdown page, each paper with a summary of agreement on top."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from calibayes._version import __version__
from calibayes.experiments.catalog import PAPERS
from calibayes.experiments.experiment import Paper
from calibayes.experiments.picture_numbers import to_json
from calibayes.experiments.report import Figure, NumberPair, Report, TableRow
from calibayes.experiments.report_files import image, to_markdown, write_figure, write_text
from calibayes.versions import DOCUMENTATION

RESULTS = "results"
"""Folder, beside the page, of the numbers of figures."""
MAX_LISTED = 30
"""Up to this many differing numbers are listed one by one."""

HEAD = """# Reproduction of the papers

Each section names the command that wrote it; data sets that are not available are omitted. Table entries are
*ours / published*: the number computed by calibayes and the one printed in the paper. A star marks differences larger
than the published spread, or than one unit of the last printed digit if no spread is published.
"""


def compared_error_rates(report: Report) -> Iterator[tuple[TableRow, str, NumberPair]]:
    """Row, column and numbers of each error rate that is both computed and published."""
    for row in report.rows:
        for name, pair in row.pairs.items():
            if pair.compared and pair.unit:
                yield row, name, pair


def agreement_counts(report: Report) -> tuple[int, int, int]:
    """Number of error rates compared, equal at the printed digits, and within 0.005."""
    pairs = [pair for _, _, pair in compared_error_rates(report)]
    return len(pairs), sum(pair.exact for pair in pairs), sum(pair.close for pair in pairs)


def agreement_summary(reports: Sequence[Report]) -> str:
    """Markdown: how many error rates agree in each table, and the reasons for the others."""
    counts = {report.name: agreement_counts(report) for report in reports}
    counts = {name: numbers for name, numbers in counts.items() if numbers[0]}
    if not counts:
        return ""
    counts["all"] = tuple(np.sum(list(counts.values()), axis=0).tolist())
    lines = ["| table | error rates | equal as printed | within 0.005 | others |"]
    lines.append("| --- | --- | --- | --- | --- |")
    lines += [
        f"| {name} | {n} | {exact} | {close} | {n - close} |" for name, (n, exact, close) in counts.items()
    ]
    lines += ["", "Error rates that differ by more than 0.005, and why:", ""]
    return "\n".join([*lines, *_differences(reports), ""])


def _differences(reports: Sequence[Report]) -> list[str]:
    lines: list[str] = []
    for report in reports:
        by_reason: dict[str, list[str]] = {}
        for row, name, pair in compared_error_rates(report):
            if not pair.close:
                reason = row.reason or report.reason or "not explained"
                by_reason.setdefault(reason, []).append(f"{row.label} ({name})")
        lines += [f"- {report.name}: {_listed(entries)}: {reason}" for reason, entries in by_reason.items()]
    return lines or ["- none"]


def _listed(entries: Sequence[str]) -> str:
    """The entries, or only their number if there are many; the table itself marks the differences."""
    return ", ".join(entries) if len(entries) <= MAX_LISTED else f"{len(entries)} error rates"


def write_page(reports: Sequence[Report], path: Path, command: str) -> Path:
    """Write the page and its figures: as SVG files in the same folder, or as numbers that the site draws them from.

    Papers without a report keep the section that the page already has.
    """
    sections = _read_sections(path.read_text(encoding="utf-8")) if path.exists() else {}
    for paper in PAPERS:
        paper_reports = [report for report in reports if report.paper == paper.name]
        if paper_reports:
            sections[paper.name] = _section(paper, paper_reports, command, path)
    parts = [HEAD, *(sections[paper.name] for paper in PAPERS if paper.name in sections)]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "\n\n".join(part.strip("\n") for part in parts) + "\n")
    for report in reports:
        for figure in report.figures:
            _write_figure(figure, path.parent)
    return path


def _write_figure(figure: Figure, folder: Path) -> None:
    """Write the picture, or the numbers of one that the site draws."""
    if figure.numbers is not None:
        (folder / RESULTS).mkdir(exist_ok=True)
        write_text(folder / RESULTS / f"{figure.name}.json", to_json(figure.numbers))
    elif not figure.is_on_site:
        write_figure(figure, folder, ["svg"])


def _show(figure: Figure, page: Path) -> str:
    """Markdown of a figure: an image, or a link to the site."""
    address = f"{DOCUMENTATION}/{page.stem}.html#picture-{figure.name}"
    return f"[Picture: {figure.name}]({address})" if figure.is_on_site else image(figure)


def _section(paper: Paper, reports: Sequence[Report], command: str, page: Path) -> str:
    origin = f"Written by calibayes {__version__} with `{command}`."
    parts = [f"## {paper.name}", f"{paper.title}.", origin, paper.preface, agreement_summary(reports)]
    parts += [to_markdown(report, lambda figure: _show(figure, page)) for report in reports]
    return "\n\n".join(part.strip("\n") for part in parts if part)


def _read_sections(text: str) -> dict[str, str]:
    """Name of the paper -> its section on an existing page."""
    names = {paper.name for paper in PAPERS}
    _, *parts = text.split("\n## ")
    titled = {part.partition("\n")[0].strip(): f"## {part}" for part in parts}
    return {name: part for name, part in titled.items() if name in names}

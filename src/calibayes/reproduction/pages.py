"""Write the reports of all papers to one Markdown page, each paper with a summary of agreement on top."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from calibayes._version import __version__
from calibayes.core.replaced_file import replaced_file
from calibayes.reproduction.catalog import PAPERS
from calibayes.reproduction.experiment import Paper
from calibayes.reproduction.result_tables import ExperimentReport, Figure, NumberPair, TableRow, to_json
from calibayes.versions import DOCUMENTATION

# -- Write a report as Markdown, CSV and figure files --------------------------------------------------------

MARK = " *"
"""Follows numbers that differ from the published ones by more than the spread."""


def format_number(number: float | None, digits: int) -> str:
    """The number with this many decimals, a dash for None."""
    return "-" if number is None else f"{number:.{digits}f}"


def format_pair(pair: NumberPair) -> str:
    """``ours / published``, with a star where they differ and ours in bold where it is among the best."""
    ours = format_number(pair.ours, pair.digits + pair.extra_digits)
    ours = f"**{ours}**" if pair.bold else ours
    if pair.published is None:
        return ours
    return f"{ours} / {format_number(pair.published, pair.digits)}{MARK * pair.differs}"


def image(figure: Figure) -> str:
    """Markdown of a figure with a file beside the page."""
    return f"![{figure.name}]({figure.name}.svg)"


def to_markdown(report: ExperimentReport, show: Callable[[Figure], str] = image) -> str:
    """A Markdown section with notes, table and figures; ``show`` is the Markdown of a figure."""
    lines = [f"### {report.name}: {report.title}", ""]
    lines += [line for note in report.notes for line in (note, "")]
    if report.rows:
        lines += [*_markdown_table(report), ""]
    for figure in report.figures:
        lines += [show(figure), ""]
    return "\n".join(lines)


def _markdown_table(report: ExperimentReport) -> list[str]:
    header = ["", *report.columns, *(["reason"] if any(row.reason for row in report.rows) else [])]
    lines = [" | ".join(header), " | ".join(["---"] * len(header))]
    for row in report.rows:
        cells = [format_pair(row.pairs[name]) if name in row.pairs else "" for name in report.columns]
        reason = [row.reason.replace("|", "/")] if "reason" in header else []
        lines.append(" | ".join([row.label, *cells, *reason]))
    return [f"| {line} |" for line in lines]


def to_csv(report: ExperimentReport) -> str:
    """CSV text: for each column of the report one with our number at full precision and one with the published."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = report.columns
    writer.writerow(
        ["row", *(f"{name} {side}" for name in names for side in ("ours", "published")), "reason"]
    )
    for row in report.rows:
        pairs = [row.pairs.get(name, NumberPair(None)) for name in names]
        numbers = [number for pair in pairs for number in (pair.ours, pair.published)]
        writer.writerow([row.label, *("" if n is None else repr(float(n)) for n in numbers), row.reason])
    return text.getvalue()


def write_report(report: ExperimentReport, folder: Path) -> list[Path]:
    """Write all files of a report; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{report.paper}-{report.name}"
    files = [write_text(folder / f"{stem}.md", to_markdown(report))]
    if report.rows:
        files.append(write_text(folder / f"{stem}.csv", to_csv(report)))
    return files + [path for figure in report.figures for path in write_figure(figure, folder)]


def write_text(path: Path, text: str) -> Path:
    """Write a file; an interruption leaves no incomplete one."""
    with replaced_file(path) as file:
        file.write(text.encode())
    return path


def write_figure(figure: Figure, folder: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write a figure in these formats; equal numbers give equal files."""
    drawing = figure.draw()  # raises a helpful ImportError where matplotlib is missing
    paths = [folder / f"{figure.name}.{ending}" for ending in formats]
    for path in paths:
        save_drawing(drawing, path)
    return paths


def save_drawing(drawing: Any, path: Path) -> None:
    """Write a drawing, as in `write_text`."""
    from matplotlib import rc_context

    ending = path.suffix[1:]
    # Without the salt, and with a date, files would differ every time.
    with rc_context({"svg.hashsalt": path.stem}), replaced_file(path) as file:
        drawing.savefig(file, format=ending, dpi=150, metadata={"Date": None} if ending == "svg" else None)


# -- Write the reports of all papers to one Markdown page, each paper with a summary of agreement on top -----

RESULTS = "results"
"""Folder, beside the page, of the numbers of figures."""
MAX_LISTED = 30
"""Up to this many differing numbers are listed one by one."""

HEAD = """# Reproduction of the papers

Each section names the command that wrote it; data sets that are not available are omitted. Table entries are
*ours / published*: the number computed by calibayes and the one printed in the paper. A star marks differences larger
than the published spread, or than one unit of the last printed digit if no spread is published.

Counted apart are numbers that do not follow the rules of this project, but evidently those of the paper (test rows in the
training, other versions of a data file, other updates), and numbers of data sets that earlier counts did not have. In the lines
"with versions counted apart" a published number counts as reproduced if our usual number or such a version reproduces it.
"""


def compared_error_rates(report: ExperimentReport) -> Iterator[tuple[TableRow, str, NumberPair]]:
    """Row, column and numbers of each error rate that is both computed and published."""
    for row in report.rows:
        for name, pair in row.pairs.items():
            if pair.compared and pair.unit:
                yield row, name, pair


Counts = tuple[int, int, int]
"""Number of error rates compared, equal at the printed digits, and within 0.005."""
ALL = "all"
APART, WITH_APART = ", counted apart", ", with versions counted apart"
"""Follow the name of what has counts of its own; see `NumberPair`."""


def agreement_counts(report: ExperimentReport, apart: bool = False) -> Counts:
    """Counts of a report, of the numbers that are counted apart or of all others."""
    pairs = [pair for _, _, pair in compared_error_rates(report) if pair.apart == apart]
    return len(pairs), sum(pair.exact for pair in pairs), sum(pair.close for pair in pairs)


def counts_with_versions(report: ExperimentReport) -> Counts:
    """Counts of the published numbers, each with the best of ours: numbers counted apart may stand for the usual one."""
    ours: dict[tuple[str, str], list[NumberPair]] = {}
    for row, name, pair in compared_error_rates(report):
        ours.setdefault(pair.stands_for or (row.label, name), []).append(pair)
    usual = [pairs for pairs in ours.values() if not all(pair.apart for pair in pairs)]
    exact, close = (sum(any(map(agrees, pairs)) for pairs in usual) for agrees in (IS_EXACT, IS_CLOSE))
    return len(usual), exact, close


IS_EXACT, IS_CLOSE = attrgetter("exact"), attrgetter("close")
COUNTS: Mapping[str, Callable[[ExperimentReport], Counts]] = {
    "": agreement_counts,
    WITH_APART: counts_with_versions,
    APART: partial(agreement_counts, apart=True),
}
"""Ending of a name -> the counts under this name."""


def total_counts(counts: Iterable[Counts]) -> Counts:
    """Sums of counts.

    >>> total_counts([(2, 1, 1), (3, 0, 2)])
    (5, 1, 3)
    """
    compared, exact, close = (sum(numbers) for numbers in zip((0, 0, 0), *counts, strict=True))
    return compared, exact, close


def agreement_summary(reports: Sequence[ExperimentReport]) -> str:
    """Markdown: how many error rates agree in each table, and the reasons for the others."""
    counts: dict[str, Counts] = {}
    any_apart = any(pair.apart for report in reports for *_, pair in compared_error_rates(report))
    for ending, count in COUNTS.items() if any_apart else [("", agreement_counts)]:
        by_table = {report.name + ending: count(report) for report in reports}
        by_table = {name: numbers for name, numbers in by_table.items() if numbers[0]}
        counts |= by_table | ({ALL + ending: total_counts(by_table.values())} if by_table else {})
    if not counts:
        return ""
    lines = [*_count_table("table", counts), "", "Error rates that differ by more than 0.005, and why:", ""]
    return "\n".join([*lines, *_differences(reports), ""])


def _count_table(what: str, counts: Mapping[str, Counts]) -> list[str]:
    head = [
        f"| {what} | error rates | equal as printed | within 0.005 | others |",
        "| --- | --- | --- | --- | --- |",
    ]
    return head + [
        f"| {name} | {n} | {exact} | {close} | {n - close} |" for name, (n, exact, close) in counts.items()
    ]


TOTAL = re.compile(rf"^\| {ALL}({'|'.join(COUNTS)}) \| (\d+) \| (\d+) \| (\d+) \|", re.MULTILINE)
"""A row of a section that has counts of its paper."""


def _overview(sections: Mapping[str, str]) -> str:
    """Markdown: the counts of all papers, read from their sections, and their sums."""
    found: dict[str, dict[str, Counts]] = {ending: {} for ending in COUNTS}
    for paper, text in sections.items():
        for ending, compared, exact, close in TOTAL.findall(text):
            found[ending][paper] = int(compared), int(exact), int(close)
    rows: dict[str, Counts] = {}
    for ending, counts in found.items():
        rows |= {paper + ending: numbers for paper, numbers in counts.items()}
        if counts and ending != APART:  # a paper without further versions counts as it is
            rows["all papers" + ending] = total_counts((found[""] | counts).values())
    return "\n".join(_count_table("paper", rows)) if rows else ""


def _differences(reports: Sequence[ExperimentReport]) -> list[str]:
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


def write_page(reports: Sequence[ExperimentReport], path: Path, command: str) -> Path:
    """Write the page and its figures: as SVG files in the same folder, or as numbers that the site draws them from.

    Papers without a report keep the section that the page already has.
    """
    sections = _read_sections(path.read_text(encoding="utf-8")) if path.exists() else {}
    for paper in PAPERS:
        paper_reports = [report for report in reports if report.paper == paper.name]
        if paper_reports:
            sections[paper.name] = _section(paper, paper_reports, command, path)
    ordered = {paper.name: sections[paper.name] for paper in PAPERS if paper.name in sections}
    parts = filter(None, (HEAD, _overview(ordered), *ordered.values()))
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


def _section(paper: Paper, reports: Sequence[ExperimentReport], command: str, page: Path) -> str:
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

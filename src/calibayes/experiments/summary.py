"""All reports on one page, a section for each paper, with what agrees and what does not on top of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from calibayes._version import __version__
from calibayes.experiments.catalog import PAPERS
from calibayes.experiments.comparison import Pair, Report, Row
from calibayes.experiments.experiment import Paper
from calibayes.experiments.writing import drawn, markdown, written

MOST_LISTED = 30
"""Cells that are named one by one."""

HEAD = """# The papers, reproduced

Each section says which command made it, from the data sets that were at hand. A cell reads *ours / published*; a star
marks where they differ by more than the published spread, or by more than one in the last digit where none is
published.
"""


def compared(report: Report) -> Iterator[tuple[Row, str, Pair]]:
    """Error rates that are there on both sides."""
    for row in report.rows:
        for name, pair in row.pairs.items():
            if pair.compared and pair.unit:
                yield row, name, pair


def counts(report: Report) -> tuple[int, int, int]:
    """Error rates compared, exactly equal as printed, and within 0.005."""
    pairs = [pair for _, _, pair in compared(report)]
    return len(pairs), sum(pair.exact for pair in pairs), sum(pair.close for pair in pairs)


def summary(reports: Sequence[Report]) -> str:
    """How many error rates agree, table by table, and why the others do not."""
    told = {report.name: counts(report) for report in reports}
    told = {name: numbers for name, numbers in told.items() if numbers[0]}
    if not told:
        return ""
    told["all"] = tuple(np.sum(list(told.values()), axis=0).tolist())
    lines = ["| table | error rates | exactly as printed | within 0.005 | others |"]
    lines.append("| --- | --- | --- | --- | --- |")
    lines += [
        f"| {name} | {n} | {exact} | {close} | {n - close} |" for name, (n, exact, close) in told.items()
    ]
    lines += ["", "What is further off than 0.005:", ""]
    return "\n".join([*lines, *_others(reports), ""])


def _others(reports: Sequence[Report]) -> list[str]:
    lines: list[str] = []
    for report in reports:
        far: dict[str, list[str]] = {}
        for row, name, pair in compared(report):
            if not pair.close:
                why = row.reason or report.reason or "not explained"
                far.setdefault(why, []).append(f"{row.label} ({name})")
        lines += [f"- {report.name}: {_listed(cells)}: {why}" for why, cells in far.items()]
    return lines or ["- nothing"]


def _listed(cells: Sequence[str]) -> str:
    """All of a few cells, else how many there are: the table itself marks those that matter."""
    return ", ".join(cells) if len(cells) <= MOST_LISTED else f"{len(cells)} error rates"


def write_page(reports: Sequence[Report], path: Path, command: str) -> Path:
    """The page, and its pictures (SVG) beside it; papers that were not run keep the sections that the page has."""
    sections = _sections(path.read_text(encoding="utf-8")) if path.exists() else {}
    for paper in PAPERS:
        mine = [report for report in reports if report.paper == paper.name]
        if mine:
            sections[paper.name] = _section(paper, mine, command)
    parts = [HEAD, *(sections[paper.name] for paper in PAPERS if paper.name in sections)]
    path.parent.mkdir(parents=True, exist_ok=True)
    written(path, "\n\n".join(part.strip("\n") for part in parts) + "\n")
    for report in reports:
        for figure in report.figures:
            drawn(figure, path.parent, ["svg"])
    return path


def _section(paper: Paper, reports: Sequence[Report], command: str) -> str:
    made = f"Made by calibayes {__version__} with `{command}`."
    parts = [f"## {paper.name}", f"{paper.title}.", made, paper.preface, summary(reports)]
    parts += [markdown(report) for report in reports]
    return "\n\n".join(part.strip("\n") for part in parts if part)


def _sections(text: str) -> dict[str, str]:
    """Paper -> its section on a page that was written before."""
    names = {paper.name for paper in PAPERS}
    _, *parts = text.split("\n## ")
    titled = {part.partition("\n")[0].strip(): f"## {part}" for part in parts}
    return {name: part for name, part in titled.items() if name in names}

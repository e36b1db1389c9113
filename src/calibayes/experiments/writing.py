"""Reports as CSV, Markdown and pictures."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path

from calibayes.experiments.comparison import Figure, Pair, Report, Row

MARK = " *"
"""Behind a number of ours that differs from the published one by more than its spread."""


def shown(number: float | None, digits: int) -> str:
    """A number at its digits, a dash where there is none."""
    return "-" if number is None else f"{number:.{digits}f}"


def side_by_side(pair: Pair) -> str:
    """Ours, the published one after a stroke, and the mark."""
    ours = shown(pair.ours, pair.digits + pair.further)
    ours = f"**{ours}**" if pair.bold else ours
    return (
        ours
        if pair.published is None
        else f"{ours} / {shown(pair.published, pair.digits)}{MARK * pair.differs}"
    )


def markdown(report: Report) -> str:
    """A section with notes, table and pictures."""
    lines = [f"### {report.name}: {report.title}", ""]
    lines += [line for note in report.notes for line in (note, "")]
    if report.rows:
        lines += [*_markdown_table(report), ""]
    for figure in report.figures:
        lines += [f"![{figure.name}]({figure.name}.svg)", ""]
    return "\n".join(lines)


def _markdown_table(report: Report) -> list[str]:
    header = ["", *report.columns, *(["reason"] if any(row.reason for row in report.rows) else [])]
    lines = [" | ".join(header), " | ".join(["---"] * len(header))]
    lines += [" | ".join(_cells(row, report.columns, "reason" in header)) for row in report.rows]
    return [f"| {line} |" for line in lines]


def _cells(row: Row, columns: Sequence[str], reasons: bool) -> list[str]:
    cells = [side_by_side(row.pairs[name]) if name in row.pairs else "" for name in columns]
    return [row.label, *cells, *([row.reason.replace("|", "/")] if reasons else [])]


def csv_text(report: Report) -> str:
    """All digits of ours, and the published numbers, a column each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = report.columns
    writer.writerow(
        ["row", *(f"{name} {side}" for name in names for side in ("ours", "published")), "reason"]
    )
    for row in report.rows:
        pairs = [row.pairs.get(name, Pair(None)) for name in names]
        numbers = [number for pair in pairs for number in (pair.ours, pair.published)]
        writer.writerow([row.label, *("" if n is None else repr(float(n)) for n in numbers), row.reason])
    return text.getvalue()


def write_report(report: Report, folder: Path) -> list[Path]:
    """All files of a report."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{report.paper}-{report.name}"
    files = [written(folder / f"{stem}.md", markdown(report))]
    if report.rows:
        files.append(written(folder / f"{stem}.csv", csv_text(report)))
    return files + [path for figure in report.figures for path in drawn(figure, folder)]


def written(path: Path, text: str) -> Path:
    """A file with that text, whole or as it was."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)
    return path


def drawn(figure: Figure, folder: Path, kinds: Sequence[str] = ("png", "svg")) -> list[Path]:
    """A picture in some formats."""
    picture = figure.draw()  # says so itself where matplotlib is missing
    from matplotlib import rc_context

    paths = [folder / f"{figure.name}.{kind}" for kind in kinds]
    with rc_context({"svg.hashsalt": figure.name}):  # and without a date: the same numbers give the same file
        for path in paths:
            picture.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths

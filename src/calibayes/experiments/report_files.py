"""Write a report as Markdown, CSV and figure files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from calibayes.core.replaced_file import replaced_file
from calibayes.experiments.report import Figure, NumberPair, Report, TableRow

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


def to_markdown(report: Report, show: Callable[[Figure], str] = image) -> str:
    """A Markdown section with notes, table and figures; ``show`` is the Markdown of a figure."""
    lines = [f"### {report.name}: {report.title}", ""]
    lines += [line for note in report.notes for line in (note, "")]
    if report.rows:
        lines += [*_markdown_table(report), ""]
    for figure in report.figures:
        lines += [show(figure), ""]
    return "\n".join(lines)


def _markdown_table(report: Report) -> list[str]:
    header = ["", *report.columns, *(["reason"] if any(row.reason for row in report.rows) else [])]
    lines = [" | ".join(header), " | ".join(["---"] * len(header))]
    lines += [" | ".join(_cells(row, report.columns, "reason" in header)) for row in report.rows]
    return [f"| {line} |" for line in lines]


def _cells(row: TableRow, columns: Sequence[str], with_reason: bool) -> list[str]:
    cells = [format_pair(row.pairs[name]) if name in row.pairs else "" for name in columns]
    return [row.label, *cells, *([row.reason.replace("|", "/")] if with_reason else [])]


def to_csv(report: Report) -> str:
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


def write_report(report: Report, folder: Path) -> list[Path]:
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

"""``calibayes reproduce``: the papers' tables and figures, ours beside what was published."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from calibayes.datasets import find, list_datasets
from calibayes.experiments import PAPERS, Report, Settings, chosen, reproduce
from calibayes.experiments.store import Store
from calibayes.experiments.summary import write_page
from calibayes.experiments.writing import side_by_side, write_report

console = Console()
errors = Console(stderr=True)

INTERRUPTED = 130
BOLD = re.compile(r"\*\*(.+?)\*\*")
"""As Markdown has it."""


def reproduce_command(
    paper: Annotated[
        str | None, typer.Argument(help=f"One of {', '.join(p.name for p in PAPERS)}; by default all.")
    ] = None,
    table: Annotated[
        str | None, typer.Argument(help="A table or figure of it, as the paper numbers it.")
    ] = None,
    datasets: Annotated[str | None, typer.Option(help="Only these data sets, separated by commas.")] = None,
    trials: Annotated[int | None, typer.Option(min=1, help="Repetitions instead of the paper's.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a core.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for tables, pictures and finished cells.")] = Path(
        "reproduction"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Small data sets and few repetitions.")] = False,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch data sets that are not at hand.")
    ] = False,
    page: Annotated[Path | None, typer.Option(help="Write everything as one Markdown page too.")] = None,
) -> None:
    """Run the papers' experiments and put ours beside the published numbers.

    Finished cells are kept in the folder: after an interruption the same command goes on where it was.
    """
    try:
        names = _names(datasets)
        settings = Settings(names, trials, quick, download)
        reports = _run(paper, table, settings, Store(out / "cells"), jobs or os.cpu_count() or 1)
    except KeyboardInterrupt:
        errors.print("interrupted; finished cells are kept, the same command goes on from here")
        raise typer.Exit(INTERRUPTED) from None
    except (ValueError, OSError) as error:
        errors.print("error:", style="red", end=" ")
        errors.print(str(error), markup=False, highlight=False)
        raise typer.Exit(2) from None
    for report in reports:
        _print(report)
    try:
        for report in reports:
            write_report(report, out)
        if page is not None:
            write_page(reports, page, _words(paper, table, datasets, trials, quick, page))
    except ImportError as error:
        errors.print(f"no pictures: {error}", markup=False, highlight=False)
    console.print(f"Tables and pictures are in {out}.", highlight=False)


def _names(given: str | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    unknown = [name for name in names if name not in list_datasets() and find(name, ending=".npz") is None]
    if unknown:
        raise ValueError(f"unknown data sets: {', '.join(unknown)}; known are {', '.join(list_datasets())}")
    return names


def _run(paper: str | None, table: str | None, settings: Settings, store: Store, jobs: int) -> list[Report]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True) as progress:
        task = progress.add_task("cells", total=None)
        return reproduce(
            chosen(paper, table),
            settings,
            store,
            jobs=jobs,
            planned=lambda count: progress.update(task, total=count),
            done=lambda count: progress.update(task, advance=count),
        )


def _print(report: Report) -> None:
    console.print(f"\n{report.paper} {report.name}: {report.title}", style="bold", highlight=False)
    for note in report.notes:
        console.print(note, markup=False, highlight=False)
    if report.rows:
        console.print(_table(report))
    for row in report.rows:
        if row.reason:
            console.print(f"{row.label}: {row.reason}", style="dim", markup=False, highlight=False)


def _table(report: Report) -> RichTable:
    table = RichTable(
        box=SIMPLE,
        padding=(0, 1, 0, 0),
        caption="ours / published; * differs by more than the published spread",
        caption_justify="left",
    )
    table.add_column("", no_wrap=True)
    for name in report.columns:
        table.add_column(name, justify="right")
    for row in report.rows:
        cells = [side_by_side(row.pairs[name]) if name in row.pairs else "" for name in report.columns]
        table.add_row(row.label, *(BOLD.sub(r"[bold]\1[/bold]", cell) for cell in cells))
    return table


def _words(
    paper: str | None, table: str | None, datasets: str | None, trials: int | None, quick: bool, page: Path
) -> str:
    """The command that made a page."""
    words = ["calibayes reproduce", paper or "", table or ""]
    words += [f"--datasets {datasets}" if datasets else "", f"--trials {trials}" if trials else ""]
    words += ["--quick" if quick else "", f"--page {page.name}"]
    return " ".join(word for word in words if word)

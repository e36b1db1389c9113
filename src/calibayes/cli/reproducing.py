"""``calibayes reproduce``: run the experiments of the papers and compare with the published numbers."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable
from typer import Argument, Option

from calibayes.cli import application, options
from calibayes.cli.application import console, errors, examples, print_json, print_table, print_text
from calibayes.datasets import find_file, list_datasets
from calibayes.reproduction.catalog import PAPERS, reproduce, select_experiments
from calibayes.reproduction.experiment import ResultCache, Settings
from calibayes.reproduction.pages import agreement_counts, format_pair, total_counts, write_page, write_report
from calibayes.reproduction.papers.rc_probabilistic_2024 import AUTHOR_FILES
from calibayes.reproduction.procedures import IMAGE_ENTRIES
from calibayes.reproduction.result_tables import ExperimentReport, TableRow

REPRODUCE_EXAMPLES = examples(
    "calibayes reproduce rc-probabilistic-2024 VI --datasets iris --trials 1 -j 1 --json",
)
BOLD = re.compile(r"\*\*(.+?)\*\*")
"""Bold text in Markdown."""


def reproduce_command(
    paper: Annotated[
        str | None, Argument(help=f"One of {', '.join(p.name for p in PAPERS)}. Default: all.")
    ] = None,
    table: Annotated[
        str | None,
        Argument(help="Table or figure of the paper, by its number there, such as VI or figure-1."),
    ] = None,
    datasets: Annotated[
        list[str] | None,
        Option(help="Run only this data set; can be repeated.", autocompletion=options.complete_datasets),
    ] = None,
    trials: Annotated[
        int | None, Option(min=1, help="Number of repetitions. Default: as in the paper.")
    ] = None,
    jobs: Annotated[
        int | None, Option("--jobs", "-j", min=1, help="Number of processes. Default: one per core.")
    ] = None,
    out: Annotated[Path, Option(help="Folder for tables, figures and cached results.")] = Path(
        "reproduction"
    ),
    quick: Annotated[bool, Option("--quick", help="Only small data sets and few repetitions.")] = False,
    download: Annotated[bool, Option("--download", help="Download missing data sets from OpenML.")] = False,
    page: Annotated[Path | None, Option(help="Also write all results to this Markdown page.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Run the experiments of the papers and compare the results with the published numbers.

    Results are cached in the output folder: after an interruption, the same command resumes.
    """
    names = _dataset_names(datasets)
    settings = Settings(names, trials, quick, download)
    try:
        reports = _run(paper, table, settings, ResultCache(out / "cache"), jobs or os.cpu_count() or 1)
    except KeyboardInterrupt:
        print_text("interrupted; finished results are cached, run the same command again to resume", errors)
        raise typer.Exit(application.INTERRUPTED) from None
    if as_json:
        print_json([_as_json(report) for report in reports])
    else:
        for report in reports:
            _print(report)
        _print_counts(reports)
    words = _command_line(paper, table, datasets, trials, quick, page)
    _write(reports, out, page, words)
    print_text(f"Tables and figures are in {out}.", errors if as_json else console)


def _write(reports: list[ExperimentReport], out: Path, page: Path | None, words: str) -> None:
    try:
        for report in reports:
            write_report(report, out)
        if page is not None:
            write_page(reports, page, words)
    except ImportError as error:
        print_text(f"figures were not written: {error}", errors)


def _as_json(report: ExperimentReport) -> dict[str, Any]:
    rows = [{"label": row.label, "reason": row.reason, "cells": _cells(report, row)} for row in report.rows]
    names = ("paper", "name", "title", "notes", "columns")
    return {**{name: getattr(report, name) for name in names}, "rows": rows}


def _cells(report: ExperimentReport, row: TableRow) -> dict[str, str]:
    """Column -> our number and the published one."""
    return {name: format_pair(row.pairs[name]) for name in report.columns if name in row.pairs}


def _dataset_names(given: list[str] | None) -> tuple[str, ...] | None:
    if not given:
        return None
    names = tuple(options.several(given))
    of_authors = (*AUTHOR_FILES, *(entry.name for entry in IMAGE_ENTRIES))
    available = sorted({*list_datasets(), *of_authors})
    unknown = [name for name in names if name not in available and find_file(name, ending=".npz") is None]
    if unknown:
        raise ValueError(f"unknown data sets: {', '.join(unknown)}; choose from {', '.join(available)}")
    return names


def _run(
    paper: str | None, table: str | None, settings: Settings, cache: ResultCache, jobs: int
) -> list[ExperimentReport]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("tasks", total=None)
        report = {
            "on_total": lambda count: progress.update(task, total=count),
            "on_finished": lambda count: progress.update(task, advance=count),
        }
        return reproduce(select_experiments(paper, table), settings, cache, jobs=jobs, **report)


def _print(report: ExperimentReport) -> None:
    console.print(f"\n{report.paper} {report.name}: {report.title}", style="bold", highlight=False)
    for text in report.notes:
        print_text(text)
    if report.rows:
        print_table(_table(report))
    for row in report.rows:
        if row.reason:
            print_text(f"{row.label}: {row.reason}", style="dim")


def _print_counts(reports: list[ExperimentReport]) -> None:
    """How many error rates of all reports agree; those that are counted apart in a sentence of their own."""
    for apart, where in ((False, ""), (True, ", counted apart")):
        compared, exact, close = total_counts(agreement_counts(report, apart) for report in reports)
        if compared:
            words = (
                f"{compared} error rates are compared{where}: {exact} equal as printed, {close} within 0.005."
            )
            print_text(f"\n{words}")


def _table(report: ExperimentReport) -> RichTable:
    table = RichTable(
        box=SIMPLE,
        padding=(0, 1, 0, 0),
        caption="calibayes / published; * differs by more than the published spread",
        caption_justify="left",
    )
    table.add_column("", no_wrap=True)
    for name in report.columns:
        table.add_column(name, justify="right")
    for row in report.rows:
        cells = _cells(report, row)
        shown = (BOLD.sub(r"[bold]\1[/bold]", cells.get(name, "")) for name in report.columns)
        table.add_row(row.label, *shown)
    return table


def _command_line(
    paper: str | None,
    table: str | None,
    datasets: list[str] | None,
    trials: int | None,
    quick: bool,
    page: Path | None,
) -> str:
    """The command that writes the page."""
    words = ["calibayes reproduce", paper or "", table or ""]
    words += [f"--datasets {','.join(datasets)}" if datasets else "", f"--trials {trials}" if trials else ""]
    words += ["--quick" if quick else "", f"--page {page.name}" if page else ""]
    return " ".join(word for word in words if word)

"""``calibayes report``: one HTML page about a table and the models that fit it, or about a saved model."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from calibayes.cli import options
from calibayes.cli.application import (
    INTERRUPTED,
    Work,
    examples,
    note,
    print_json,
    print_table,
    print_text,
    working,
)
from calibayes.cli.options import as_in_training, load_model
from calibayes.cli.outputs import output_file
from calibayes.cli.rows import labeled_table
from calibayes.compare import BASELINES, MODELS, RULES
from calibayes.datasets import Dataset, find_file, list_datasets
from calibayes.reproduction.catalog import PAPERS, select_experiments
from calibayes.reproduction.experiment import ResultCache, Settings
from calibayes.reproduction.pages import format_pair, write_page, write_report
from calibayes.reproduction.result_tables import Report
from calibayes.reproduction.run import reproduce
from calibayes.streams.text_input import require_columns
from calibayes.tables.text import counted

REPORT_EXAMPLES = examples(
    "calibayes report penguins.csv --target species -o report.html --model LDA --folds 2",
    "calibayes report penguins.csv --target species -o nb.html --model-file nb.safetensors --json",
)
console = Console()


def report_command(
    table: options.TableArgument,
    target: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Page to write, such as report.html.")
    ] = None,
    model_file: Annotated[
        Path | None,
        typer.Option(
            help="Describe this saved model on the table, whose rows it was not trained on; compare no others."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Model to compare; can be repeated. Default: all that are not slow on the table.",
            autocompletion=options.complete_models,
        ),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            help="Training rule to compare; can be repeated. Default: ml and rc.",
            autocompletion=options.complete_rules,
        ),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Number of cross-validation folds.")] = 5,
    max_rows: Annotated[
        int | None, typer.Option(min=1, help="Most rows that models are compared on. Default: 5,000.")
    ] = None,
    silence: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="Numbered check that is not run, such as CB004; can be repeated."),
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option(
            help="Costs of mistakes as JSON, [[0, 1], [5, 0]]: rows are true classes, in sorted order."
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    missing_value: options.MissingValue = None,
    as_json: options.AsJson = False,
) -> None:
    """Write one HTML page about a table: its columns, models ranked by cross-validation, and the best model in detail.

    The page needs no other file and no network. With --model-file it is about that model.
    """
    if target is None or output is None:
        lacking = "--target NAME (the column to predict)" if target is None else "-o FILE (the page to write)"
        raise ValueError(
            f"{lacking} is missing; for example: calibayes report {table} --target y -o report.html"
        )
    if model_file is not None and (model or rule):
        raise ValueError("--model-file describes one model: leave --model and --rule out")
    given = options.csv_options(separator, decimal, encoding, missing_value)
    common = {"ignore": tuple(options.several(silence)), "costs": _costs(costs), "title": title}
    with working(f"reading {table}", total=1.0) as work, output_file(output) as file:
        fitted = None if model_file is None else load_model(model_file)
        data = labeled_table(table, target, given if fitted is None else as_in_training(fitted, given))
        _print_notes(data)
        common["progress"] = _progress(work)
        if fitted is not None:
            report = _on_model(fitted, data, common)
        else:
            names = options.chosen("--model", model, [*MODELS, *BASELINES]) if model else None
            rules = options.chosen("--rule", rule, RULES) if rule else None
            compared = {"models": names, "rules": rules, "folds": folds, "seed": seed, "max_rows": max_rows}
            report = _on_table(data, jobs or 1, {**common, **compared})
        file.write(report.html.encode())
    if as_json:
        print_json(report.to_dict())
    else:
        print_text(console, f"report of {counted(len(data.data), 'row')} written to {output}")


def _on_table(data: Dataset, jobs: int, given: dict[str, Any]) -> Any:
    """Imports reports on use, because other commands do not need them."""
    from calibayes.report import report_on_table

    return report_on_table(data.data, data.target, n_jobs=jobs, **given)


def _on_model(model: Any, data: Dataset, given: dict[str, Any]) -> Any:
    from calibayes.report import report_on_model

    names = list(model.training_table_.columns)
    require_columns(list(data.data.columns), names, "the table")
    return report_on_model(model, data.data[names], data.target, **given)


def _costs(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"--costs {text} is no JSON: {error}; for example: '[[0, 1], [5, 0]]'") from None


def _progress(work: Work) -> Any:
    """What a report calls with the name of a stage and the share that is done."""
    return lambda stage, share: work.update(str(stage), float(share))


def _print_notes(data: Dataset) -> None:
    for text in data.notes:
        note(text)
    if data.unlabeled_rows:
        note(f"{counted(data.unlabeled_rows, 'row')} without a label left out")


# -- ``calibayes reproduce``: run the experiments of the papers and compare with the published numbers -------

errors = Console(stderr=True)

REPRODUCE_EXAMPLES = examples(
    "calibayes reproduce rc-probabilistic-2024 VI --datasets iris --trials 1 -j 1 --json",
)
BOLD = re.compile(r"\*\*(.+?)\*\*")
"""Bold text in Markdown."""


def reproduce_command(
    paper: Annotated[
        str | None, typer.Argument(help=f"One of {', '.join(p.name for p in PAPERS)}. Default: all.")
    ] = None,
    table: Annotated[
        str | None,
        typer.Argument(help="Table or figure of the paper, by its number there, such as VI or figure-1."),
    ] = None,
    datasets: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only this data set; can be repeated.", autocompletion=options.complete_datasets
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Number of repetitions. Default: as in the paper.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Number of processes. Default: one per core.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for tables, figures and cached results.")] = Path(
        "reproduction"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Only small data sets and few repetitions.")] = False,
    download: Annotated[
        bool, typer.Option("--download", help="Download missing data sets from OpenML.")
    ] = False,
    page: Annotated[Path | None, typer.Option(help="Also write all results to this Markdown page.")] = None,
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
        print_text(errors, "interrupted; finished results are cached, run the same command again to resume")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json([_as_json(report) for report in reports])
    else:
        for report in reports:
            _print(report)
    words = _command_line(paper, table, datasets, trials, quick, page)
    _write(reports, out, page, words)
    print_text(errors if as_json else console, f"Tables and figures are in {out}.")


def _write(reports: list[Report], out: Path, page: Path | None, words: str) -> None:
    try:
        for report in reports:
            write_report(report, out)
        if page is not None:
            write_page(reports, page, words)
    except ImportError as error:
        print_text(errors, f"figures were not written: {error}")


def _as_json(report: Report) -> dict[str, Any]:
    rows = [
        {
            "label": row.label,
            "reason": row.reason,
            "cells": {name: format_pair(row.pairs[name]) for name in report.columns if name in row.pairs},
        }
        for row in report.rows
    ]
    return {
        "paper": report.paper,
        "name": report.name,
        "title": report.title,
        "notes": list(report.notes),
        "columns": list(report.columns),
        "rows": rows,
    }


def _dataset_names(given: list[str] | None) -> tuple[str, ...] | None:
    if not given:
        return None
    names = tuple(options.several(given))
    available = list_datasets()
    unknown = [name for name in names if name not in available and find_file(name, ending=".npz") is None]
    if unknown:
        raise ValueError(f"unknown data sets: {', '.join(unknown)}; choose from {', '.join(available)}")
    return names


def _run(
    paper: str | None, table: str | None, settings: Settings, cache: ResultCache, jobs: int
) -> list[Report]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("tasks", total=None)
        return reproduce(
            select_experiments(paper, table),
            settings,
            cache,
            jobs=jobs,
            on_total=lambda count: progress.update(task, total=count),
            on_finished=lambda count: progress.update(task, advance=count),
        )


def _print(report: Report) -> None:
    console.print(f"\n{report.paper} {report.name}: {report.title}", style="bold", highlight=False)
    for text in report.notes:
        print_text(console, text)
    if report.rows:
        print_table(console, _table(report))
    for row in report.rows:
        if row.reason:
            print_text(console, f"{row.label}: {row.reason}", style="dim")


def _table(report: Report) -> RichTable:
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
        cells = [format_pair(row.pairs[name]) if name in row.pairs else "" for name in report.columns]
        table.add_row(row.label, *(BOLD.sub(r"[bold]\1[/bold]", cell) for cell in cells))
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

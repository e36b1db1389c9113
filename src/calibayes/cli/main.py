"""What a person types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from calibayes._version import __version__
from calibayes.cli.reproduce import reproduce_command
from calibayes.compare import MODELS, RULES, FoldResult, Line, compare, folds, pairs, ranked, reading
from calibayes.datasets import Dataset, load_file, load_penguins
from calibayes.versions import show_versions

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Generative classifiers trained to decide well."
)
console = Console()
errors = Console(stderr=True)


def _version(asked: bool) -> None:
    if asked:
        console.print(f"calibayes {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Generative classifiers trained to decide well."""


app.command("reproduce")(reproduce_command)


@app.command("info")
def info_command() -> None:
    """Show what is installed and in use: versions, kernels, threads."""
    show_versions()


@app.command("compare")
def compare_command(
    file: Annotated[
        Path | None, typer.Argument(help="CSV or Parquet file; by default the Palmer penguins.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
    count: Annotated[int, typer.Option("--folds", min=2, help="Cross-validation folds.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the folds.")] = 0,
    model: Annotated[list[str] | None, typer.Option(help=f"Only these of {', '.join(MODELS)}.")] = None,
    rule: Annotated[list[str] | None, typer.Option(help=f"Only these of {', '.join(RULES)}.")] = None,
    jobs: Annotated[int, typer.Option(help="Threads of a fit.")] = 1,
) -> None:
    """Train each model with each rule on the same folds and rank them by held-out error."""
    try:
        data = _data(file, target)
        chosen = pairs(data.columns, _known(model, MODELS), _known(rule, RULES))
        if not chosen:
            raise ValueError("none of these models goes with any of these rules on this table")
        _announce(data)
        results = _run(data, chosen, count, seed, jobs)
    except (ValueError, TypeError, OSError) as error:
        errors.print("error:", style="red", end=" ")
        errors.print(str(error), markup=False, highlight=False)
        raise typer.Exit(2) from None
    lines = ranked(results)
    console.print(_table(lines, count))
    console.print(reading(lines), markup=False, highlight=False)
    _print_notes(results)


def _data(file: Path | None, target: str | None) -> Dataset:
    if file is None:
        return load_penguins(target or "species")
    if target is None:
        raise ValueError("say which column to predict: --target NAME")
    return load_file(file, target)


def _known(given: list[str] | None, names: Iterable[str]) -> list[str]:
    everything = list(names)
    unknown = [name for name in given or [] if name not in everything]
    if unknown:
        raise ValueError(f"unknown: {', '.join(unknown)}; choose from {', '.join(everything)}")
    return given or everything


def _announce(data: Dataset) -> None:
    classes = len(set(data.target.tolist()))
    console.print(
        f"{data.name}: {data.columns.n} rows, {len(data.columns.names)} columns, {classes} classes"
        + (f"; {gaps} cells missing" if (gaps := data.columns.missing_count()) else "")
        + (f"; {data.left_out} rows without a label left out" if data.left_out else ""),
        markup=False,
        highlight=False,
    )


def _run(data: Dataset, chosen: list[tuple[str, str]], count: int, seed: int, jobs: int) -> list[FoldResult]:
    splits = folds(data.target, count, seed)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True) as progress:
        task = progress.add_task("training", total=len(chosen) * len(splits))
        results = []
        for fold in compare(data, chosen, splits, jobs):
            results.append(fold)
            progress.update(task, advance=1, description=f"{fold.model} {fold.rule}")
    return results


def _table(lines: list[Line], count: int) -> RichTable:
    table = RichTable(
        title=f"{count}-fold cross-validation, best first",
        title_justify="left",
        box=SIMPLE,
        padding=(0, 1, 0, 0),
    )
    for name in ("model", "rule"):
        table.add_column(name, no_wrap=True)
    for name in (
        "held-out\nerror %",
        "held-out\nlog loss",
        "training\nerror %",
        "soft\nerror",
        "itera-\ntions",
        "sec-\nonds",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for line in lines:
        table.add_row(
            line.model,
            line.rule,
            f"{100 * line.error:.2f} ± {100 * line.error_spread:.2f}",
            f"{line.log_loss:.3f} ± {line.log_loss_spread:.3f}",
            f"{100 * line.training_error:.2f}",
            f"{line.soft_error:.4f}",
            f"{line.updates:.1f}",
            f"{line.seconds:.2f}",
        )
    return table


def _print_notes(results: list[FoldResult]) -> None:
    """Warnings of the fits, each once, with how often it came."""
    seen = Counter((fold.model, fold.rule, note) for fold in results for note in fold.notes)
    for (model, rule, note), times in seen.items():
        console.print(
            f"note: {model} {rule} ({times} of its folds): {note}", style="dim", markup=False, highlight=False
        )

"""The commands ``calibayes``, ``calibayes info`` and ``calibayes compare``; others are in modules of their own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from calibayes._version import __version__
from calibayes.cli.inspect_file import inspect_command
from calibayes.cli.printing import print_error, print_table, print_text
from calibayes.cli.reproduce import reproduce_command
from calibayes.compare import (
    BASELINES,
    MODELS,
    RULES,
    FoldResult,
    MeanResult,
    compare,
    describe_best,
    model_rule_pairs,
    rank_results,
    stratified_folds,
)
from calibayes.compare.baselines import DESCRIPTION, NO_RULE
from calibayes.datasets import Dataset, load_file, load_penguins
from calibayes.tables.text import counted
from calibayes.versions import show_versions

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Generative classifiers with discriminative training."
)
console = Console()
errors = Console(stderr=True)


def _print_version(requested: bool) -> None:
    if requested:
        console.print(f"calibayes {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Generative classifiers with discriminative training."""


app.command("reproduce")(reproduce_command)
app.command("inspect")(inspect_command)


@app.command("info")
def info_command() -> None:
    """Print the versions of calibayes and its dependencies, and the kernels and threads in use."""
    show_versions()


@app.command("compare")
def compare_command(
    file: Annotated[
        Path | None, typer.Argument(help="CSV or Parquet file. Default: the Palmer penguins.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Column to predict. Required with FILE; 'species' for the penguins.")
    ] = None,
    count: Annotated[int, typer.Option("--folds", min=2, help="Number of cross-validation folds.")] = 5,
    seed: Annotated[int, typer.Option(help="Random seed of the folds.")] = 0,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Model to compare; can be repeated. Default: all of "
            f"{', '.join([*MODELS, *BASELINES])} (the last two are scikit-learn's)."
        ),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(help=f"Training rule to compare; can be repeated. Default: all of {', '.join(RULES)}."),
    ] = None,
    baselines: Annotated[
        bool,
        typer.Option(help="Whether scikit-learn's classifiers are compared, too, if no --model is given."),
    ] = True,
    jobs: Annotated[int, typer.Option(help="Number of threads of each fit.")] = 1,
    missing_value: Annotated[
        list[str] | None,
        typer.Option(
            help="Cell of a CSV file that is a missing value; can be repeated. Default: those of pandas (NA, null, ...), "
            "and ?, - and unknown in columns whose other cells are numbers."
        ),
    ] = None,
) -> None:
    """Cross-validate each model with each training rule on the same folds and rank them by held-out error.

    Two classifiers of scikit-learn are compared, too.
    """
    try:
        data = _load(file, target, missing_value)
        models = _checked("model", model, [*MODELS, *BASELINES]) if baselines or model else list(MODELS)
        pairs = model_rule_pairs(data.data, models, _checked("rule", rule, RULES))
        if not pairs:
            raise ValueError(
                "none of the given models can be trained by any of the given rules on this table; "
                "give other values of --model or --rule"
            )
        _print_summary(data)
        results = _run(data, pairs, count, seed, jobs)
    except (ValueError, TypeError, OSError) as error:
        print_error(errors, error)
        raise typer.Exit(2) from None
    ranking = rank_results(results)
    print_table(console, ranking_table(ranking, count))
    print_text(console, describe_best(ranking))
    if any(result.rule == NO_RULE for result in ranking):
        print_text(console, DESCRIPTION)
    _print_notes(results)


def _load(file: Path | None, target: str | None, missing_values: list[str] | None) -> Dataset:
    if file is None:
        return load_penguins(target or "species")
    if target is None:
        raise ValueError("no target given: name the column to predict with --target NAME")
    return load_file(file, target, missing_values=missing_values or None)


def _checked(option: str, given: list[str] | None, names: Iterable[str]) -> list[str]:
    """The given names, or all where none is given. Raises ValueError if a name is unknown."""
    valid = list(names)
    unknown = [name for name in given or [] if name not in valid]
    if unknown:
        raise ValueError(f"unknown --{option} {', '.join(unknown)}; choose from {', '.join(valid)}")
    return given or valid


def _print_summary(data: Dataset) -> None:
    missing, (n, d) = int(data.data.isna().to_numpy().sum()), data.data.shape
    size = (counted(n, "row"), counted(d, "column"), counted(data.target.nunique(), "class", "classes"))
    dropped = counted(data.unlabeled_rows, "row")
    print_text(
        console,
        f"{data.name}: {', '.join(size)}"
        + (f"; {counted(missing, 'missing value')}" if missing else "")
        + (f"; {dropped} without a label dropped" if data.unlabeled_rows else ""),
    )
    for note in data.notes:
        print_text(errors, f"note: {note}")


def _run(data: Dataset, pairs: list[tuple[str, str]], count: int, seed: int, jobs: int) -> list[FoldResult]:
    splits = stratified_folds(np.asarray(data.target), count, seed)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True) as progress:
        task = progress.add_task("training", total=len(pairs) * len(splits))
        results = []
        for result in compare(data, pairs, splits, jobs):
            results.append(result)
            progress.update(task, advance=1, description=f"{result.model} {result.rule}")
    return results


def ranking_table(ranking: list[MeanResult], count: int) -> RichTable:
    """The mean results as a table of at most 80 characters for errors and log losses of the usual size."""
    table = RichTable(
        title=f"{count}-fold cross-validation, lowest held-out error first; mean and standard deviation over folds",
        title_justify="left",
        box=SIMPLE,
        padding=0,
        show_edge=False,
    )
    for name in ("model", "rule"):
        table.add_column(name, overflow="fold")
    for name in (
        "held-out\nerror %",
        "held-out\nlog loss",
        "training\nerror %",
        "soft\nerror",
        "itera-\ntions",
        "sec-\nonds",
    ):
        table.add_column(name, justify="right", overflow="fold")
    for result in ranking:
        table.add_row(
            result.model,
            result.rule,
            f"{100 * result.error:.2f} ± {100 * result.error_spread:.2f}",
            f"{result.log_loss:.3f} ± {result.log_loss_spread:.3f}",
            f"{100 * result.training_error:.2f}",
            f"{result.soft_error:.4f}",
            "" if result.rule == NO_RULE else f"{result.updates:.1f}",
            f"{result.seconds:.2f}",
        )
    return table


def _print_notes(results: list[FoldResult]) -> None:
    """Print each distinct warning of the fits once, with the models, and the rule if it is one, that gave it."""
    fits: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for result in results:
        for note in result.notes:
            fits[note][result.model, result.rule] += 1
    for note, counts in fits.items():
        rules = sorted({rule for _, rule in counts})
        models = ", ".join(dict.fromkeys(model for model, _ in counts))
        source = f"{models} {rules[0]}" if len(rules) == 1 else models
        noun = "fold" if len(counts) == 1 else "fit"
        print_text(console, f"warning: {source} (in {counted(counts.total(), noun)}): {note}", style="dim")

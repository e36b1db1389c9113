"""``calibayes compare``: cross-validate models and training rules on the same folds."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict
from typing import Annotated

import numpy as np
import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table as RichTable

from calibayes.cli import options
from calibayes.cli.application import examples, note
from calibayes.cli.printing import print_json, print_table, print_text
from calibayes.cli.progress import working
from calibayes.cli.rows.training_data import labeled_table
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
from calibayes.datasets import Dataset, load_penguins
from calibayes.tables.input.csv_format import CsvOptions
from calibayes.tables.text import counted

EXAMPLES = examples(
    "calibayes compare --folds 2 --model LDA,QDA --rule ml,rc",
    "calibayes compare penguins.csv --target sex --model BinnedNB --rule ml --json",
)
console = Console()


def compare_command(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]",
            help="CSV, Parquet or Arrow file, also compressed; - is standard input. Default: the Palmer penguins.",
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Column to predict. Required with TABLE; 'species' for the penguins.")
    ] = None,
    count: Annotated[int, typer.Option("--folds", min=2, help="Number of cross-validation folds.")] = 5,
    seed: Annotated[int, typer.Option(help="Random seed of the folds.")] = 0,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Model to compare; can be repeated. Default: all of "
            f"{', '.join([*MODELS, *BASELINES])} (the last two are scikit-learn's).",
            autocompletion=options.complete_models,
        ),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Training rule to compare; can be repeated. Default: all of {', '.join(RULES)}.",
            autocompletion=options.complete_rules,
        ),
    ] = None,
    baselines: Annotated[
        bool,
        typer.Option(help="Whether scikit-learn's classifiers are compared, too, if no --model is given."),
    ] = True,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of threads of each fit.")] = 1,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    missing_value: options.MissingValue = None,
    as_json: options.AsJson = False,
) -> None:
    """Cross-validate each model with each training rule on the same folds and rank them by held-out error.

    Two classifiers of scikit-learn are compared, too.
    """
    given = options.csv_options(separator, decimal, encoding, missing_value)
    data = _load(table, target, given)
    models = options.chosen("--model", model, [*MODELS, *BASELINES]) if baselines or model else list(MODELS)
    rules = options.chosen("--rule", rule, RULES)
    pairs = model_rule_pairs(data.data, models, rules)
    if not pairs:
        raise ValueError(
            "none of the given models can be trained by any of the given rules on this table; "
            "give other values of --model or --rule"
        )
    for text in [*data.notes, *_left_out(pairs, models, rules, bool(model or rule))]:
        note(text)
    if not as_json:
        _print_summary(data)
    results = _run(data, pairs, count, seed, jobs)
    ranking = rank_results(results)
    if as_json:
        print_json(_as_json(data, ranking, results, count, seed))
        return
    print_table(console, ranking_table(ranking, count))
    print_text(console, describe_best(ranking))
    if any(result.rule == NO_RULE for result in ranking):
        print_text(console, DESCRIPTION)
    _print_notes(results)


def _load(table: str | None, target: str | None, given: CsvOptions) -> Dataset:
    if table is None:
        return load_penguins(target or "species")
    if target is None:
        raise ValueError("no target given: name the column to predict with --target NAME")
    return labeled_table(table, target, given)


def _left_out(pairs: list[tuple[str, str]], models: list[str], rules: list[str], chosen: bool) -> list[str]:
    """Notes on models and rules that were asked for and are in no comparison."""
    if not chosen:
        return []
    compared = {word for pair in pairs for word in pair}
    names = [name for name in (*models, *rules) if name not in compared]
    if set(models) <= set(BASELINES):
        names = [name for name in names if name not in rules]
    return [f"not compared, as no combination is valid on this table: {', '.join(names)}"] if names else []


def _as_json(
    data: Dataset, ranking: list[MeanResult], results: list[FoldResult], count: int, seed: int
) -> dict[str, object]:
    n, d = data.data.shape
    return {
        "table": data.name,
        "rows": n,
        "columns": d,
        "classes": int(data.target.nunique()),
        "folds": count,
        "seed": seed,
        "ranking": [asdict(result) for result in ranking],
        "fold_results": [asdict(result) for result in results],
    }


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


def _run(data: Dataset, pairs: list[tuple[str, str]], count: int, seed: int, jobs: int) -> list[FoldResult]:
    splits = stratified_folds(np.asarray(data.target), count, seed)
    results = []
    with working("training", total=len(pairs) * len(splits)) as work:
        for result in compare(data, pairs, splits, jobs):
            results.append(result)
            work.update(f"{result.model} {result.rule}", len(results))
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
        for text in result.notes:
            fits[text][result.model, result.rule] += 1
    for text, counts in fits.items():
        rules = sorted({rule for _, rule in counts})
        models = ", ".join(dict.fromkeys(model for model, _ in counts))
        source = f"{models} {rules[0]}" if len(rules) == 1 else models
        noun = "fold" if len(counts) == 1 else "fit"
        print_text(console, f"warning: {source} (in {counted(counts.total(), noun)}): {text}", style="dim")

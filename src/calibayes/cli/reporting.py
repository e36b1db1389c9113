"""``calibayes report``: one HTML page about a table and the models that fit it, or about a saved model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from calibayes.cli import options
from calibayes.cli.application import examples, note, print_json, print_text, working
from calibayes.cli.options import as_in_training, load_model
from calibayes.cli.outputs import output_file
from calibayes.cli.rows import labeled_table
from calibayes.core.notices import counted
from calibayes.datasets import Dataset
from calibayes.streams.text_input import require_columns

REPORT_EXAMPLES = examples(
    "calibayes report penguins.csv --target species -o report.html --model LDA --folds 2",
    "calibayes report penguins.csv --target species -o nb.html --model-file nb.safetensors --json",
)


def report_command(
    table: options.TableArgument,
    target: Annotated[str | None, Option(help="Column to predict.")] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="Page to write, such as report.html.")
    ] = None,
    model_file: Annotated[
        Path | None,
        Option(
            help="Describe this saved model on the table, whose rows it was not trained on; compare no others."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        Option(
            help="Model to compare; can be repeated. Default: all that are not slow on the table.",
            autocompletion=options.complete_models,
        ),
    ] = None,
    rule: Annotated[
        list[str] | None,
        Option(
            help="Training rule to compare; can be repeated. Default: ml and rc.",
            autocompletion=options.complete_rules,
        ),
    ] = None,
    folds: Annotated[int, Option(min=2, help="Number of cross-validation folds.")] = 5,
    max_rows: Annotated[
        int | None, Option(min=1, help="Most rows that models are compared on. Default: 5,000.")
    ] = None,
    silence: Annotated[
        list[str] | None,
        Option(metavar="CODE", help="Numbered check that is not run, such as CB004; can be repeated."),
    ] = None,
    costs: Annotated[
        str | None,
        Option(help="Costs of mistakes as JSON, [[0, 1], [5, 0]]: rows are true classes, in sorted order."),
    ] = None,
    title: Annotated[str | None, Option(help="Title of the page.")] = None,
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
        raise options.lacking(target, "-o FILE (the page to write)", f"report {table}", "report.html")
    if model_file is not None and (model or rule):
        raise ValueError("--model-file describes one model: leave --model and --rule out")
    given = options.csv_options(separator, decimal, encoding, missing_value)
    common = {"ignore": tuple(options.several(silence)), "costs": _costs(costs), "title": title}
    with working(f"reading {table}", total=1.0) as show, output_file(output) as file:
        fitted = None if model_file is None else load_model(model_file)
        data = labeled_table(table, target, given if fitted is None else as_in_training(fitted, given))
        _print_notes(data)
        common["progress"] = show
        if fitted is not None:
            report = _on_model(fitted, data, common)
        else:
            known = [*options.OWN_MODELS, *options.BASELINES]
            names = options.chosen("--model", model, known) if model else None
            rules = options.chosen("--rule", rule, options.RULES) if rule else None
            compared = {"models": names, "rules": rules, "folds": folds, "seed": seed, "max_rows": max_rows}
            report = _on_table(data, jobs or 1, {**common, **compared})
        file.write(report.html.encode())
    if as_json:
        print_json(report.to_dict())
    else:
        print_text(f"report of {counted(len(data.data), 'row')} written to {output}")


def _on_table(data: Dataset, jobs: int, given: dict[str, Any]) -> Any:
    """Imports reports on use, because the help of the command does not need them."""
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


def _print_notes(data: Dataset) -> None:
    for text in data.notes:
        note(text)
    if data.unlabeled_rows:
        note(f"{counted(data.unlabeled_rows, 'row')} without a label left out")

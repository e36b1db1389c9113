"""``calibayes fit``: train a model on a table and save it to a file."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from calibayes.cli import options
from calibayes.cli.application import examples, note
from calibayes.cli.printing import print_json, print_text
from calibayes.cli.progress import working
from calibayes.cli.rows.training_data import training_data
from calibayes.compare import MODELS, RULES
from calibayes.compare.cross_validation import MANY_CLASSES
from calibayes.compare.models import ENSEMBLES
from calibayes.estimators.joint_kernel.classifier import JointKernelClassifier
from calibayes.estimators.presets.aode import AODE
from calibayes.estimators.presets.k_dependence import KDependenceBayes
from calibayes.estimators.presets.tabular import NaiveBayes
from calibayes.estimators.trees.classifier import CalibratedTrees
from calibayes.files import save
from calibayes.tables.text import counted

FURTHER_MODELS = {
    "NaiveBayes": NaiveBayes,
    "AODE": AODE,
    "KDependenceBayes": KDependenceBayes,
    "CalibratedTrees": CalibratedTrees,
    "JointKernelClassifier": JointKernelClassifier,
}
FITTED_MODELS: Mapping[str, Callable[[], Any]] = {**MODELS, **FURTHER_MODELS}
"""Name -> function that creates the model: those of `calibayes compare` and further ones for tables."""
DEFAULT_MODEL = ENSEMBLES[0]
EXAMPLES = examples(
    "calibayes fit penguins.csv --target species -o penguins.safetensors",
    "calibayes fit penguins.csv --target species -o nb.safetensors --model NaiveBayes --rule ml",
    "calibayes fit penguins.csv --target sex -o sex.safetensors --model NaiveBayes --kind year=categorical "
    "--set discretize=mdl --ignore island",
)
console = Console()


def complete_fitted_models(incomplete: str) -> list[str]:
    """Names of models that begin so, for shells."""
    return [name for name in FITTED_MODELS if name.startswith(incomplete)]


def fit_command(
    table: options.TableArgument,
    target: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Model file to write, such as model.safetensors.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help=f"Model to train, one of {', '.join(FITTED_MODELS)}.", autocompletion=complete_fitted_models
        ),
    ] = DEFAULT_MODEL,
    rule: Annotated[
        str | None,
        typer.Option(
            help=f"Training rule, one of {', '.join(RULES)}. Default: that of the model.",
            autocompletion=options.complete_rules,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Parameter of the model; can be repeated."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=KIND",
            help="How a column is modeled (categorical, identifier, kernel, gaussian, ...); can be repeated.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Column to leave out; can be repeated.")
    ] = None,
    weights: Annotated[str | None, typer.Option(help="Column of the weights of the rows.")] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    missing_value: options.MissingValue = None,
    as_json: options.AsJson = False,
) -> None:
    """Train a model on the labeled rows of a table, and save it.

    All columns but those of the target, the weights and --ignore are used. What each column holds is found from its
    cells. CSV, Parquet and Arrow files of more than 32 MB are read in passes, so that they need not fit in memory.
    """
    if target is None or output is None:
        lacking = (
            "--target NAME (the column to predict)" if target is None else "-o FILE (the model file to write)"
        )
        raise ValueError(
            f"{lacking} is missing; for example: calibayes fit {table} --target y -o model.safetensors"
        )
    if not output.parent.is_dir() or output.is_dir():
        raise ValueError(f"{output} cannot be written: there is no such folder, or it is one")
    estimator = _estimator(model, rule, set_, seed, jobs)
    given = options.csv_options(separator, decimal, encoding, missing_value)
    with working(f"reading {table}") as work:
        data = training_data(table, target, weights, options.several(ignore), given)
        for text in (*data.notes, *quantity_notes(data.labels)):
            note(text)
        _set_kinds(estimator, options.pairs("--kind", kind, "column", data.names))
        work.update(f"training {model}")
        start = time.perf_counter()
        estimator.fit(data.rows, data.labels, sample_weight=data.weights)
        seconds = time.perf_counter() - start
        estimator.training_table_ = replace(estimator.training_table_, missing_values=given.missing_values)
        save(estimator, output)
    _print(estimator, model, output, seconds, as_json)


def _estimator(model: str, rule: str | None, settings: list[str] | None, seed: int, jobs: int | None) -> Any:
    """The untrained model. Raises ValueError if a name is unknown or a parameter has no such value."""
    estimator = FITTED_MODELS[options.require_known("--model", model, FITTED_MODELS)]()
    parameters = estimator.get_params(deep=False)
    chosen: dict[str, Any] = {"random_state": seed, "n_jobs": jobs}
    if rule is not None:
        options.require_known("--rule", rule, RULES)
        if "rule" not in parameters:
            raise ValueError(f"{model} has no training rule to choose; leave --rule out")
        chosen["rule"] = rule
    for name, text in options.pairs("--set", settings, f"parameter of {model}", parameters).items():
        if name in ("rule", "kinds", "n_jobs", "random_state", "engine", "families", "training"):
            raise ValueError(f"--set cannot give {name!r}; see the options of calibayes fit --help")
        chosen[name] = _value(text)
    return estimator.set_params(**chosen)


def _value(text: str) -> Any:
    """A value of a parameter: a number, true, false, null, a list or mapping in JSON, or text."""
    try:
        return json.loads({"None": "null", "True": "true", "False": "false"}.get(text, text))
    except json.JSONDecodeError:
        return text


def _set_kinds(estimator: Any, kinds: dict[str, str]) -> None:
    """Set how columns are modeled. Raises ValueError if the model has no such parameter."""
    if kinds and "kinds" not in estimator.get_params(deep=False):
        raise ValueError(
            f"{type(estimator).__name__} has no kinds of columns to choose; leave --kind out, or give --model NaiveBayes"
        )
    if kinds:
        estimator.set_params(kinds=kinds)


def quantity_notes(labels: Any) -> list[str]:
    """A note if labels in memory look like a quantity."""
    if getattr(labels, "dtype", np.dtype(object)).kind not in "fiu" or labels.nunique() <= MANY_CLASSES:
        return []
    return [
        f"the target has {labels.nunique()} distinct numbers: is it a quantity? Each number is taken as a class"
    ]


def _print(estimator: Any, model: str, output: Path, seconds: float, as_json: bool) -> None:
    trained = estimator.training_table_
    if as_json:
        print_json(
            {
                "model": model,
                "file": str(output),
                "bytes": output.stat().st_size,
                "rows": trained.rows,
                "columns": list(trained.columns),
                "kinds": list(trained.kinds),
                "missing_cells": trained.missing_cells,
                "classes": np.asarray(estimator.classes_),
                "seconds": seconds,
            }
        )
        return
    k = counted(len(estimator.classes_), "class", "classes")
    print_text(console, f"{model} trained on {trained}, {k}, in {seconds:.1f} s; saved to {output}")

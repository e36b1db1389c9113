"""``calibayes fit``: train a model on a table and save it to a file."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.box import SIMPLE
from rich.table import Table as RichTable
from typer import Argument, Option

import calibayes
from calibayes.cli import options
from calibayes.cli.application import examples, note, print_json, print_table, print_text, working
from calibayes.cli.rows import labeled_table, training_data
from calibayes.core.notices import counted
from calibayes.core.replaced_file import require_replaceable
from calibayes.tables.csv_parsing import CsvOptions

FIT_EXAMPLES = examples(
    "calibayes fit penguins.csv --target species -o penguins.safetensors",
    "calibayes fit penguins.csv --target species -o nb.safetensors --model NaiveBayes --rule ml",
    "calibayes fit penguins.csv --target sex -o sex.safetensors --model NaiveBayes --kind year=categorical "
    "--set discretize=mdl --ignore island",
)


def fit_command(
    table: options.TableArgument,
    target: Annotated[str | None, Option(help="Column to predict.")] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="Model file to write, such as model.safetensors.")
    ] = None,
    model: Annotated[
        str,
        Option(
            help=f"Model to train, one of {', '.join([*options.OWN_MODELS, *options.FURTHER_MODELS])}.",
            autocompletion=options.complete_fitted_models,
        ),
    ] = "BayesClassifier",
    rule: Annotated[
        str | None,
        Option(
            help=f"Training rule, one of {', '.join(options.RULES)}. Default: that of the model.",
            autocompletion=options.complete_rules,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        Option("--set", metavar="NAME=VALUE", help="Parameter of the model; can be repeated."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        Option(
            metavar="COLUMN=KIND",
            help="How a column is modeled (categorical, identifier, kernel, gaussian, ...); can be repeated.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, Option(metavar="COLUMN", help="Column to leave out; can be repeated.")
    ] = None,
    weights: Annotated[str | None, Option(help="Column of the weights of the rows.")] = None,
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
        written = "-o FILE (the model file to write)"
        raise options.lacking(target, written, f"fit {table}", "model.safetensors")
    try:
        require_replaceable(output)  # before it is trained
    except OSError as error:
        raise ValueError(f"{output} cannot be written: {error}") from error
    estimator = _estimator(model, rule, set_, seed, jobs)
    given = options.csv_options(separator, decimal, encoding, missing_value)
    with working(f"reading {table}") as show:
        data = training_data(table, target, weights, options.several(ignore), given)
        for text in (*data.notes, *quantity_notes(data.labels, target)):
            note(text)
        _set_kinds(estimator, options.pairs("--kind", kind, "column", data.names))
        show(f"training {model}")
        start = time.perf_counter()
        estimator.fit(data.rows, data.labels, sample_weight=data.weights)
        seconds = time.perf_counter() - start
        estimator.training_table_ = replace(estimator.training_table_, missing_values=given.missing_values)
        calibayes.save(estimator, output)
    _print(estimator, model, output, seconds, as_json)


def _estimator(model: str, rule: str | None, settings: list[str] | None, seed: int, jobs: int | None) -> Any:
    """The untrained model. Raises ValueError if a name is unknown or a parameter has no such value."""
    options.require_known("--model", model, [*options.OWN_MODELS, *options.FURTHER_MODELS])
    is_own = model in options.OWN_MODELS
    estimator = calibayes.compare.MODELS[model]() if is_own else getattr(calibayes, model)()
    parameters = estimator.get_params(deep=False)
    chosen: dict[str, Any] = {"random_state": seed, "n_jobs": jobs}
    if rule is not None:
        options.require_known("--rule", rule, options.RULES)
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


def quantity_notes(labels: Any, target: str) -> list[str]:
    """A note if labels in memory look like a quantity. Raises ValueError if they certainly are one."""
    kind = getattr(labels, "dtype", np.dtype(object)).kind
    if kind == "f":  # those that are all whole were read as integers
        raise ValueError(
            f"column {target!r} holds numbers with decimals, such as {labels.iloc[0]:g}: it is a quantity, and these models "
            "predict classes; choose another --target, or divide the numbers into classes first"
        )
    if kind not in "iu" or (k := labels.nunique()) <= calibayes.compare.MANY_CLASSES:
        return []
    return [f"the target has {k} distinct numbers: is it a quantity? Each number is taken as a class"]


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
    print_text(f"{model} trained on {trained}, {k}, in {seconds:.1f} s; saved to {output}")


# -- ``calibayes compare``: cross-validate models and training rules on the same folds -----------------------

COMPARE_EXAMPLES = examples(
    "calibayes compare --folds 2 --model LDA,QDA --rule ml,rc",
    "calibayes compare penguins.csv --target sex --model BinnedNB --rule ml --json",
)


def compare_command(
    table: Annotated[
        str | None,
        Argument(
            metavar="[TABLE]",
            help="CSV, Parquet or Arrow file, also compressed; - is standard input. Default: the Palmer penguins.",
        ),
    ] = None,
    target: Annotated[
        str | None, Option(help="Column to predict. Required with TABLE; 'species' for the penguins.")
    ] = None,
    count: Annotated[int, Option("--folds", min=2, help="Number of cross-validation folds.")] = 5,
    seed: Annotated[int, Option(help="Random seed of the folds.")] = 0,
    model: Annotated[
        list[str] | None,
        Option(
            help="Model to compare; can be repeated. Default: all of "
            f"{', '.join([*options.OWN_MODELS, *options.BASELINES])} (the last two are scikit-learn's).",
            autocompletion=options.complete_models,
        ),
    ] = None,
    rule: Annotated[
        list[str] | None,
        Option(
            help=f"Training rule to compare; can be repeated. Default: all of {', '.join(options.RULES)}.",
            autocompletion=options.complete_rules,
        ),
    ] = None,
    baselines: Annotated[
        bool,
        Option(help="Whether scikit-learn's classifiers are compared, too, if no --model is given."),
    ] = True,
    jobs: Annotated[int, Option("--jobs", "-j", min=1, help="Number of threads of each fit.")] = 1,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    missing_value: options.MissingValue = None,
    as_json: options.AsJson = False,
) -> None:
    """Cross-validate each model with each training rule on the same folds and rank them by held-out log loss.

    Two classifiers of scikit-learn are compared, too.
    """
    given = options.csv_options(separator, decimal, encoding, missing_value)
    data = _load(table, target, given)
    others = options.BASELINES if baselines or model else ()
    models = options.chosen("--model", model, [*options.OWN_MODELS, *others])
    rules = options.chosen("--rule", rule, options.RULES)
    pairs = calibayes.compare.model_rule_pairs(data.data, models, rules)
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
    ranking = calibayes.compare.rank_results(results)
    if as_json:
        print_json(_as_json(data, ranking, results, count, seed))
        return
    print_table(ranking_table(ranking, count))
    print_text(calibayes.compare.describe_best(results))
    if any(result.rule == calibayes.compare.NO_RULE for result in ranking):
        print_text(calibayes.compare.DESCRIPTION)
    _print_notes(results)


def _load(table: str | None, target: str | None, given: CsvOptions) -> calibayes.datasets.Dataset:
    if table is None:
        return calibayes.datasets.load_penguins(target or "species")
    if target is None:
        raise ValueError("no target given: name the column to predict with --target NAME")
    return labeled_table(table, target, given)


def _left_out(pairs: list[tuple[str, str]], models: list[str], rules: list[str], chosen: bool) -> list[str]:
    """Notes on models and rules that were asked for and are in no comparison."""
    if not chosen:
        return []
    compared = {word for pair in pairs for word in pair}
    names = [name for name in (*models, *rules) if name not in compared]
    if set(models) <= set(options.BASELINES):
        names = [name for name in names if name not in rules]
    return [f"not compared, as no combination is valid on this table: {', '.join(names)}"] if names else []


def _as_json(
    data: calibayes.datasets.Dataset,
    ranking: list[calibayes.compare.MeanResult],
    results: list[calibayes.compare.FoldResult],
    count: int,
    seed: int,
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


def _print_summary(data: calibayes.datasets.Dataset) -> None:
    missing, (n, d) = int(data.data.isna().to_numpy().sum()), data.data.shape
    size = (counted(n, "row"), counted(d, "column"), counted(data.target.nunique(), "class", "classes"))
    dropped = counted(data.unlabeled_rows, "row")
    gaps = f"; {counted(missing, 'missing value')}" if missing else ""
    unlabeled = f"; {dropped} without a label dropped" if data.unlabeled_rows else ""
    print_text(f"{data.name}: {', '.join(size)}{gaps}{unlabeled}")


def _run(
    data: calibayes.datasets.Dataset, pairs: list[tuple[str, str]], count: int, seed: int, jobs: int
) -> list[calibayes.compare.FoldResult]:
    splits = calibayes.compare.stratified_folds(np.asarray(data.target), count, seed)
    results = []
    with working("training", total=len(pairs) * len(splits)) as show:
        for result in calibayes.compare.compare(data, pairs, splits, jobs):
            results.append(result)
            show(f"{result.model} {result.rule}", len(results))
    return results


def ranking_table(ranking: list[calibayes.compare.MeanResult], count: int) -> RichTable:
    """The mean results as a table of at most 80 characters for errors and log losses of the usual size."""
    table = RichTable(
        title=f"{count}-fold cross-validation, lowest held-out log loss first; mean and standard deviation over folds",
        title_justify="left",
        box=SIMPLE,
        padding=0,
        show_edge=False,
    )
    for name in ("model", "rule"):
        table.add_column(name, overflow="fold")
    scores = ("held-out\nerror %", "held-out\nlog loss", "training\nerror %", "soft\nerror")
    for name in (*scores, "itera-\ntions", "sec-\nonds"):
        table.add_column(name, justify="right", overflow="fold")
    for result in ranking:
        table.add_row(
            result.model,
            result.rule,
            f"{100 * result.error:.2f} ± {100 * result.error_spread:.2f}",
            f"{result.log_loss:.3f} ± {result.log_loss_spread:.3f}",
            f"{100 * result.training_error:.2f}",
            f"{result.soft_error:.4f}",
            "" if result.rule == calibayes.compare.NO_RULE else f"{result.updates:.1f}",
            f"{result.seconds:.2f}",
        )
    return table


def _print_notes(results: list[calibayes.compare.FoldResult]) -> None:
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
        print_text(f"warning: {source} (in {counted(counts.total(), noun)}): {text}", style="dim")

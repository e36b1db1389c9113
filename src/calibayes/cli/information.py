"""``calibayes info``: versions, kernels and threads in use."""

from __future__ import annotations

from typing import Annotated, Any

import narwhals.stable.v2 as nw
import numpy as np
from typer import Argument, Option

import calibayes
from calibayes.cli import options
from calibayes.cli.application import examples, print_json, print_text, working
from calibayes.cli.options import load_model
from calibayes.cli.outputs import format_of, label_texts, output_file, require_csv
from calibayes.cli.rows import write_frame
from calibayes.core.notices import text_table
from calibayes.streams.text_input import holds
from calibayes.tables.csv_parsing import NUMBER

INFO_EXAMPLES = examples("calibayes info", "calibayes info --json")


def info_command(as_json: options.AsJson = False) -> None:
    """Print the versions of calibayes and its dependencies, and the kernels and threads in use."""
    if as_json:
        print_json(calibayes.versions.versions())
    else:
        calibayes.show_versions()


# -- ``calibayes inspect``: what a model file says in its header ---------------------------------------------

INSPECT_EXAMPLES = examples(
    "calibayes inspect penguins.safetensors",
    "calibayes inspect penguins.safetensors --tensors",
    "calibayes inspect penguins.safetensors --json",
)


def inspect_command(
    file: options.ModelArgument,
    tensors: Annotated[bool, Option("--tensors", help="List all tensors.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print JSON, with all columns and tensors.")] = False,
) -> None:
    """Print what a model file contains, from its header: no tensor is read, and no model is loaded."""
    try:
        description = calibayes.files.describe_file(file)
    except FileNotFoundError:
        raise ValueError(f"there is no file {file}") from None
    if as_json:
        print_json(description.as_json())
        return
    print_text(str(description))
    if tensors:
        print_text(description.tensor_table())


# -- ``calibayes datasets``: the data sets that are known by name; one of them as a file ---------------------

DATASETS_EXAMPLES = examples(
    "calibayes datasets",
    "calibayes datasets penguins -o penguins.csv",
    "calibayes datasets iris --format jsonl",
)


def datasets_command(
    name: Annotated[
        str | None,
        Argument(help="Data set to write. Default: list all.", autocompletion=options.complete_datasets),
    ] = None,
    output: options.Output = None,
    form: options.Form = None,
    as_json: Annotated[
        bool, Option("--json", help="Print the list as JSON; a data set as JSON lines.")
    ] = False,
    escape: options.EscapeFormulas = False,
) -> None:
    """List the data sets that are known by name, or write one of them as a table with its target as last column.

    Those that are not on this computer are downloaded from OpenML when they are written. Files NAME.csv.gz in the folder
    of the environment variable CALIBAYES_DATA are listed, too.
    """
    if name is None:
        if output is not None or form is not None:
            raise ValueError(
                "no data set given: name the one to write, as in calibayes datasets penguins -o FILE"
            )
        _list(as_json)
        return
    kind = format_of(output, form, as_json)
    require_csv(kind, escape)
    options.require_known("data set", name, calibayes.datasets.list_datasets())
    with working(f"loading {name}"), output_file(output) as file:
        write_frame(calibayes.datasets.load(name).frame, kind, file, escape=escape)


def _list(as_json: bool) -> None:
    local = {name: calibayes.datasets.is_local(name) for name in calibayes.datasets.list_datasets()}
    if as_json:
        print_json([{"name": name, "on_this_computer": here} for name, here in local.items()])
        return
    lines = [(name, "on this computer" if here else "OpenML") for name, here in local.items()]
    print_text(text_table([("name", "where"), *lines]))


# -- ``calibayes sample``: random rows that a saved model gives ----------------------------------------------

SAMPLE_EXAMPLES = examples(
    "calibayes sample nb.safetensors --rows 5",
    "calibayes sample nb.safetensors --rows 100 --class Gentoo --given sex=male -o gentoos.csv",
)


def sample_command(
    model: options.ModelArgument,
    rows: Annotated[int, Option("--rows", "-n", min=1, help="Number of rows.")] = 10,
    label: Annotated[
        str | None, Option("--class", help="Class of all rows. Default: classes are drawn.")
    ] = None,
    given: Annotated[
        list[str] | None,
        Option(
            metavar="COLUMN=VALUE",
            help="Value of a column in all rows; the others are drawn conditional on it. Can be repeated.",
        ),
    ] = None,
    target: Annotated[str, Option(help="Name of the column of classes in the output.")] = "class",
    output: options.Output = None,
    form: options.Form = None,
    seed: options.Seed = 0,
    as_json: options.AsLines = False,
    escape: options.EscapeFormulas = False,
) -> None:
    """Draw random rows from a saved model of p(x, class), as CSV with a header.

    Train such a model with --rule ml: other rules make the density fit less well.
    """
    kind = format_of(output, form, as_json)
    require_csv(kind, escape)
    fitted = load_model(model)
    if not hasattr(fitted, "sample"):
        raise TypeError(
            f"{type(fitted).__name__} cannot draw rows; train another model, such as --model NaiveBayes --rule ml"
        )
    if target in fitted.training_table_.columns:
        raise ValueError(f"the model has a column {target!r}; name the column of classes with --target NAME")
    known = None if label is None else options.class_of(fitted, "--class", label)
    with working(f"drawing {rows} rows"):
        X, y = fitted.sample(rows, known, _cells(fitted, given), random_state=seed)
    with output_file(output) as file:
        write_frame(_frame(fitted, X, y, target), kind, file, escape=escape)


def _cells(model: Any, given: list[str] | None) -> dict[str, Any]:
    """Values of columns: numbers where the column held numbers. Raises ValueError if there is no such column."""
    trained = model.training_table_
    kinds = dict(zip(trained.columns, trained.kinds, strict=True))
    cells: dict[str, Any] = {}
    for name, text in options.pairs("--given", given, "column", kinds).items():
        try:
            cells[name] = float(text) if holds(kinds[name]) == NUMBER else text
        except ValueError:
            raise ValueError(f"--given {name}={text}: column {name!r} holds numbers") from None
    if not hasattr(model, "feature_names_in_"):
        return {trained.columns.index(name): cell for name, cell in cells.items()}
    return cells


def _frame(model: Any, X: Any, y: Any, target: str) -> Any:
    """The rows with their classes as a pandas data frame."""
    import pandas as pd

    if isinstance(X, np.ndarray):
        frame = pd.DataFrame(X, columns=list(model.training_table_.columns))
    else:
        frame = nw.from_native(X, eager_only=True).to_pandas()
    return frame.assign(**{target: label_texts(y)})
